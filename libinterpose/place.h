// SPDX-License-Identifier: Apache-2.0
// Finds the file tree of a call. For fds there is a flat table, filled when the fd is made and
// checked against the kernel at its first use. For paths it is the directory they lie in, resolved
// by the kernel (so symlinks, `..`, bind mounts and relative paths are right) and remembered for a
// second.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "readable.h"
#include "state.h"
#include "sys.h"

struct __dirstream;

namespace sluice {

enum class place_kind : std::uint8_t { nothing, fd, fd_now, path, new_link, pattern };

/// Where a call works, before anything is looked up. fd_now: the caller asked not to sleep
/// (RWF_NOWAIT).
struct place {
  place_kind kind;
  std::uint16_t low;  // of the offset in the file, where the call says it: its low 12 bits
  int fd;             // fd, or the directory a relative path starts at
  char const* path;
};

inline constexpr int rwf_nowait = 8;

inline place on_fd(int fd) { return {place_kind::fd, 0, fd, nullptr}; }
inline place on_fd_at(int fd, std::int64_t at) {
  return {place_kind::fd, static_cast<std::uint16_t>(at & 0xfff), fd, nullptr};
}
/// An offset of -1 is the position of the file.
inline place on_fd_now(int fd, int flags, std::int64_t at) {
  place where = on_fd_at(fd, at == -1 ? 0 : at);
  if ((flags & rwf_nowait) != 0) where.kind = place_kind::fd_now;
  return where;
}
inline place on_path(char const* path) { return {place_kind::path, 0, -100, path}; }
inline place on_at(int dir, char const* path) { return {place_kind::path, 0, dir, path}; }
inline place on_new_link(char const* path) { return {place_kind::new_link, 0, -100, path}; }
inline place on_new_link_at(int dir, char const* path) {
  return {place_kind::new_link, 0, dir, path};
}
inline place on_pattern(char const* glob) { return {place_kind::pattern, 0, -100, glob}; }
inline place on_first(char* const* paths) { return on_path(can_read(paths) ? paths[0] : nullptr); }

inline std::size_t bytes_of(iovec const* parts, int count) {
  std::size_t sum = 0;
  if (count <= 0 || count > 1024 || !can_read(parts, static_cast<unsigned>(count))) return 0;
  for (int i = 0; i < count; ++i) sum += parts[i].iov_len;
  return sum > (std::size_t{1} << 31) ? 0 : sum;
}

/// What a read of `size` bytes at `at` can bring at most. For calls that do not say what they
/// moved.
std::uint64_t bytes_there(int fd, std::int64_t at, std::uint64_t size);
/// What asynchronous I/O will move: a read what there is, a write all it was given.
inline std::uint64_t bytes_of_request(bool reads, int fd, std::int64_t at, std::uint64_t size) {
  return reads ? bytes_there(fd, at, size) : size;
}

/// The table entry of `fd` after asking the kernel: what it is now. ask_fd leaves the table alone.
unsigned verify_fd(int fd, unsigned path_class, unsigned said);
/// `said`: the entry that its name had when it was opened. `file`: what the kernel says of it.
unsigned ask_fd(int fd, unsigned path_class, unsigned said, sys::file_identity& file);
inline unsigned ask_fd(int fd, unsigned path_class) {
  sys::file_identity unused;
  return ask_fd(fd, path_class, entry_unknown, unused);
}
/// Does what verify_fd() does where somebody wants to know the inode, too (order/notes.cc).
using verifier = unsigned (*)(int fd, unsigned path_class, unsigned said);
extern verifier verify_and_remember;
/// The entry of the directory that holds `path`, or of what `path` names when it is a target's
/// root.
[[gnu::hot]] unsigned look_up_path(int dir, char const* path);
/// Whether ask_clock() is to be called before the memo is believed: it forgets what is old.
inline bool is_due(path_memo& m) { return --m.uses_left < 0; }
void ask_clock(path_memo& m);
/// The same when its directory is the one this thread named last; entry_unknown when that takes a
/// closer look.
[[gnu::always_inline]] inline unsigned recall(path_memo& m, int dir, char const* path) {
  std::uint32_t const version = m.version.load(std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_acquire);
  if (m.serials != stage.serials.load(std::memory_order_relaxed)) [[unlikely]]
    return entry_unknown;
  bool const is_likely = is_in(*m.where, reinterpret_cast<std::uintptr_t>(path));
  if (!is_likely && !is_known(path) && !is_asked_text(path)) [[unlikely]]
    return entry_unknown;
  if (dir != sys::at_cwd && path[0] != '/') [[unlikely]]
    return entry_unknown;
  if (!core::is_name_in(path, m.text, m.length)) return entry_unknown;
  unsigned const entry = m.entry;
  std::atomic_signal_fence(std::memory_order_acquire);
  return m.version.load(std::memory_order_relaxed) == version ? entry : entry_unknown;
}
/// The class of path rules of `path` below `dir`, as a table entry's high byte.
unsigned path_class_of(int dir, char const* path);

inline bool in_table(int fd) { return fd >= 0 && static_cast<unsigned>(fd) < fd_table_size; }

/// Between vfork and exec the table is the parent's.
inline bool may_touch_table() { return !self.is_vfork_child && stage.mine != nullptr; }

/// What the table says of it, whether anybody has looked or not.
inline unsigned peek_fd(int fd) {
  return in_table(fd) ? stage.mine->entry_of(fd).load(std::memory_order_relaxed) : entry_unknown;
}

/// An entry that needs no look at the kernel: its low byte, with the sign for `unverified`.
inline bool is_known(unsigned entry) {
  static_assert(entry_unverified == 0x80 && entry_unknown == 0);
  return static_cast<std::int8_t>(entry) > 0;
}

inline unsigned entry_of_fd(int fd) {
  if (!in_table(fd)) [[unlikely]]
    return fd < 0 ? entry_outside : verify_fd(fd, 0, entry_unknown);
  unsigned const entry = stage.mine->entry_of(fd).load(std::memory_order_relaxed);
  if (is_known(entry)) [[likely]]
    return entry;
  return verify_fd(fd, entry >> entry_path_shift, entry);
}

inline void set_fd(int fd, unsigned entry) {
  if (in_table(fd) && (stage.apart.load(std::memory_order_relaxed) & apart_descriptors) == 0)
      [[likely]]
    stage.mine->entry_of(fd).store(static_cast<fd_entry>(entry), std::memory_order_relaxed);
}

/// The current directory may be another one from now on.
inline void forget_cwd() {
  stage.cwd_entry.store(entry_unknown);
  stage.serials.fetch_add(cwd_step);
  stage.cwd_entry.store(entry_unknown);  // see entry_of_cwd()
}

/// What a name means may be another thing from now on.
inline void forget_names() { stage.serials.fetch_add(name_step, std::memory_order_relaxed); }

/// Forgets [first, last].
void forget_fds(unsigned first, unsigned last);

/// Remembers where a shared writable mapping came from, so that msync can be charged to its target.
void note_mapping(void const* address, std::size_t size, unsigned entry);
void forget_mapping(void const* address, std::size_t size);
unsigned mapping_entry(void const* address);

/// The entry of a place; entry_outside when nothing of ours.
unsigned resolve(place const& where);

}  // namespace sluice
