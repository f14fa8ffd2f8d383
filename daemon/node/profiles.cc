// SPDX-License-Identifier: Apache-2.0
#include "node/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "node/enforcer.h"
#include "node/follow_classes.h"
#include "policy/limit.h"
#include "policy/resource.h"
#include "segment/mapping.h"
#include "segment/sums.h"

namespace sluice::node {

namespace {

using policies::request_look;
using runtime::metric;

constexpr double shown_s = 5;  // over which requests are shown as a rate

std::string target_of(policy::request_terms const& t) {
  return std::string(policy::target_of_supply(t.supply));
}

/// Of a counter that its job can write.
double grown(double before, double now) { return now > before ? now - before : 0; }

/// No more than the machine can do in that time.
request_look grown(request_look const& before, request_look const& now, double span_s) {
  double const most_requests = tokens(possible(unit_kind::ops)) * span_s;
  double const most_vops = tokens(possible(unit_kind::vops)) * span_s;
  return {std::min(grown(before.requests, now.requests), most_requests),
          std::min(grown(before.own_vops, now.own_vops), most_vops),
          std::min(grown(before.caused_vops, now.caused_vops), most_vops)};
}

/// What a class reserves for each job while nothing is known of what it needs, and at most.
rate promised_by_class(policy::share const& s) {
  return policy::milli_per_second(s.requests ? policy::first_of(*s.requests) : *s.reservation);
}
rate most_of(policy::share const& s) {
  return s.requests && !s.requests->has_most ? policies::unbounded
                                             : policy::milli_per_second(*s.reservation);
}

double vops_of(segment::channel_sums const& s) {
  return core::counted_tokens(unit_kind::vops, s.amount);
}

std::vector<policies::promised_requests> promised_by(policy::request_terms const& t) {
  std::vector<policies::promised_requests> out;
  for (auto const& p : t.promised) out.push_back({p.per_s, p.first_vops});
  return out;
}

}  // namespace

profiles::followed const* profiles::entry::find(std::string const& supply) const {
  for (auto const& f : supplies)
    if (f.terms.supply == supply) return &f;
  return nullptr;
}

void profiles::use() {
  of_job_.clear();
  for (auto const& j : jobs_.all())
    for (auto& s : j->streams) s.need.reset();
  auto const& classes = site_.site().classes;
  is_any_ = std::any_of(classes.begin(), classes.end(), [&](auto const& c) {
    return !policy::promises_of(site_.site(), c.name).empty();
  });
}

/// Since the job began.
request_look profiles::sums_of(job const& j, counted const& k) {
  auto const own = segment::sum_channel(j.memory(), k.own);
  request_look now = {static_cast<double>(own.calls), vops_of(own), 0};
  if (k.size_bytes != 0)
    now.requests = static_cast<double>(segment::sum_channel(j.memory(), k.bytes).amount) /
                   static_cast<double>(k.size_bytes);
  for (unsigned const c : k.caused) now.caused_vops += vops_of(segment::sum_channel(j.memory(), c));
  return now;
}

/// A job that was made before its class promised them has no channels that count them.
profiles::entry profiles::bind(job const& j, std::int64_t now_ns) const {
  entry e{class_in_force(j, overrides_.find(j.key)), now_ns, {}};
  std::vector<std::string> names;
  try {
    names = segment::channel_names(j.memory());
  } catch (error const&) {  // scribbled over
    return e;
  }
  bool is_there = true;
  auto const number = [&](std::string const& name) {
    auto const at = std::find(names.begin(), names.end(), name);
    is_there = is_there && at != names.end();
    return static_cast<unsigned>(at - names.begin());
  };
  for (auto& terms : policy::promises_of(site_.site(), e.qos_class)) {
    std::vector<counted> kinds;
    is_there = true;
    for (auto const& p : terms.promised) {
      auto const channels = policy::channels_of(terms, p.what);
      counted k;
      k.own = number(channels.own);
      k.size_bytes = p.what.size_bytes;
      if (!channels.bytes.empty()) k.bytes = number(channels.bytes);
      for (auto const& c : channels.caused) k.caused.push_back(number(c));
      kinds.push_back(std::move(k));
    }
    if (!is_there) continue;
    for (auto& k : kinds) k.before = sums_of(j, k);  // it may be older than this daemon
    e.supplies.push_back({terms, policies::request_profile(promised_by(terms)), kinds});
  }
  return e;
}

void profiles::look(job& j, entry& e, std::int64_t now_ns) {
  double const span_s = static_cast<double>(now_ns - e.looked_ns) / 1e9;
  e.looked_ns = now_ns;
  for (auto& f : e.supplies) {
    stream const* const s = stream_on(j, site_, f.terms.supply);
    if (s == nullptr) continue;
    std::vector<request_look> seen;
    for (std::size_t i = 0; i < f.kinds.size(); ++i) {
      counted& k = f.kinds[i];
      request_look const now = sums_of(j, k);
      seen.push_back(grown(k.before, now, span_s));
      k.before = now;
      double const stays = std::exp(-span_s / shown_s);
      k.shown_requests = k.shown_requests * stays + seen.back().requests;
      k.shown_span_s = k.shown_span_s * stays + span_s;
      request_look& sum = done_[{e.qos_class, target_of(f.terms), f.terms.promised[i].what.name}];
      sum.requests += seen.back().requests;
      sum.own_vops += seen.back().own_vops;
      sum.caused_vops += seen.back().caused_vops;
    }
    f.profile.look(seen, tokens(s->last.served) * span_s, span_s);
    f.need = f.profile.need();
  }
}

/// Below a parent only the bound of the class is known here; it fits the sum to what there is.
void profiles::set_needs(supply_slot const& slot) {
  std::vector<policies::followed_need> needs;
  std::vector<stream*> of;  // null: its reservation stays
  for (auto const& j : jobs_.all()) {
    auto const at = of_job_.find(j->key);
    stream* const s = j->is_broken() ? nullptr : stream_on(*j, site_, slot.of.name());
    if (at == of_job_.end() || s == nullptr) continue;
    auto const share = policy::share_of(site_.site(), at->second.qos_class, slot.of);
    if (!share || !share->reservation) continue;
    followed const* const f = at->second.find(slot.of.name());
    rate const most = most_of(*share), promised = promised_by_class(*share);
    rate const need = f != nullptr ? std::min(f->need, most) : promised;
    bool const is_blocked = s->last.blocked_ppm != 0;
    needs.push_back(policies::taking_room(promised, need, s->last.served, is_blocked));
    // Who wants less than his need is not in the others' way, and has it when he wants it.
    if (f != nullptr) s->need = need;
    of.push_back(f != nullptr && is_blocked ? s : nullptr);
  }
  policies::fit(needs, has_parent_ ? policies::unbounded : slot.of.promisable);
  for (std::size_t k = 0; k < of.size(); ++k)
    if (of[k] != nullptr) of[k]->need = needs[k].given;
}

void profiles::look(std::int64_t now_ns) {
  if (!is_any_) return;
  auto const make = [&](job& j) {
    for (auto& s : j.streams) s.need.reset();
    return bind(j, now_ns);
  };
  follow_classes(of_job_, jobs_, overrides_, make, [](entry const&) {});
  time_.each(jobs_.all(), [&](job& j) {
    if (auto const at = of_job_.find(j.key); at != of_job_.end() && !j.is_broken())
      look(j, at->second, now_ns);
  });
  for (auto const& slot : site_.supplies()) set_needs(slot);
}

/// Its limits are in it, an operator's among them. None: there is no such stream.
std::optional<policies::claim> profiles::claim_on(job const& j, std::string const& supply) const {
  stream const* const s = stream_on(j, site_, supply);
  if (s == nullptr || !s->need) return std::nullopt;
  auto const& slot = site_.supplies()[s->supply];
  return claim_of(j, *s, site_.site(), slot, overrides_.find(j.key), has_parent_).policy;
}

nlohmann::json profiles::rows(job const& j) const {
  auto const at = of_job_.find(j.key);
  if (at == of_job_.end() || at->second.supplies.empty()) return nullptr;
  nlohmann::json out = nlohmann::json::array();
  for (auto const& f : at->second.supplies) {
    nlohmann::json requests = nlohmann::json::array();
    for (std::size_t i = 0; i < f.kinds.size(); ++i) {
      auto const& cost = f.profile.costs()[i];
      requests.push_back({{"name", f.terms.promised[i].what.name},
                          {"promised", f.terms.promised[i].per_s},
                          {"seen", f.kinds[i].per_s()},
                          {"own_vops", cost.own},
                          {"caused_vops", cost.caused}});
    }
    auto const claim = claim_on(j, f.terms.supply);
    rate const reserved = claim ? std::min(claim->reservation, f.need) : 0;
    out.push_back({{"supply", f.terms.supply},
                   {"need", tokens(f.need)},
                   {"reserved", tokens(reserved)},
                   {"requests", std::move(requests)}});
    if (claim && claim->limit < f.need) out.back()["limit"] = tokens(claim->limit);
  }
  return out;
}

std::vector<std::string> profiles::sentences(job const& j) const {
  std::vector<std::string> out;
  auto const rows_of_job = rows(j);
  for (auto const& row : rows_of_job) {
    auto const supply = row["supply"].get<std::string>();
    auto const vops = [&](char const* key) {
      return policy::bound_text(static_cast<rate>(row[key].get<double>() * 1000), unit_kind::vops);
    };
    for (auto const& r : row["requests"])
      out.push_back(fmt::format(
          "{}: it is promised {:g} {}/s and did {:.3g}/s; one costs {:.3g} VOP and causes {:.3g}.",
          supply, r["promised"].get<double>(), r["name"].get<std::string>(),
          r["seen"].get<double>(), r["own_vops"].get<double>(), r["caused_vops"].get<double>()));
    bool const lacks = row["reserved"].get<double>() < row["need"].get<double>();
    out.push_back(fmt::format("{}: what it is promised takes {} now, {}.", supply, vops("need"),
                              row.contains("limit") ? "and its limit leaves " + vops("limit")
                              : lacks       ? "of which " + vops("reserved") + " can be reserved"
                              : has_parent_ ? "and its parent is asked to reserve it"
                                            : "and is reserved"));
  }
  return out;
}

void profiles::publish(runtime::metric_table& m) {
  for (auto const& [labels, sum] : done_) {
    m.set(metric::requests_total, {labels[0], labels[2], labels[1]}, sum.requests);
    m.set(metric::request_vops_total, {labels[0], labels[2], labels[1], "own"}, sum.own_vops);
    m.set(metric::request_vops_total, {labels[0], labels[2], labels[1], "caused"}, sum.caused_vops);
  }
  std::map<std::array<std::string, 2>, std::pair<double, double>> needs;  // needed, lacking
  for (auto const& j : jobs_.all())
    if (auto const at = of_job_.find(j->key); at != of_job_.end())
      for (auto const& f : at->second.supplies) {
        stream const* const s = stream_on(*j, site_, f.terms.supply);
        if (s == nullptr || !s->need) continue;
        auto& [needed, lacking] = needs[{at->second.qos_class, target_of(f.terms)}];
        needed += tokens(f.need);
        lacking += tokens(f.need - std::min(*s->need, f.need));
      }
  for (auto const& labels : shown_)
    if (!needs.contains(labels))
      for (auto const which : {metric::needed_vops_per_second, metric::lacking_vops_per_second})
        m.remove(which, {labels[0], labels[1]});
  shown_.clear();
  for (auto const& [labels, value] : needs) {
    m.set(metric::needed_vops_per_second, {labels[0], labels[1]}, value.first);
    m.set(metric::lacking_vops_per_second, {labels[0], labels[1]}, value.second);
    shown_.insert(labels);
  }
}

}  // namespace sluice::node
