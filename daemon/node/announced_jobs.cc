// SPDX-License-Identifier: Apache-2.0
#include "node/announced_jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "segment/run_dir.h"

namespace sluice::node {

announced_jobs::changes announced_jobs::look() {
  changes out;
  auto const names = announced(jobs_.run_dir());
  if (!names) return out;
  auto const is_named = [&](std::string const& name) {
    return std::binary_search(names->begin(), names->end(), name);
  };
  for (auto const& j : jobs_.all())
    if (j->record.scheduler && j->record.scheduler->is_held && !is_named(j->record.name))
      out.withdrawn.push_back(j.get());
  for (auto const& name : *names) {
    if (!is_due(name) || jobs_.has_scheduled(name)) continue;
    if (job* const made = take(name)) out.made.push_back(made);
  }
  std::erase_if(unreadable_, [&](std::string const& name) { return !is_named(name); });
  std::erase_if(waiting_, [&](auto const& entry) { return !is_named(entry.first); });
  return out;
}

/// Whoever found no room is tried again when something has gone.
bool announced_jobs::is_due(std::string const& name) const {
  auto const at = waiting_.find(name);
  if (at != waiting_.end()) return at->second.tried_at != jobs_.changes_of_room();
  return !unreadable_.contains(name);
}

job* announced_jobs::take(std::string const& name) {
  try {
    segment::check_job_name(name);
    auto const text = read_file(scheduler_dir(jobs_.run_dir()) + "/" + name);
    if (!text) return nullptr;
    job& made = jobs_.schedule(read_announcement(*text, name), site_, late_note(name));
    waiting_.erase(name);
    return &made;
  } catch (segment::no_room const& e) {
    wait_for_room(name, e.what());
  } catch (error const& e) {
    unreadable_.insert(name);
    log_.warning("announced job cannot be made", {{"job", name}, {"why", e.what()}});
  }
  return nullptr;
}

std::string announced_jobs::why_waiting(std::string const& name) const {
  auto const at = waiting_.find(name);
  return at == waiting_.end() ? std::string() : at->second.why;
}

std::string announced_jobs::late_note(std::string const& name) const {
  auto const at = waiting_.find(name);
  if (at == waiting_.end()) return {};
  return fmt::format(
      "made {} after it was announced: this node had no room before, and programs that were "
      "started until then are not limited",
      duration_text((steady_ns() - at->second.since_ns) / 1'000'000'000 * 1'000'000'000));
}

void announced_jobs::wait_for_room(std::string const& name, std::string const& why) {
  auto const [at, is_new] = waiting_.try_emplace(name);
  if (is_new) {
    at->second.since_ns = steady_ns();
    log_.warning("announced job waits for room", {{"job", name}, {"why", why}});
  }
  at->second.tried_at = jobs_.changes_of_room();
  at->second.why = why;
}

}  // namespace sluice::node
