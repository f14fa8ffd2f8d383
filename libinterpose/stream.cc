// SPDX-License-Identifier: Apache-2.0
// See stream.h: what stdio did, paid after the call.
#include "stream.h"

#include "attach.h"
#include "meter.h"
#include "rows.h"

namespace sluice {

void after_read(call id, FILE* f, stream_view const& before, std::uint64_t moved) {
  stream_view const now = look(f);
  std::uint64_t bytes = 0;
  if (moved == unknown_bytes) {
    if (now.unread <= before.unread) return;
    bytes = now.unread;
  } else {
    if (moved <= before.unread && (moved != 0 || before.unread != 0)) return;
    std::uint64_t const seen = moved + now.unread;
    bytes = seen > before.unread ? seen - before.unread : 0;
  }
  if (int const fd = fd_of(f); fd >= 0)
    settle_after(id, core::op::read, fd, bytes, false, before.began_ns);
}

void after_write(call id, FILE* f, stream_view const& before, std::uint64_t moved) {
  std::uint64_t const left = look(f).unwritten;
  if (moved == unknown_bytes) moved = left < before.unwritten ? 0 : left - before.unwritten;
  std::uint64_t const given = before.unwritten + moved;
  if (given <= left) return;
  if (int const fd = fd_of(f); fd >= 0)
    settle_after(id, core::op::write, fd, given - left, false, before.began_ns);
}

namespace slow {

namespace {

// A stream by name: an open, and its fd enters the table as any other.
template <class Open>
FILE* open_stream(call id, place const& where, char const* mode, Open&& real_open) {
  visit v{id, core::op::open, when::cancels, false, 0, 0, 0};
  if ((stage.has_prices || stage.has_roles) && can_read(mode) && mode[0] != 'r')
    v.manner = visit::creates;
  bool const ours = enter_place(v, where);
  FILE* const f = real_open();
  if (f != nullptr) opened(f->_fileno, v);
  if (ours) leave(v, f == nullptr, 0);
  return f;
}

}  // namespace

FILE* fopen(char const* path, char const* mode) {
  return open_stream(call::fopen, on_path(path), mode, [&] { return real::fopen(path, mode); });
}

FILE* fdopen(int fd, char const* mode) { return real::fdopen(fd, mode); }

FILE* freopen(char const* path, char const* mode, FILE* f) {
  if (f == nullptr || path == nullptr) return real::freopen(path, mode, f);
  std::uint64_t const left = look(f).unwritten;
  if (int const fd = fd_of(f); fd >= 0 && left != 0)
    settle_after(call::freopen, core::op::write, fd, left, false);
  return open_stream(call::freopen, on_path(path), mode,
                     [&] { return real::freopen(path, mode, f); });
}

FILE* tmpfile() {
  return open_stream(call::tmpfile, on_path("/tmp/x"), "w+", [] { return real::tmpfile(); });
}

void rewind(FILE* f) {
  stream_view const before = look(f);
  real::rewind(f);
  after_write(call::rewind, f, before, 0);
}

FILE* popen(char const* command, char const* mode) {
  before_libc_starts_a_shell();
  FILE* const f = real::popen(command, mode);
  if (f != nullptr && !self.is_vfork_child) set_fd(f->_fileno, entry_outside);
  return f;
}

int fclose(FILE* f) {
  int const fd = fd_of(f);
  if (fd >= 0 && !self.is_vfork_child) {
    if (std::uint64_t const left = look(f).unwritten; left != 0)
      settle_after(call::fclose, core::op::write, fd, left, false);
    visit v{call::fclose, core::op::close, when::never, false, 0, 0, 0};
    v.began_ns = visit::untimed;
    enter_close(v, fd);
  }
  return real::fclose(f);
}

int vdprintf(int fd, char const* format, va_list list) {
  int const r = real::vdprintf(fd, format, list);
  if (r > 0) settle_after(call::vdprintf, core::op::write, fd, static_cast<unsigned>(r), false);
  return r;
}

int __vdprintf_chk(int fd, int flag, char const* format, va_list list) {
  int const r = real::__vdprintf_chk(fd, flag, format, list);
  if (r > 0)
    settle_after(call::__vdprintf_chk, core::op::write, fd, static_cast<unsigned>(r), false);
  return r;
}

}  // namespace slow
}  // namespace sluice
