// SPDX-License-Identifier: Apache-2.0
#include "node/share_out.h"

#include <algorithm>
#include <numeric>

namespace sluice::node {

namespace {

/// The ceiling of a job on this node alone: limits span nodes, so each keeps to its part.
rate lone_ceiling(share_supply const& s, share_claim const& c) {
  if (c.is_paused) return 0;
  if (c.policy.limit == policies::unbounded || c.policy.limit == 0 || s.whole == 0)
    return c.policy.limit;
  return std::max<rate>(portion(c.policy.limit, s.floor + s.trickle + s.escrow, s.whole), 1);
}

/// What a job may have while the limit of its class is kept by the parent: what that gave it. When
/// the grant is over, others may have been given the rest of the limit since. A parent that has not
/// divided yet says nothing of a job that came since: its safe part then.
rate capped(share_supply const& s, bool is_split, share_claim const& c, rate given) {
  if (s.granted == 0) return std::min(given, lone_ceiling(s, c));
  return is_split || given != 0 || c.is_bound() ? given : lone_ceiling(s, c);
}

/// Scales down so that the sum fits. Rounds down, so it never exceeds.
void fit(std::vector<rate>& values, rate most) {
  core::u128 sum = 0;
  for (rate v : values) sum += v;
  if (sum <= most) return;
  for (rate& v : values) v = static_cast<rate>(core::u128(v) * most / sum);
}

/// Adds `extra` to what is there, by weight, up to the ceilings.
void spread(std::vector<rate>& values, rate extra, std::span<rate const> ceilings,
            std::span<share_claim const> claims) {
  std::vector<policies::basin> basins(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    rate const room = ceilings[i] > values[i] ? ceilings[i] - values[i] : 0;
    basins[i] = {0, room, std::max(claims[i].policy.weight, 1u)};
  }
  std::vector<rate> more(values.size());
  policies::water_fill(basins, extra, more);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += more[i];
}

/// What each would have of `amount` later, guessed from what it has now: most follows use, a part
/// is kept equal so that nobody is left with nothing.
std::vector<rate> later(share_supply const& s, rate amount, std::span<share_claim const> claims,
                        std::span<rate const> now) {
  std::vector<rate> out(claims.size()), ceilings(claims.size());
  core::u128 sum = 0;
  for (rate v : now) sum += v;
  rate const used = amount - amount / 5;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    ceilings[i] = lone_ceiling(s, claims[i]);
    out[i] = sum == 0 ? 0 : static_cast<rate>(core::u128(used) * now[i] / sum);
    out[i] = std::min(out[i], ceilings[i]);
  }
  rate const given = std::accumulate(out.begin(), out.end(), rate{0});
  spread(out, amount - given, ceilings, claims);
  return out;
}

void fill_phases(share_supply const& s, std::span<share_claim const> claims,
                 std::vector<rate> const& now, std::span<phases> out) {
  auto const after = later(s, s.floor + s.trickle, claims, now);
  auto const own = later(s, s.floor + s.trickle + s.escrow, claims, now);
  for (std::size_t i = 0; i < claims.size(); ++i) out[i] = {now[i], after[i], own[i]};
}

}  // namespace

void share_grant(share_supply const& s, bool is_split, std::span<share_claim const> claims,
                 std::span<phases const> before, std::span<phases> out) {
  std::size_t const n = claims.size();
  rate const usable = s.granted + s.floor + (s.granted == 0 ? s.trickle : 0);
  std::vector<rate> now(n), ceilings(n);
  for (std::size_t i = 0; i < n; ++i) {
    now[i] = is_split ? claims[i].granted : before[i].now;
    rate const limit = claims[i].told_limit.value_or(claims[i].policy.limit);
    ceilings[i] = claims[i].is_paused ? 0 : limit;
    if (claims[i].is_capped)
      ceilings[i] = std::min(ceilings[i], capped(s, is_split, claims[i], now[i]));
    now[i] = std::min(now[i], ceilings[i]);
  }
  fit(now, is_split ? s.granted : usable);
  rate const given = std::accumulate(now.begin(), now.end(), rate{0});
  spread(now, usable - given, ceilings, claims);
  fill_phases(s, claims, now, out);
}

policies::supply lone_supply(share_supply const& s, rate usable,
                             std::span<share_claim const> claims) {
  policies::supply supply;
  supply.capacity = usable;
  bool const is_controller = usable >= s.whole;  // then ceilings are whole
  for (auto const& c : claims) {
    policies::claim claim = c.policy;
    claim.limit = is_controller ? (c.is_paused ? 0 : claim.limit) : lone_ceiling(s, c);
    claim.reservation = std::min(claim.reservation, claim.limit);
    supply.claims.push_back(claim);
  }
  return supply;
}

void share_alone(share_supply const& s, rate usable, std::span<share_claim const> claims,
                 std::span<rate const> allocated, std::span<phases> out) {
  std::vector<rate> now(allocated.begin(), allocated.end());
  now.resize(claims.size());
  fit(now, usable);
  fill_phases(s, claims, now, out);
}

}  // namespace sluice::node
