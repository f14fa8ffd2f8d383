// SPDX-License-Identifier: Apache-2.0
// Attach and detach. The library was loaded under the name <job directory>/libinterpose.so, with a
// file `segment` beside it; whatever is wrong with that file, the program runs as if we were not
// there.
#pragma once

#include <cstdint>

#include "abi/segment.h"
#include "state.h"

namespace sluice {

/// `no`: there is no job, or this was not the first time. `before_libc`: the job has extras, which
/// wait to stand before libc.
enum class attached : std::uint8_t { no, yes, before_libc };
/// Maps the segment and makes all that calls ask, once.
attached attach();

/// A sandbox that is tried, and what was before it.
struct outside {
  bool forbids = false;  // it may end programs
  std::uint8_t is_vfork_child = 0;
};
/// As `mode` below: one without a filter, in which no call of ours is expected.
inline constexpr long other_sandbox = 0;
/// A filter that cannot be read is refused: programs ask this way whether there are any.
bool only_asks(long mode, long filter);
/// From now on nothing but the program's own calls. `mode` and `filter`: as prctl(2) has them.
outside enter_sandbox(long mode, long filter);
/// The kernel has answered.
void after_sandbox(outside const& before, bool is_in);

/// Our entry among those that libc gives to what it starts itself (system, popen). Null: there is
/// none, or it cannot be taken out.
char** entry_in_environment();
void leave_environment(char** entry);
/// The shell of system() or popen() goes without us where it could not open us.
void before_libc_starts_a_shell();

/// Other threads only try sandboxes, so far as is known: waits until the kernel has answered them,
/// but not for long.
void await_tries();

/// Around a fork: nobody tries a sandbox meanwhile, for its child would not know what came of it.
/// True: its parent owes end_fork(). A child's word of it is new.
bool begin_fork();
void end_fork();

/// Calls enter(), by which the program enters a sandbox. It did unless the answer is an error, or
/// above `most`.
template <class Enter>
long into_sandbox(long mode, long filter, Enter&& enter, long most = __LONG_MAX__) {
  if (only_asks(mode, filter)) return enter();
  char** const entry = entry_in_environment();
  outside const before = enter_sandbox(mode, filter);
  long const r = enter();
  bool const is_in = r >= 0 && r <= most;
  after_sandbox(before, is_in);
  if (is_in && entry != nullptr && is_in_sandbox()) leave_environment(entry);
  return r;
}

}  // namespace sluice
