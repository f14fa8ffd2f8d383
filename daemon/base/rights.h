// SPDX-License-Identifier: Apache-2.0
// Capabilities in a thread of their own. What reads strangers' words has none, and asks that thread
// for the few calls that need them. So a mistake in what it makes of those words opens and changes
// nothing that is not its own. It is no wall against who runs code of his own in the process: the
// other thread is in his reach.
#pragma once

#include <functional>

namespace sluice {

/// Something to call that outlives the call it is passed to. Unlike std::function it never
/// allocates, so it serves between fork and the end of a process too.
class task_ref {
 public:
  template <class Task>
  task_ref(Task const& task)
      : task_(&task), run_([](void const* at) { (*static_cast<Task const*>(at))(); }) {}
  void operator()() const { run_(task_); }

 private:
  void const* task_;
  void (*run_)(void const*);
};

/// Makes the thread. It begins with the capabilities of its maker, and first runs `settle`, which
/// gives up those that it is not to have; false: there is nothing to keep, and no thread stays.
/// What `settle` throws is thrown here. Call it once, before the caller gives up its own.
void keep_rights(std::function<bool()> const& settle);

/// Runs `task` in that thread and returns when it is done; in the caller's, where there is no such
/// thread. What it throws is thrown here, and errno is what it left. A task never waits for a user.
void with_rights(task_ref task);

}  // namespace sluice
