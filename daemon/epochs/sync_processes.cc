// SPDX-License-Identifier: Apache-2.0
#include "epochs/sync_processes.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "base/shared_places.h"

namespace sluice::epochs {

namespace {

/// Also one that is no child of ours any more.
bool is_reaped(pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; }

}  // namespace

sync_processes::sync_processes(owner_lookup owner_of) : owner_of_(std::move(owner_of)) {
  all_.reserve(most);
}

std::size_t sync_processes::count_of(uid_t owner) const {
  auto const is_his = [owner](process const& p) { return p.owner == owner; };
  return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), is_his));
}

bool sync_processes::has_place(uid_t uid) const {
  std::size_t const his = count_of(owner_by(owner_of_, uid));
  return shared_places{most, most_of_an_owner, kept_places}.has_one(all_.size(), his);
}

bool sync_processes::is_stuck(uid_t uid) const {
  if (has_place(uid)) return false;
  uid_t const owner = owner_by(owner_of_, uid);
  bool const has_all_of_his = count_of(owner) >= most_of_an_owner;
  return std::all_of(all_.begin(), all_.end(), [&](process const& p) {
    return p.is_late || (has_all_of_his && p.owner != owner);
  });
}

void sync_processes::add(pid_t pid, uid_t uid) {
  all_.push_back({pid, owner_by(owner_of_, uid), false});
}

bool sync_processes::has_ended(pid_t pid) {
  if (!is_reaped(pid)) return false;
  std::erase_if(all_, [pid](process const& p) { return p.pid == pid; });
  return true;
}

void sync_processes::end(pid_t pid) {
  if (has_ended(pid)) return;
  kill(pid, SIGKILL);
  for (process& p : all_)
    if (p.pid == pid) p.is_late = true;
}

void sync_processes::reap() {
  std::erase_if(all_, [](process const& p) { return p.is_late && is_reaped(p.pid); });
}

}  // namespace sluice::epochs
