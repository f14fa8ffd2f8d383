// SPDX-License-Identifier: Apache-2.0
#include "apart.h"

#include <linux/close_range.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <sched.h>

#include "attach.h"
#include "place.h"
#include "rows.h"

namespace sluice {

namespace {

// New mounts and new users come with a directory and a root of their own.
constexpr int brings_names = CLONE_NEWNS | CLONE_NEWUSER;

// This changes nothing for the only thread of a process, and is refused where there are others.
// Threads that are made later share with their maker, so those that are there count.
bool has_other_threads() { return !may_ask() || sys::call(SYS_unshare, CLONE_THREAD) != 0; }

// Times in the segment mean nothing by the clock of another time namespace: a wait might never end,
// and its tickets hold up the others. So what lives by such a clock passes, as in a sandbox.
template <class Enter>
int under_another_clock(Enter&& enter) {
  return static_cast<int>(into_sandbox(other_sandbox, 0, enter));
}

// The kinds of namespaces that setns(fd, what) enters: bits of unshare(); all where nobody may be
// asked.
long kinds_of(int fd, int what) {
  if (what != 0) return what;
  if (!may_ask()) return ~0L;
  long const kind = sys::call(SYS_ioctl, fd, NS_GET_NSTYPE);
  return sys::failed(kind) ? 0 : kind;
}

void mark(std::uint8_t what) {
  if (!self.is_vfork_child && has_other_threads()) stage.apart.fetch_or(what);
}

}  // namespace

void has_own_descriptors() {
  mark(apart_descriptors);
  if ((stage.apart.load() & apart_descriptors) != 0) forget_fds(0, fd_table_size - 1);
}

void has_own_names() {
  mark(apart_names);
  if (self.is_vfork_child) return;
  forget_cwd();
  forget_names();
}

void forget_range(unsigned first, unsigned last, int flags) {
  if (may_touch_table() && (flags & CLOSE_RANGE_CLOEXEC) == 0) forget_fds(first, last);
}

void note_own_range(long result, int flags) {
  if (result == 0 && stage.mine != nullptr && (flags & CLOSE_RANGE_UNSHARE) != 0)
    has_own_descriptors();
}

namespace slow {

int unshare(int what) {
  if ((what & CLONE_NEWTIME) != 0 && minds_sandboxes())
    return under_another_clock([=] { return real::unshare(what); });
  int const r = real::unshare(what);
  if (r != 0 || stage.mine == nullptr) return r;
  if ((what & CLONE_FILES) != 0) has_own_descriptors();
  if ((what & (CLONE_FS | brings_names)) != 0) has_own_names();
  return r;
}

int setns(int fd, int what) {
  long const kinds = minds_sandboxes() ? kinds_of(fd, what) : 0;
  if ((kinds & CLONE_NEWTIME) != 0)
    return under_another_clock([=] { return real::setns(fd, what); });
  int const r = real::setns(fd, what);
  if (r == 0 && stage.mine != nullptr && (kinds & brings_names) != 0) has_own_names();
  return r;
}

}  // namespace slow
}  // namespace sluice
