// SPDX-License-Identifier: Apache-2.0
// Logs that tell what a thread does next: after a write to one of them has succeeded, its text is
// looked at. The bodies stand before libc only in a job whose policy names a log.
#include <string_view>

#include "extras.h"
#include "place.h"
#include "readable.h"
#include "roles.h"
#include "rows.h"
#include "stream.h"

namespace sluice::context {

// The calls that carry text: LOGGED(symbol).
#define LOGGED_CALLS      \
  LOGGED(write)           \
  LOGGED(pwrite)          \
  LOGGED(writev)          \
  LOGGED(pwritev)         \
  LOGGED(pwritev2)        \
  LOGGED(fwrite)          \
  LOGGED(fwrite_unlocked) \
  LOGGED(fputs)           \
  LOGGED(fputs_unlocked)

namespace next {
#define LOGGED(sym) static constinit decltype(real::sym) sym = nullptr;
LOGGED_CALLS
#undef LOGGED
}  // namespace next

namespace {

unsigned class_of(int fd) { return peek_fd(fd) >> entry_path_shift; }

bool wants(int fd) { return fd >= 0 && !self.is_vfork_child && roles::is_log(class_of(fd)); }

void note(int fd, void const* from, std::size_t size) {
  auto const* const text = static_cast<char const*>(from);
  if (size > core::most_log_bytes) size = core::most_log_bytes;
  if (size != 0 && can_read(text, size)) roles::note_written(class_of(fd), {text, size});
}

void note_parts(int fd, iovec const* parts, int count) {
  constexpr int most_parts = 64;
  if (count > most_parts) count = most_parts;
  if (count <= 0 || !can_read(parts, static_cast<unsigned>(count))) return;
  for (int i = 0; i < count; ++i) note(fd, parts[i].iov_base, parts[i].iov_len);
}

template <class Real>
ssize_t written(int fd, void const* from, Real&& real_call) {
  ssize_t const n = real_call();
  if (n > 0 && wants(fd)) note(fd, from, static_cast<std::size_t>(n));
  return n;
}

template <class Real>
ssize_t written_parts(int fd, iovec const* parts, int count, Real&& real_call) {
  ssize_t const n = real_call();
  if (n > 0 && wants(fd)) note_parts(fd, parts, count);
  return n;
}

void note_line(FILE* f, char const* line) {
  if (int const fd = fd_of(f); wants(fd) && can_read_text(line))
    note(fd, line, __builtin_strlen(line));
}

}  // namespace

namespace body {

namespace {

ssize_t write(int fd, void const* from, size_t size) {
  return written(fd, from, [&] { return next::write(fd, from, size); });
}

ssize_t pwrite(int fd, void const* from, size_t size, off_t at) {
  return written(fd, from, [&] { return next::pwrite(fd, from, size, at); });
}

ssize_t writev(int fd, iovec const* parts, int count) {
  return written_parts(fd, parts, count, [&] { return next::writev(fd, parts, count); });
}

ssize_t pwritev(int fd, iovec const* parts, int count, off_t at) {
  return written_parts(fd, parts, count, [&] { return next::pwritev(fd, parts, count, at); });
}

ssize_t pwritev2(int fd, iovec const* parts, int count, off_t at, int flags) {
  return written_parts(fd, parts, count,
                       [&] { return next::pwritev2(fd, parts, count, at, flags); });
}

size_t fwrite(void const* from, size_t size, size_t count, FILE* f) {
  size_t const n = next::fwrite(from, size, count, f);
  if (int const fd = n != 0 ? fd_of(f) : -1; wants(fd)) note(fd, from, n * size);
  return n;
}

size_t fwrite_unlocked(void const* from, size_t size, size_t count, FILE* f) {
  size_t const n = next::fwrite_unlocked(from, size, count, f);
  if (int const fd = n != 0 ? fd_of(f) : -1; wants(fd)) note(fd, from, n * size);
  return n;
}

int fputs(char const* line, FILE* f) {
  int const r = next::fputs(line, f);
  if (r >= 0) note_line(f, line);
  return r;
}

int fputs_unlocked(char const* line, FILE* f) {
  int const r = next::fputs_unlocked(line, f);
  if (r >= 0) note_line(f, line);
  return r;
}

}  // namespace

}  // namespace body

namespace {

// The area is mapped already, for roles are asked before rules are planned.
bool begin(char*) { return roles::reads_logs(); }

void stand_before_logs() {
#define LOGGED(sym) STAND_BEFORE_REAL(sym)
  LOGGED_CALLS
#undef LOGGED
}

}  // namespace

alignas(extra) constinit extra const hooks = {.beside = abi::roles_beside,
                                              .shared_pages = extra_pages(sizeof(abi::role_area)),
                                              .private_pages = extra_pages(sizeof(roles::memory)),
                                              .begin = begin,
                                              .stand_before_libc = stand_before_logs};

}  // namespace sluice::context
