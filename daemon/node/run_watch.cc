// SPDX-License-Identifier: Apache-2.0
#include "node/run_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include "node/scheduler.h"
#include "segment/run_dir.h"

namespace sluice::node {

namespace {

constexpr std::uint32_t changes =
    IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_ATTRIB | IN_ONLYDIR;
constexpr std::uint32_t newcomers = IN_CREATE | IN_MOVED_TO | IN_ONLYDIR;

}  // namespace

run_watch::run_watch(std::string const& run_dir)
    : run_dir_(run_dir), events_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  follow();
}

/// Adding what is watched already changes nothing. A folder that is not there yet comes into RUN.
void run_watch::follow() {
  if (!events_) return;
  bool const is_told = inotify_add_watch(events_.get(), run_dir_.c_str(), newcomers) >= 0;
  inotify_add_watch(events_.get(), segment::jobs_dir(run_dir_).c_str(), newcomers);
  inotify_add_watch(events_.get(), scheduler_dir(run_dir_).c_str(), changes);
  if (!is_told) events_ = {};
}

bool run_watch::has_changed() {
  if (!events_) return false;
  alignas(inotify_event) char some[4096];
  bool has_any = false;
  while (read(events_.get(), some, sizeof some) > 0) has_any = true;
  if (has_any) follow();
  return has_any;
}

}  // namespace sluice::node
