// SPDX-License-Identifier: Apache-2.0
#include "node/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "node/clock.h"
#include "policy/duration.h"
#include "policy/quantity.h"

namespace sluice::node {

namespace {

std::string amount(unit_kind unit, rate r) {
  if (r == policies::unbounded || r >= unlimited(unit)) return "without limit";
  return r == 0 ? "nothing" : policy::rate_text(unit, q40_of(unit, r));
}

/// Of what was measured or divided, which has more digits than mean anything.
std::string about(unit_kind unit, rate r) {
  bool const is_plain = r == 0 || r == policies::unbounded || r >= unlimited(unit);
  return is_plain ? amount(unit, r)
                  : policy::rate_words(static_cast<double>(r) / 1000, unit == unit_kind::bytes);
}

std::string who_decides(state const& s) {
  if (!s.has_parent()) return "This node has no parent and divides the whole capacity itself.";
  std::int64_t const boot_ns = now().boot_ns;
  if (s.lease.is_orphan(boot_ns))
    return fmt::format("Nobody answers at {}: the node divides its own safe share.",
                       s.up->socket().address());
  if (s.lease.is_silent(boot_ns))
    return fmt::format("The parent {} is silent: its last grant runs out.", s.up->parent_name());
  return fmt::format("The parent {} decides; the node keeps to its grant.", s.up->parent_name());
}

std::string of_stream(state const& s, job const& j, stream const& of) {
  supply_slot const& slot = s.site.supplies()[of.supply];
  auto const c =
      claim_of(j, of, s.site.site(), slot, s.overrides.find(j.folder), s.has_parent()).policy;
  std::string line = fmt::format("{}: may use {}, was served {} in the last cycle", slot.of.name(),
                                 about(of.unit, of.share), about(of.unit, of.last.served));
  if (of.last.blocked_ppm != 0)
    line += fmt::format(
        ", and requests waited in {:.0f} % of it ({} now)", of.last.blocked_ppm / 1e4,
        of.last.waiters == 1 ? "1 thread waits" : fmt::format("{} threads wait", of.last.waiters));
  line += fmt::format(". Weight {:g}", c.weight / 1000.0);
  if (c.reservation != 0) line += fmt::format(", reservation {}", amount(of.unit, c.reservation));
  if (c.limit != policies::unbounded) line += fmt::format(", limit {}", amount(of.unit, c.limit));
  return line + ".";
}

std::string of_fixed(fixed_seat const& f) {
  rate const now = rate_of_q40(f.of.unit, f.in_force_q40);
  return fmt::format("{}: {} {}.", f.of.name,
                     f.of.is_own ? "limited when it was started, to" : "limited by the policy, to",
                     amount(f.of.unit, now));
}

void of_overrides(std::vector<std::string>& lines, job_overrides const* o) {
  if (o == nullptr) return;
  auto const until = [](override_item const& i) { return policy::until_text(i.until_s, unix_s()); };
  if (o->pause) lines.push_back(fmt::format("It is paused {}.", until(*o->pause)));
  if (o->qos_class)
    lines.push_back(fmt::format("Its class was changed to {} {}.", o->qos_class->qos_class,
                                until(*o->qos_class)));
  for (auto const& [channel, item] : o->limits)
    lines.push_back(fmt::format("{} was limited by {} {}.", channel,
                                item.by_operator ? "an operator" : "its owner", until(item)));
}

}  // namespace

std::vector<std::string> explain_job(state const& s, job const& j) {
  auto const* const changed = s.overrides.find(j.folder);
  std::string const& qos_class = class_in_force(j, changed);
  std::vector<std::string> lines = {qos_class.empty()
                                        ? "It is in no class: weight 1, no reservation, no limit."
                                        : fmt::format("It is in class {}.", qos_class),
                                    who_decides(s)};
  if (!s.site.is_set()) lines.push_back("There is no policy yet.");
  if (j.record.monitor) lines.push_back("It is only watched: nothing of it is delayed.");
  if (s.site.is_set() && !s.site.site().control.enforce)
    lines.push_back("The policy is not enforced: what it would delay is only counted.");
  of_overrides(lines, changed);
  for (auto const& of : j.streams) lines.push_back(of_stream(s, j, of));
  for (auto const& f : j.fixed) lines.push_back(of_fixed(f));
  for (auto const& name : not_governed(s.site, j))
    lines.push_back(fmt::format(
        "{}: not governed: started before the policy. It is once it is started again.", name));
  for (auto const& target : j.record.left_out)
    lines.push_back(fmt::format("{}: this node does not have it.", target));
  if (j.foreign != 0)
    lines.push_back(fmt::format(
        "{} of its processes are in other pid namespaces, {} of them are looked at from here.",
        j.foreign, j.foreign_found));
  if (!j.escapes.empty())
    lines.push_back(fmt::format("{} of its processes escape, for example {} (pid {}): {}.",
                                j.escapes.size(), j.escapes[0].name, j.escapes[0].pid,
                                j.escapes[0].why));
  return lines;
}

}  // namespace sluice::node
