// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain.h"

#include <fmt/format.h>

#include "cluster/clock.h"
#include "cluster/rows.h"
#include "policy/change.h"
#include "policy/duration.h"
#include "policy/quantity.h"

namespace sluice::cluster {

namespace {

using lines = std::vector<std::string>;

std::string until(job_override::mark const& m) { return policy::until_text(m.until_s, unix_s()); }

std::string hand(job_override::mark const& m) {
  return m.by_owner ? "by its owner" : "by an operator";
}

void of_overrides(job_override const* o, lines& out) {
  if (o == nullptr) return;
  if (o->pause.set)
    out.push_back(fmt::format("It was paused {} {}.", hand(o->pause), until(o->pause)));
  if (o->qos.set)
    out.push_back(
        fmt::format("It was put into class {} {} {}.", o->qos_class, hand(o->qos), until(o->qos)));
  for (auto const& l : o->limits)
    out.push_back(fmt::format("{} was limited {} {}.", l.name, hand(l), until(l)));
}

std::string of_flow(brain const& b, std::uint32_t supply, flow const& f) {
  supply_row const& row = b.policy().supplies[supply];
  auto const text = [&](rate r) { return policy::bound_text(r, row.counts_bytes); };
  auto const about = [&](rate r) {
    return r == unbounded ? text(r)
                          : policy::rate_words(static_cast<double>(r) / 1000, row.counts_bytes);
  };
  std::string const has =
      fmt::format("{}: it may use {} and used {}, on {} node{}; ", row.name, about(f.granted),
                  about(f.served), f.nodes, f.nodes == 1 ? "" : "s");
  if (!f.blocked) return has + "nothing of it waited, so it has more than it wants.";
  if (f.deal.limit != unbounded && f.granted >= f.deal.limit - f.deal.limit / 64)
    return has + fmt::format("it wants more and is held at its limit of {}.", text(f.deal.limit));
  std::string why =
      fmt::format("it wants more; {} of {} are divided by weight (its own is {})",
                  text(b.last().supplies[supply].capacity), row.name, f.deal.weight / 1000.0);
  if (f.deal.reservation > 0) {
    why += fmt::format(", its reservation is {}", text(f.deal.reservation));
    if (b.last().supplies[supply].overbooked)
      why += fmt::format(", but all that are wanted now come to {}, so each is scaled down",
                         text(b.last().supplies[supply].reserved));
  }
  return has + why + ".";
}

}  // namespace

lines explain_job(brain const& b, std::uint32_t number) {
  lines out;
  job const& j = b.who().jobs[number];
  std::string const& qos_class = b.policy().classes[j.row].name;
  out.push_back(qos_class.empty() ? "It is in no class: weight 1, no reservation, no limit."
                                  : fmt::format("It is in class {}.", qos_class));
  if (b.is_obeying()) out.push_back("The parent of this relay says what it may use.");
  if (!b.policy().enforce)
    out.push_back("The policy does not enforce: nothing is delayed, only counted.");
  of_overrides(j.forced, out);
  for (std::uint32_t s = 0; s < b.who().width(); ++s) {
    flow const& f = b.who().at(number, s);
    if (f.streams > 0 && b.policy().supplies[s].capacity > 0) out.push_back(of_flow(b, s, f));
  }
  return out;
}

lines warnings_of(brain const& b, policy::site const& site) {
  lines out = policy::warnings(site);
  plan next = plan_of(site, "");
  align(next, b.policy());
  roster const& r = b.who();
  for (std::uint32_t s = 0; s < next.supplies.size(); ++s) {
    supply_row const& row = next.supplies[s];
    if (row.capacity == 0) continue;
    rate sum = 0;
    std::uint32_t count = 0;
    for (job const& j : r.jobs) {
      if (j.key == 0) continue;
      bool const forced = j.forced != nullptr && j.forced->qos.set;
      std::uint32_t const qos_class = next.class_of(forced ? j.forced->class_key : j.class_key);
      rate const reserved = next.classes[qos_class].by_supply[s].reservation;
      sum += reserved;
      count += reserved > 0;
    }
    if (sum > row.capacity)
      out.push_back(fmt::format(
          "{}: the {} jobs that run now reserve {} together, the capacity is {}: each is scaled "
          "down while all want theirs",
          row.name, count, policy::bound_text(sum, row.counts_bytes),
          policy::bound_text(row.capacity, row.counts_bytes)));
  }
  return out;
}

}  // namespace sluice::cluster
