// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/metadata.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "commands/calibrate/work.h"

namespace sluice::calibrate {

namespace {

constexpr unsigned batch = 32;
constexpr char const* attribute = "user.sluice";

}  // namespace

/// One of the names that a thread works on.
struct metadata_work::slot {
  int dir = -1;
  std::string name, other;
  int fd = -1;             // of the file, where the op works on one
  std::uint64_t turn = 0;  // so that a call changes something each time

  slot() = default;
  slot(slot&& from) noexcept
      : dir(from.dir),
        name(std::move(from.name)),
        other(std::move(from.other)),
        fd(std::exchange(from.fd, -1)),
        turn(from.turn) {}
  slot& operator=(slot&&) = delete;
  ~slot() {
    if (fd >= 0) close(fd);
  }
};

namespace {

using slot = metadata_work::slot;

// Each returns 0 or -1 with errno, as system calls do.
int nothing(slot&) { return 0; }

int open_and_close(slot const& s, int flags) {
  int const fd = openat(s.dir, s.name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0600);
  return fd < 0 ? -1 : close(fd);
}

int make(slot& s) { return open_and_close(s, O_CREAT | O_EXCL | O_WRONLY); }
int look(slot& s) { return open_and_close(s, O_RDONLY); }
int remove_name(slot& s) { return unlinkat(s.dir, s.name.c_str(), 0); }
int remove_other(slot& s) { return unlinkat(s.dir, s.other.c_str(), 0); }
int make_folder(slot& s) { return mkdirat(s.dir, s.name.c_str(), 0700); }
int remove_folder(slot& s) { return unlinkat(s.dir, s.name.c_str(), AT_REMOVEDIR); }
int make_link(slot& s) { return symlinkat("nowhere", s.dir, s.name.c_str()); }
int open_folder(slot& s) { return open_and_close(s, O_RDONLY | O_DIRECTORY); }

int hold(slot& s) {
  s.fd = openat(s.dir, s.name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  return s.fd < 0 ? -1 : 0;
}

int hold_folder(slot& s) {
  s.fd = openat(s.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return make(s) != 0 || s.fd < 0 ? -1 : 0;
}

int hold_page(slot& s) {
  char const text[page_bytes] = {};
  return hold(s) != 0 || pwrite(s.fd, text, sizeof text, 0) != ssize_t{page_bytes} ? -1
                                                                                   : fsync(s.fd);
}

int hold_attribute(slot& s) { return hold(s) != 0 ? -1 : fsetxattr(s.fd, attribute, "0", 1, 0); }

int dirty(slot& s) {
  char const text[page_bytes] = {static_cast<char>(++s.turn)};
  return pwrite(s.fd, text, sizeof text, 0) == ssize_t{page_bytes} ? 0 : -1;
}

int stat_name(slot& s) {
  struct stat st;
  return fstatat(s.dir, s.name.c_str(), &st, AT_SYMLINK_NOFOLLOW);
}

int ask_access(slot& s) { return faccessat(s.dir, s.name.c_str(), R_OK, 0); }

int ask_file_system(slot& s) {
  struct statfs fs;
  return fstatfs(s.dir, &fs);
}

int follow(slot& s) {
  char to[64];
  return readlinkat(s.dir, s.name.c_str(), to, sizeof to) > 0 ? 0 : -1;
}

int rename_name(slot& s) { return renameat(s.dir, s.name.c_str(), s.dir, s.other.c_str()); }

int link_name(slot& s) { return linkat(s.dir, s.name.c_str(), s.dir, s.other.c_str(), 0); }
int make_fifo(slot& s) { return mknodat(s.dir, s.name.c_str(), S_IFIFO | 0600, 0); }

int change_mode(slot& s) {
  return fchmodat(s.dir, s.name.c_str(), ++s.turn % 2 == 0 ? 0600 : 0640, 0);
}

int change_times(slot& s) {
  timespec const to[2] = {{static_cast<time_t>(++s.turn), 0}, {static_cast<time_t>(s.turn), 0}};
  return utimensat(s.dir, s.name.c_str(), to, AT_SYMLINK_NOFOLLOW);
}

int change_size(slot& s) { return ftruncate(s.fd, static_cast<off_t>(++s.turn % 2 * page_bytes)); }

int read_folder(slot& s) {
  alignas(8) char entries[32768];
  if (lseek(s.fd, 0, SEEK_SET) != 0) return -1;
  return syscall(SYS_getdents64, s.fd, entries, sizeof entries) > 0 ? 0 : -1;
}

int read_attribute(slot& s) {
  char value[16];
  return fgetxattr(s.fd, attribute, value, sizeof value) > 0 ? 0 : -1;
}

int write_attribute(slot& s) {
  char const value[1] = {static_cast<char>('a' + ++s.turn % 8)};
  return fsetxattr(s.fd, attribute, value, sizeof value, 0);
}

int lock_file(slot& s) { return flock(s.fd, LOCK_EX) != 0 ? -1 : flock(s.fd, LOCK_UN); }
int sync_file(slot& s) { return fsync(s.fd); }

}  // namespace

/// An op: what is done once per name, before each batch, in the call that is timed, after a batch.
struct metadata_work::row {
  char const* op;
  int (*once)(slot&);
  int (*before)(slot&);
  int (*call)(slot&);
  int (*after)(slot&);
  unsigned calls;  // of a batch
};

metadata_work::row const metadata_work::rows[] = {
    {"open", make, nothing, look, nothing, batch},
    {"create", nothing, nothing, make, remove_name, batch},
    {"stat", make, nothing, stat_name, nothing, batch},
    {"access", make, nothing, ask_access, nothing, batch},
    {"statfs", nothing, nothing, ask_file_system, nothing, batch},
    {"rename", nothing, make, rename_name, remove_other, batch},
    {"link", make, nothing, link_name, remove_other, batch},
    {"symlink", nothing, nothing, make_link, remove_name, batch},
    {"readlink", make_link, nothing, follow, nothing, batch},
    {"unlink", nothing, make, remove_name, nothing, batch},
    {"mkdir", nothing, nothing, make_folder, remove_folder, batch},
    {"rmdir", nothing, make_folder, remove_folder, nothing, batch},
    {"mknod", nothing, nothing, make_fifo, remove_name, batch},
    {"chmod", make, nothing, change_mode, nothing, batch},
    {"utime", make, nothing, change_times, nothing, batch},
    {"truncate", hold, nothing, change_size, nothing, batch},
    {"opendir", make_folder, nothing, open_folder, nothing, batch},
    {"readdir", hold_folder, nothing, read_folder, nothing, batch},
    {"getxattr", hold_attribute, nothing, read_attribute, nothing, batch},
    {"setxattr", hold_attribute, nothing, write_attribute, nothing, batch},
    {"lock", hold, nothing, lock_file, nothing, batch},
    // Its own page alone is dirty, so it pays for itself only.
    {"fsync", hold_page, dirty, sync_file, nothing, 1},
};

std::vector<std::string> const& metadata_ops() {
  static std::vector<std::string> const names = [] {
    std::vector<std::string> out;
    for (auto const& r : metadata_work::rows) out.emplace_back(r.op);
    return out;
  }();
  return names;
}

metadata_work::metadata_work(std::string const& op, int parent, std::string const& called) {
  for (row const& r : rows)
    if (op == r.op) what_ = &r;
  if (what_ == nullptr) {
    error_ = ENOSYS;
    return;
  }
  if (mkdirat(parent, called.c_str(), 0700) == 0)
    dir_ =
        descriptor(openat(parent, called.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir_) error_ = errno;
  for (unsigned i = 0; i < what_->calls && error_ == 0; ++i) {
    slot& s = slots_.emplace_back();
    s.dir = dir_.get();
    s.name = fmt::format("f{}", i);
    s.other = fmt::format("g{}", i);
    if (what_->once(s) != 0) error_ = errno;
  }
}

metadata_work::~metadata_work() = default;

metadata_work::turn metadata_work::run() {
  turn out;
  auto const each = [&](int (*act)(slot&)) {
    for (slot& s : slots_)
      if (act(s) != 0) {
        out.error = errno;
        return false;
      }
    return true;
  };
  if (!each(what_->before)) return out;
  std::int64_t const begun_ns = steady_ns();
  if (!each(what_->call)) return out;
  out.took_ns = steady_ns() - begun_ns;
  out.calls = static_cast<unsigned>(slots_.size());
  each(what_->after);
  return out;
}

}  // namespace sluice::calibrate
