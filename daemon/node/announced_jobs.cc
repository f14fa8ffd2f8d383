// SPDX-License-Identifier: Apache-2.0
#include "node/announced_jobs.h"

#include <algorithm>

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
    if (unreadable_.contains(name) || jobs_.has_scheduled(name)) continue;
    if (job* const made = take(name)) out.made.push_back(made);
  }
  std::erase_if(unreadable_, [&](std::string const& name) { return !is_named(name); });
  return out;
}

job* announced_jobs::take(std::string const& name) {
  try {
    segment::check_job_name(name);
    auto const text = read_file(scheduler_dir(jobs_.run_dir()) + "/" + name);
    if (!text) return nullptr;
    return &jobs_.schedule(read_announcement(*text, name), site_);
  } catch (error const& e) {
    unreadable_.insert(name);
    log_.warning("announced job cannot be made", {{"job", name}, {"why", e.what()}});
    return nullptr;
  }
}

}  // namespace sluice::node
