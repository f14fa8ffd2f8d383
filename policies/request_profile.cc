// SPDX-License-Identifier: Apache-2.0
#include "policies/request_profile.h"

#include <algorithm>
#include <cmath>

namespace sluice::policies {

namespace {

__extension__ using u128 = unsigned __int128;

constexpr double own_s = 1, burst_s = 0.3, caused_s = 120;
constexpr double most_cost = 1e6;      // VOPs of one request, as of a cost file
constexpr double most_missing = 4;     // times fewer requests than were promised: not for lack
constexpr double few_requests = 0.01;  // left of what was seen: too few to divide by

double divided(double vops, double requests) { return std::min(vops / requests, most_cost); }

}  // namespace

request_profile::request_profile(std::vector<promised_requests> promised)
    : promised_(std::move(promised)), kinds_(promised_.size()), costs_(promised_.size()) {
  for (std::size_t i = 0; i < promised_.size(); ++i)
    costs_[i].own = kinds_[i].own_cost = promised_[i].first_vops;
}

void request_profile::look(std::span<request_look const> seen, double all_vops, double span_s) {
  double const own_stays = std::exp(-span_s / own_s), burst_stays = std::exp(-span_s / burst_s),
               caused_stays = std::exp(-span_s / caused_s);
  burst_s_ = burst_s_ * burst_stays + span_s;
  served_vops_ = served_vops_ * caused_stays + all_vops;
  counted_vops_ *= caused_stays;
  for (auto const& l : seen) counted_vops_ += l.own_vops + l.caused_vops;
  double const believed = counted_vops_ > served_vops_ ? served_vops_ / counted_vops_ : 1;
  for (std::size_t i = 0; i < kinds_.size() && i < seen.size(); ++i) {
    kind& k = kinds_[i];
    request_look const& l = seen[i];
    k.own.fade(own_stays);
    k.burst.fade(burst_stays);
    if (l.requests > 0) k.caused.fade(caused_stays);
    k.own.vops += l.own_vops;
    k.burst.vops += l.caused_vops;
    k.caused.vops += l.caused_vops;
    for (mean* m : {&k.own, &k.burst, &k.caused}) m->requests += l.requests;
    if (k.own.requests > few_requests) k.own_cost = divided(k.own.vops, k.own.requests);
    double const passed = std::max(k.burst.requests, promised_[i].per_s * burst_s_ / most_missing);
    k.burst_cost = passed > 0 ? divided(k.burst.vops, passed) * believed : 0;
    costs_[i].own = k.own_cost * believed;
    costs_[i].caused =
        k.caused.requests > few_requests ? divided(k.caused.vops, k.caused.requests) * believed : 0;
  }
}

rate request_profile::need() const {
  double vops = 0;
  for (std::size_t i = 0; i < promised_.size(); ++i)
    vops += promised_[i].per_s * (costs_[i].own + std::max(costs_[i].caused, kinds_[i].burst_cost));
  return static_cast<rate>(std::clamp(vops * 1000, 0.0, 1e18));
}

followed_need taking_room(rate promised, rate need, rate served, bool blocked) {
  rate const room = blocked || served > need / 2 ? need : 2 * served;
  return {std::min(room, promised), room, room, 0};
}

rate fit(std::span<followed_need> needs, rate room) {
  u128 least = 0, above = 0;
  for (auto& n : needs) {
    n.given = std::clamp(n.need, n.least, std::max(n.least, n.most));
    least += n.least;
    above += n.given - n.least;
  }
  u128 const left = room > least ? room - least : 0;
  if (above <= left) return 0;
  for (auto& n : needs)
    n.given = n.least + static_cast<rate>(u128(n.given - n.least) * left / above);
  return static_cast<rate>(std::min(above - left, u128{unbounded}));
}

}  // namespace sluice::policies
