// SPDX-License-Identifier: Apache-2.0
#define FUSE_USE_VERSION 31
#include "disk_server.h"

#include <fcntl.h>
#include <fuse3/fuse.h>
#include <linux/falloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sluice::crash {

void append(shared* s, std::byte* arena, entry e, void const* bytes) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  e.at_ns = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
            static_cast<std::uint64_t>(now.tv_nsec);
  pthread_mutex_lock(&s->mutex);
  std::uint64_t const room = sizeof e + (e.what == entry::write ? (e.bytes + 7) / 8 * 8 : 0);
  if (s->used + room > s->arena_bytes) {
    s->overflow = 1;
  } else {
    std::memcpy(arena + s->used, &e, sizeof e);
    if (e.what == entry::write) {
      std::byte* const to = arena + s->used + sizeof e;
      bytes != nullptr ? std::memcpy(to, bytes, e.bytes) : std::memset(to, 0, e.bytes);
    }
    s->used += room;
    ++s->entries;
  }
  pthread_mutex_unlock(&s->mutex);
}

namespace {

// A server process serves nothing else.
shared* served = nullptr;
int served_image = -1;
std::byte* served_arena = nullptr;
disk_model served_model;

/// Short times by spinning: a sleep is never shorter than some tens of microseconds.
void take_time(unsigned us) {
  if (us >= 50) return void(usleep(us));
  timespec now = {}, begin = {};
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - begin.tv_sec) * 1'000'000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

constexpr unsigned none = ~0u;

unsigned disk_of(char const* path) {
  for (unsigned which = 0; which < served->disks; ++which)
    if (std::strcmp(path, disk_names[which]) == 0) return which;
  return none;
}

/// Files that programs write to, to tell the recorder something.
bool is_marks(char const* path) { return std::strcmp(path, "/marks") == 0; }
bool is_refuse(char const* path) { return std::strcmp(path, "/refuse") == 0; }
bool is_ear(char const* path) { return is_marks(path) || is_refuse(path); }

std::uint64_t size_of(unsigned which) { return served->begin[which + 1] - served->begin[which]; }

bool refuses(unsigned which, std::uint32_t kind, off_t offset = 0) {
  pthread_mutex_lock(&served->mutex);
  refusal& now = served->refuses[which];
  bool const is_meant = (now.kinds & kind) != 0;
  bool const yes = is_meant && now.after == 0 && now.count != 0;
  if (is_meant && now.after != 0) --now.after;
  if (yes) {
    --now.count;
    ++served->refused;
  }
  pthread_mutex_unlock(&served->mutex);
  std::uint64_t const at = served->begin[which] + static_cast<std::uint64_t>(offset);
  if (yes) append(served, served_arena, {entry::refused, which, at, 0}, nullptr);
  return yes;
}

int on_getattr(char const* path, struct stat* st, fuse_file_info*) {
  *st = {};
  if (std::strcmp(path, "/") == 0) {
    st->st_mode = S_IFDIR | 0700;
    st->st_nlink = 2;
    return 0;
  }
  unsigned const which = disk_of(path);
  if (which == none && !is_ear(path)) return -ENOENT;
  st->st_mode = S_IFREG | 0600;
  st->st_nlink = 1;
  st->st_size = which == none ? 0 : static_cast<off_t>(size_of(which));
  return 0;
}

int on_open(char const* path, fuse_file_info* file) {
  if (disk_of(path) == none && !is_ear(path)) return -ENOENT;
  file->direct_io = 1;
  return 0;
}

std::size_t within(unsigned which, std::size_t bytes, off_t offset) {
  auto const at = static_cast<std::uint64_t>(offset);
  return at >= size_of(which) ? 0 : std::min<std::uint64_t>(bytes, size_of(which) - at);
}

int on_read(char const* path, char* to, std::size_t bytes, off_t offset, fuse_file_info*) {
  unsigned const which = disk_of(path);
  if (which == none) return 0;
  if (refuses(which, refusal::reads, offset)) return -EIO;
  bytes = within(which, bytes, offset);
  return pread(served_image, to, bytes, static_cast<off_t>(served->begin[which]) + offset) ==
                 static_cast<ssize_t>(bytes)
             ? static_cast<int>(bytes)
             : -EIO;
}

/// Without bytes: zeros, which are a hole.
int store(unsigned which, void const* from, std::size_t bytes, off_t offset) {
  off_t const at = static_cast<off_t>(served->begin[which]) + offset;
  bool const is_done = from != nullptr
                           ? pwrite(served_image, from, bytes, at) == static_cast<ssize_t>(bytes)
                           : fallocate(served_image, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
                                       static_cast<off_t>(bytes)) == 0;
  if (!is_done) return -EIO;
  if (served_model.is_on())
    take_time(served_model.write_us);
  else
    append(served, served_arena, {entry::write, which, static_cast<std::uint64_t>(at), bytes},
           from);
  return static_cast<int>(bytes);
}

int on_mark(char const* from, std::size_t bytes) {
  std::string const said(from, bytes);
  unsigned stream = 0;
  unsigned long long epoch = 0;
  if (std::sscanf(said.c_str(), "%u %llu", &stream, &epoch) != 2) return -EINVAL;
  append(served, served_arena, {entry::mark, stream, epoch, 0}, nullptr);
  return static_cast<int>(bytes);
}

int on_refuse(char const* from, std::size_t bytes) {
  std::string const said(from, bytes);
  unsigned which = 0;
  refusal what;
  if (std::sscanf(said.c_str(), "%u %u %u %u", &which, &what.kinds, &what.after, &what.count) !=
          4 ||
      which >= served->disks)
    return -EINVAL;
  pthread_mutex_lock(&served->mutex);
  served->refuses[which] = what;
  pthread_mutex_unlock(&served->mutex);
  return static_cast<int>(bytes);
}

int on_write(char const* path, char const* from, std::size_t bytes, off_t offset, fuse_file_info*) {
  if (is_marks(path)) return on_mark(from, bytes);
  if (is_refuse(path)) return on_refuse(from, bytes);
  unsigned const which = disk_of(path);
  bytes = within(which, bytes, offset);
  if (bytes == 0) return -ENOSPC;
  if (refuses(which, refusal::writes, offset)) return -EIO;
  return store(which, from, bytes, offset);
}

int on_fsync(char const* path, int, fuse_file_info*) {
  unsigned const which = disk_of(path);
  if (which == none) return 0;
  if (served_model.is_on()) {
    pthread_mutex_lock(&served->mutex);
    take_time(served_model.flush_us);
    pthread_mutex_unlock(&served->mutex);
    return 0;
  }
  if (refuses(which, refusal::flushes)) return -EIO;
  append(served, served_arena, {entry::flush, which, 0, 0}, nullptr);
  return 0;
}

/// A hole is zeros, written.
int on_fallocate(char const* path, int, off_t offset, off_t bytes, fuse_file_info*) {
  unsigned const which = disk_of(path);
  if (which == none) return -EINVAL;
  if (refuses(which, refusal::writes, offset)) return -EIO;
  bytes = static_cast<off_t>(within(which, static_cast<std::size_t>(bytes), offset));
  int const status =
      bytes == 0 ? 0 : store(which, nullptr, static_cast<std::size_t>(bytes), offset);
  return status < 0 ? status : 0;
}

}  // namespace

void serve_disks(std::string dir, served_disks const& what) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_TIMERSLACK, 1);
  served = what.state;
  served_image = what.image_fd;
  served_arena = what.arena;
  served_model = what.model;
  fuse_operations acts = {};
  acts.getattr = on_getattr;
  acts.open = on_open;
  acts.read = on_read;
  acts.write = on_write;
  acts.fsync = on_fsync;
  acts.fallocate = on_fallocate;
  char name[] = "recorder";
  char* words[] = {name, nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, words);
  fuse* const file_system = fuse_new(&args, &acts, sizeof acts, nullptr);
  if (file_system == nullptr || fuse_mount(file_system, dir.c_str()) != 0) _exit(1);
  if (unshare(CLONE_NEWNS) != 0 || umount2(dir.c_str(), MNT_DETACH) != 0) _exit(1);
  // One thread, for an order of entries.
  if (!served_model.is_on()) _exit(fuse_loop(file_system));
  _exit(fuse_loop_mt(file_system, 0));
}

}  // namespace sluice::crash
