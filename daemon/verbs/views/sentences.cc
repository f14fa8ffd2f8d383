// SPDX-License-Identifier: Apache-2.0
#include "verbs/views/sentences.h"

#include <fmt/format.h>

#include <iterator>

#include "base/duration.h"
#include "base/quantity.h"
#include "policy/change.h"
#include "verbs/views/steered.h"

namespace sluice::verbs {

namespace {

using lines = std::vector<std::string>;

/// What somebody wrote, as he wrote it.
std::string exact(rate r, core::unit_kind unit) {
  return r == 0 ? "nothing" : policy::bound_text(r, unit);
}

/// What was measured or divided, which has more digits than mean anything.
std::string about(rate r, core::unit_kind unit) {
  if (r == unbounded) return "any amount";
  return r == 0 ? "nothing" : rate_words(static_cast<double>(r) / 1000, unit);
}

std::string waits_of(stream_view const& s) {
  if (!s.is_blocked) return " No request waited.";
  std::string const now =
      s.waiters == 1 ? "1 thread waits" : fmt::format("{} threads wait", s.waiters);
  return fmt::format(" Requests waited in {:.0f} % of the last cycle; {} now.", s.blocked_ppm / 1e4,
                     now);
}

std::string why_no_more(stream_view const& s) {
  if (!s.is_blocked) return {};
  if (s.limit != unbounded && s.granted >= s.limit - s.limit / 64)
    return " It is held at its limit.";
  if (s.overbooked != 0)
    return fmt::format(
        " Reservations in use come to {}, which is above the {} that may be reserved: each is "
        "scaled down.",
        exact(s.overbooked, s.unit), exact(s.bookable, s.unit));
  return {};
}

std::string of_stream(stream_view const& s) {
  std::string line = fmt::format("{}: it may use {} and used {}", s.supply,
                                 about(s.granted, s.unit), about(s.served, s.unit));
  if (s.nodes != 1) line += fmt::format(", on {} nodes", s.nodes);
  if (s.would_delay != 0)
    line += fmt::format("; were it held to that, {} would wait", about(s.would_delay, s.unit));
  line += "." + waits_of(s) + why_no_more(s) + fmt::format(" Weight {:g}", s.weight / 1000.0);
  if (s.reservation != 0) line += fmt::format(", reservation {}", exact(s.reservation, s.unit));
  if (s.limit != unbounded) line += fmt::format(", limit {}", exact(s.limit, s.unit));
  return line + ".";
}

void of_overrides(job_overrides const* o, double now_s, lines& out) {
  if (o == nullptr) return;
  auto const who = [](override_mark const& m) { return m.by_owner ? "Its owner" : "An operator"; };
  auto const until = [&](override_mark const& m) { return until_text(m.until_s, now_s); };
  if (o->pause) out.push_back(fmt::format("{} paused it {}.", who(*o->pause), until(*o->pause)));
  if (o->qos)
    out.push_back(fmt::format("{} put it into class {} {}.", who(*o->qos), o->qos->qos_class,
                              until(*o->qos)));
  for (auto const& l : o->limits)
    out.push_back(fmt::format("{} limited {} {}.", who(l), l.channel, until(l)));
}

void of_processes(job_view const& j, lines& out) {
  if (j.foreign != 0)
    out.push_back(fmt::format(
        "{} of its processes are in other pid namespaces, {} of them are checked from here.",
        j.foreign, j.foreign_found));
  if (j.escapes.empty()) return;
  escape_view const& first = j.escapes.front();
  if (first.pid == 0)
    out.push_back(fmt::format("{} escape: {}.", first.name, first.why));
  else
    out.push_back(fmt::format("{} of its processes escape, for example {} (pid {}): {}.",
                              j.escapes.size(), first.name, first.pid, first.why));
}

}  // namespace

lines explain(job_view const& j, job_details const& d, job_overrides const* changed, double now_s) {
  lines out = {j.qos_class.empty() ? "It is in no class: weight 1, no reservation, no limit."
                                   : fmt::format("It is in class {}.", j.qos_class)};
  out.insert(out.end(), d.deciders.begin(), d.deciders.end());
  if (!d.has_policy) out.push_back("There is no policy yet.");
  if (j.is_watched) out.push_back("It is only watched (--monitor): none of its calls is delayed.");
  if (d.has_policy && !d.is_enforced)
    out.push_back("The policy is not enforced: calls that it would delay are only counted.");
  of_overrides(changed, now_s, out);
  for (auto const& s : j.streams) {
    out.push_back(of_stream(s));
    if (s.steered)
      out.push_back(fmt::format("{}: {}", s.supply, steered_in_words(*s.steered, s.unit)));
    if (std::string const told = s.drift ? drift_in_words(*s.drift) : ""; !told.empty())
      out.push_back(fmt::format("{}: {}", s.supply, told));
  }
  for (auto const& f : d.fixed)
    out.push_back(
        fmt::format("{}: {} {}.", f.name,
                    f.is_own ? "limited when it was started, to" : "limited by the policy, to",
                    exact(f.now, f.unit)));
  for (auto const& name : j.not_governed)
    out.push_back(fmt::format(
        "{}: not governed, because it was started before the policy named it. Start it again.",
        name));
  for (auto const& target : d.left_out)
    out.push_back(fmt::format(
        "{}: this node does not have it, or its costs are those of another mount.", target));
  of_processes(j, out);
  return out;
}

}  // namespace sluice::verbs
