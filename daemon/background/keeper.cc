// SPDX-License-Identifier: Apache-2.0
#include "background/keeper.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/whole_file.h"
#include "policy/compile.h"
#include "policy/supply.h"
#include "segment/counted.h"
#include "segment/curve.h"
#include "segment/mapping.h"

namespace sluice::background {

namespace {

using policies::background_count;
using policies::unbounded;
using json = nlohmann::ordered_json;

constexpr auto unit = core::unit_kind::bytes;
constexpr std::int64_t shortest_look_ns = 2'000'000;
constexpr std::int64_t lease_of_limit_ns = 1'000'000'000;
constexpr std::int64_t credit_ns = 5'000'000;      // what an idle role may save up
constexpr std::uint64_t least_credit = 128 << 10;  // one piece of a large request
constexpr std::int64_t tell_every_ns = 1'000'000'000;
constexpr std::uint64_t closely = 50;  // a limit that moves by less than this part stays

std::optional<unsigned> number_of(std::vector<std::string> const& names, std::string const& name) {
  auto const at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<unsigned>(at - names.begin());
}

/// Refunds make it smaller.
std::uint64_t grown(std::uint64_t before, std::uint64_t now) {
  return now > before && now - before < std::uint64_t{1} << 50 ? now - before : 0;
}

policies::rate rate_over_span(std::uint64_t bytes, std::int64_t span_ns) {
  return static_cast<policies::rate>(core::u128(bytes) * 1'000'000'000'000 /
                                     static_cast<std::uint64_t>(span_ns));
}

core::curve_settings settings_for(policies::rate limit, std::int64_t lease_end_ns) {
  std::uint64_t const free_q40 = policy::rate_q40_of(policy::unlimited(unit), unit);
  if (limit == unbounded) return policy::settings_of(unit, free_q40);
  core::curve_settings s = policy::settings_of(unit, policy::rate_q40_of(limit, unit));
  s.cap_units = std::max(core::units_in(s.rate_q40, credit_ns), least_credit);
  s.lease_end_ns = lease_end_ns;
  s.after_rate_q40 = free_q40;
  return s;
}

bool is_close(policies::rate a, policies::rate b) {
  if (a == unbounded || b == unbounded || a == 0 || b == 0) return a == b;
  return (a > b ? a - b : b - a) < a / closely;
}

}  // namespace

std::optional<keeper> keeper::of(foreign<abi::segment> const& s,
                                 policy::background_terms const& terms) try {
  auto const rules = segment::rules_of(s);
  auto const names = segment::channel_names(s);
  keeper k(terms);
  auto const foreground = number_of(names, terms.foreground_channel);
  if (!foreground) return std::nullopt;
  k.foreground_ = *foreground;
  bool is_any = false;
  for (unsigned i = 0; i < background_count; ++i) {
    auto const at = number_of(names, terms.channels[i]);
    if (terms.channels[i].empty() || !at || rules->channel[*at].count_only != 0) continue;
    k.parts_[i].channel = terms.channels[i];
    k.parts_[i].number = *at;
    is_any = true;
  }
  return is_any ? std::optional(std::move(k)) : std::nullopt;
} catch (error const&) {
  return std::nullopt;  // scribbled over
}

policies::tail_look keeper::figures(foreign<abi::segment> const& s, std::int64_t span_ns) {
  policies::tail_look l;
  auto const of_foreground = segment::sum_channel(s, foreground_);
  l.foreground = rate_over_span(grown(before_.amount, of_foreground.amount), span_ns);
  before_ = of_foreground;
  for (unsigned i = 0; i < background_count; ++i) {
    part& p = parts_[i];
    if (p.channel.empty()) continue;
    auto const now = segment::sum_channel(s, p.number);
    p.moved = l.moved[i] = rate_over_span(grown(before_of_[i].amount, now.amount), span_ns);
    bool const is_held = p.limit != unbounded;
    bool const has_waited = grown(before_of_[i].delayed, now.delayed) != 0;
    p.waits = l.waits[i] = is_held && (has_waited || segment::who_waits(s, p.number).waiters != 0);
    before_of_[i] = now;
  }
  return l;
}

bool keeper::look(foreign<abi::segment> const& s, policies::rate most, std::int64_t now_ns,
                  segment::curve_writer const& limit) {
  std::int64_t const span_ns = now_ns - looked_ns_;
  if (looked_ns_ != 0 && span_ns < shortest_look_ns) return false;
  bool const is_first = looked_ns_ == 0;
  policies::tail_sign const was = by_.sign();
  policies::tail_look const l = figures(s, std::max<std::int64_t>(span_ns, 1));
  looked_ns_ = now_ns;
  if (is_first) return true;
  if (l.foreground != 0 || std::any_of(parts_.begin(), parts_.end(),
                                       [](part const& p) { return p.moved != 0 || p.waits; }))
    moved_ns_ = now_ns;
  policies::rate const total = std::min(terms_.total, most);
  policies::rate const floor = std::min(terms_.floor, total);
  by_.use({static_cast<policies::tail_algorithm>(terms_.algorithm), total,
           std::min(terms_.foreground, total - floor), floor});
  by_.look(l, now_ns);
  if (is_busy(now_ns)) spent_ns_[static_cast<unsigned>(by_.sign())] += span_ns;
  // We write no limit of the foreground: where it has none of anything, somebody paused the job.
  bool const is_paused = segment::rate_of(s, foreground_, now_ns) == 0;
  for (unsigned i = 0; i < background_count && !is_paused; ++i)
    if (!parts_[i].channel.empty()) write(s, i, now_ns, limit);
  return by_.sign() != was;
}

/// Only what has changed, and before a lease ends. Somebody else may have written meanwhile (a
/// pause and its end), so what is there is looked at.
void keeper::write(foreign<abi::segment> const& s, unsigned kind, std::int64_t now_ns,
                   segment::curve_writer const& limit) {
  part& p = parts_[kind];
  policies::rate const wanted = is_busy(now_ns) ? by_.rates()[kind] : unbounded;
  bool const is_lapsing = wanted != unbounded && lease_ns_[kind] - now_ns < lease_of_limit_ns / 2;
  auto const in_force = settings_for(p.limit, 0).rate_q40;
  bool const is_another = segment::rate_of(s, p.number, now_ns) != in_force;
  if (is_close(wanted, p.limit) && !is_lapsing && !is_another) return;
  p.limit = wanted;
  lease_ns_[kind] = wanted == unbounded ? 0 : now_ns + lease_of_limit_ns;
  limit(p.number, settings_for(wanted, lease_ns_[kind]), now_ns);
}

json keeper::row() const {
  json seconds = json::object(), limits = json::array();
  for (unsigned i = 0; i < policies::tail_sign_count; ++i)
    seconds[std::string(policies::name_of(static_cast<policies::tail_sign>(i)))] =
        static_cast<double>(spent_ns_[i]) / 1e9;
  for (auto const& p : parts_)
    if (!p.channel.empty())
      limits.push_back(
          {{"name", p.channel},
           {"rate_per_s", p.limit == unbounded ? json() : json(double(p.limit) / 1000)}});
  return {{"supply", terms_.supply},
          {"algorithm", policy::background_rows[terms_.algorithm].name},
          {"sign", policies::name_of(sign())},
          {"why", policies::words_of(sign())},
          {"seconds", std::move(seconds)},
          {"limits", std::move(limits)}};
}

std::string told_path(std::string const& segment_path) {
  return segment_path.substr(0, segment_path.rfind('/') + 1) + "background";
}

json told(std::string const& segment_path) {
  auto const text = read_file(told_path(segment_path));
  if (!text) return nullptr;
  json const all = json::parse(*text, nullptr, false);
  return all.is_array() ? all : json();
}

void teller::look(std::string const& segment_path, std::vector<keeper> const& keepers, bool is_news,
                  std::int64_t now_ns) {
  has_news_ = has_news_ || is_news;
  if (!has_news_ || (told_ns_ != 0 && now_ns - told_ns_ < tell_every_ns)) return;
  json rows = json::array();
  for (auto const& k : keepers) rows.push_back(k.row());
  replace_file(told_path(segment_path), rows.dump() + "\n");
  told_ns_ = now_ns;
  has_news_ = false;
}

}  // namespace sluice::background
