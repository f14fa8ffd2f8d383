// SPDX-License-Identifier: Apache-2.0
// The journal lets go of a file, or of all that it has, before something happens that it must not
// undo: a write past it, a sync of everything, a process that nobody sees any more.
#include <errno.h>
#include <sys/stat.h>

#include "order/ask.h"
#include "order/barriers.h"
#include "order/home.h"
#include "sys.h"

namespace sluice::order {

using abi::order_count;
using abi::order_request;

// The journal has no live record of the inode any more, or recovery is told to leave it alone.
static void drain(int fd, file_now const& f) {
  if (durable.area->head.generation.load() == 0) return;  // there never was a journal
  answer const a = ask(order_request::drain, fd, f);
  if (a.what == answer::done && a.error == 0) return;
  if (fd == no_fd)
    sync_everything(f.device);
  else
    without_daemon(fd, f, order_request::drain);
}

void let_go(int fd, file_now const& f) {
  if (S_ISREG(f.mode) && is_logged(f)) drain(fd, f);
}

void bypass(int fd, file_now const& f) {
  if (f.key == abi::no_key || (flags_of(f) & abi::order_apart) != 0) return;
  abi::order_set& s = abi::set_of(*durable.area, f.key);
  // Whoever finds the flag, but not yet that the drain after it is over, drains as well: the
  // journal may still have records that must not come over what is written next.
  auto const note = [&](std::uint64_t flag) {
    return abi::note_inode(s, f.key, [&](abi::order_inode& i) { i.state.fetch_or(flag); });
  };
  if (!note(abi::order_bypass)) s.overflow.store(1);
  drain(fd, f);
  note(abi::order_apart);
}

int sync_everything(std::uint64_t device) {
  bool const is_void = before_sync();
  if (device == 0) sys::act(SYS_sync);
  int error = sync_home(false, device);
  // What could not be reached by its tree: then all of the machine. That tells of no errors.
  bool const is_told = error == 0 || is_of_disk(error);
  if (!is_told) {
    sys::act(SYS_sync);
    error = 0;
  }
  after_sync(is_void, false);
  return error;
}

bool before_sync() {
  if (!sees() || durable.area->head.generation.load() == 0) return false;
  return ask(order_request::sync_all, -1, {}).what != answer::done && begin_void();
}

void after_sync(bool is_void, bool was_all) {
  if (is_void) end_void(was_all);
}

void go_blind() {
  wait_for_barriers();
  durable.area->head.blind.fetch_add(1);
  after_sync(before_sync(), false);
}

void see_again() { durable.area->head.blind.fetch_sub(1); }

}  // namespace sluice::order
