// SPDX-License-Identifier: Apache-2.0
// stdio on durable targets. The write itself happens inside libc; the buffers of the FILE tell how
// much went out, the file position after the call where it ended. Bytes that stay in a buffer are
// remembered by fd, because libc may write them without a call of ours: at exit, or when another
// stream is read.
#include <fcntl.h>
#include <sys/stat.h>

#include "order/barriers.h"
#include "order/bodies.h"
#include "rows.h"
#include "stream.h"
#include "sys.h"

namespace sluice::order {

namespace next {
#define STREAM(sym) static constinit decltype(real::sym) sym = nullptr;
#define WRITES(sym, ...) STREAM(sym)
#include "calls.def"
#include "order/order.def"
}  // namespace next

namespace {

constexpr int error_seen = 0x20;  // _IO_ERR_SEEN: part of a buffer may have gone out

struct stream_before {
  bool ours;
  int fd;
  stream_view view;
  std::int64_t position;  // where the file stood; -1 not asked
  std::uint64_t room;     // of the buffer: a stream that was read stands ahead by that at most
};

// Calls that may move the file position besides writing.
constexpr bool may_seek(call id) {
  switch (id) {
    case call::fseek:
    case call::fseeko:
    case call::fsetpos:
    case call::ftell:
    case call::ftello:
    case call::fflush:
    case call::fflush_unlocked:
    case call::setvbuf:
    case call::rewind:
      return true;
    default:
      return false;
  }
}

// Whether the call may write, the gate asks: with a buffer nobody knows before.
int closed_for_stream(FILE* f, bool seeks) {
  if (!has_barriers()) return 0;
  if (f == nullptr) return pass_barriers();
  bool const may_write = !seeks || look(f).unwritten != 0;
  int const fd = may_write ? fd_of(f) : -1;
  return fd >= 0 ? closed_for(fd) : 0;
}

stream_before look_before(FILE* f, bool seeks) {
  stream_before b = {false, fd_of(f), look(f), -1, 0};
  b.ours = b.fd >= 0 && is_durable(b.fd);
  if (!b.ours || !seeks || b.view.unwritten == 0) return b;
  b.position = sys::call(SYS_lseek, b.fd, 0, 1 /* SEEK_CUR */);
  b.room = static_cast<std::uint64_t>(f->_IO_buf_end - f->_IO_buf_base);
  return b;
}

// `n` bytes went out, and ended at `end` or began at most `room` before `position`.
void note_flushed(stream_before const& b, std::uint64_t n, bool doubtful) {
  file_now f;
  int const fd = b.fd;
  if (was_unwatched() || !look_at_written(fd, f) || !is_watched(f)) return;
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  if ((flags & (O_DIRECT | O_SYNC | O_DSYNC)) != 0) {
    if (see(fd, f)) bypass(fd, f);  // a mark has more of it
    return;
  }
  std::int64_t const now = sys::call(SYS_lseek, fd, 0, 1 /* SEEK_CUR */);
  bool const appends = (flags & O_APPEND) != 0;
  if (doubtful || now < 0 || (b.position < 0 && static_cast<std::uint64_t>(now) < n) ||
      (b.position >= 0 && appends))
    return note_whole(f);
  if (b.position < 0)
    return note_bytes(f, static_cast<std::uint64_t>(now) - n, static_cast<std::uint64_t>(now));
  auto const at = static_cast<std::uint64_t>(b.position);
  note_bytes(f, at < b.room ? 0 : at - b.room, at + n);
}

void look_after(stream_before const& b, FILE* f, std::uint64_t moved) {
  if (!b.ours) return;
  std::uint64_t const left = look(f).unwritten;
  bool const doubtful = moved == unknown_bytes || (f->_flags & error_seen) != 0;
  std::uint64_t const given = doubtful ? left : b.view.unwritten + moved;
  if (doubtful || given > left) note_flushed(b, given - left, doubtful);
  note_pending(b.fd, left != 0 || moved == unknown_bytes);
}

}  // namespace

namespace body {

// With doubt about the bytes kept back, all is noted at every fsync: see is_pending.
#define WRITES(sym, ret, params, args, stream, moved)                 \
  static ret sym params {                                             \
    int const error = closed_for_stream(stream, may_seek(call::sym)); \
    if (error != 0) return refused<ret>(error);                       \
    stream_before const b = look_before(stream, may_seek(call::sym)); \
    ret const r = next::sym args;                                     \
    if ((stream) == nullptr)                                          \
      pending_flushed();                                              \
    else                                                              \
      look_after(b, stream, static_cast<std::uint64_t>(moved));       \
    return r;                                                         \
  }
#include "calls.def"

namespace {

void rewind(FILE* f) {
  if (look(f).unwritten != 0) wait_for_barriers();
  stream_before const b = look_before(f, true);
  next::rewind(f);
  look_after(b, f, 0);
}

int flags_of_mode(char const* mode) {
  if (!can_read_text(mode)) return 0;
  int flags = mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT : 0;
  for (unsigned i = 1; i < 8 && mode[i] != 0 && mode[i] != ','; ++i)
    if (mode[i] == 'x') flags |= O_EXCL;
  return flags;
}

FILE* fopen(char const* path, char const* mode) {
  int const flags = flags_of_mode(mode);
  if (!may_change(flags)) return next::fopen(path, mode);
  if (int const error = closed_for_names(); error != 0) return refused<FILE*>(error);
  opening const o = before_open(sys::at_cwd, path, flags);
  FILE* const f = next::fopen(path, mode);
  if (f != nullptr) after_open(o, f->_fileno);
  return f;
}

// What a stream keeps back goes out when it ends, and then there is no fd to ask.
struct stream_end {
  bool owes;
  file_now file;
};

stream_end before_end(FILE* f) {
  stream_end e = {};
  int const fd = fd_of(f);
  if (fd < 0 || !is_durable(fd)) return e;
  e.owes = (look(f).unwritten != 0 || is_pending(fd)) && see(fd, e.file) && S_ISREG(e.file.mode);
  note_pending(fd, false);
  return e;
}

// A stream is closed whatever came of the barriers, and writes what it has.
void before_end_of(FILE* f) {
  if (!has_barriers()) return;
  int const fd = fd_of(f);
  if (look(f).unwritten != 0) wait_for_barriers();
  if (fd >= 0) before_close(static_cast<unsigned>(fd), static_cast<unsigned>(fd));
}

int fclose(FILE* f) {
  before_end_of(f);
  stream_end const e = before_end(f);
  int const r = next::fclose(f);
  if (e.owes) note_whole(e.file);
  return r;
}

FILE* freopen(char const* path, char const* mode, FILE* f) {
  before_end_of(f);
  if (flags_of_mode(mode) != 0) wait_for_barriers();
  stream_end const e = before_end(f);
  opening const o = before_open(sys::at_cwd, path, flags_of_mode(mode));
  FILE* const r = next::freopen(path, mode, f);
  if (e.owes) note_whole(e.file);
  if (r != nullptr) after_open(o, r->_fileno);
  return r;
}

}  // namespace

}  // namespace body

void stand_between_streams() {
#define STREAM(sym) STAND_BEFORE_REAL(sym)
#define WRITES(sym, ...) STREAM(sym)
#include "calls.def"
#include "order/order.def"
}

}  // namespace sluice::order
