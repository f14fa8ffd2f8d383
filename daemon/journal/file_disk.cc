// SPDX-License-Identifier: Apache-2.0
#include "journal/file_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/believed_place.h"
#include "base/error.h"
#include "base/open_file.h"
#include "base/sync.h"
#include "journal/home.h"
#include "journal/slots.h"

namespace sluice::journal {

namespace {

std::uint64_t most_bytes = ~std::uint64_t{0};

sluice::error failure(std::string const& path, char const* what) {
  return sluice_error(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

void random_bytes(void* to, std::size_t bytes) {
  if (getrandom(to, bytes, 0) != static_cast<ssize_t>(bytes))
    throw sluice_error("the kernel gives no random bytes");
}

sluice::error in_use(std::string const& path) {
  return sluice_error(
      fmt::format("{}: is in use by another process; a journal serves one `sluice run` at a time, "
                  "or all durable jobs of its user on a node with \"journal\" in node.json",
                  path));
}

/// Direct where the file system can: tmpfs of old kernels cannot.
int open_direct(std::string const& path, int flags) {
  int const fd = open(path.c_str(), flags | O_DIRECT, 0600);
  return fd < 0 && errno == EINVAL ? open(path.c_str(), flags, 0600) : fd;
}

std::string directory_of(std::string const& path) {
  auto const slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

void believe(std::optional<std::string> const& why_not, std::string const& path) {
  if (!why_not) return;
  throw sluice_error(fmt::format(
      "{}: {}. Root uses a journal only where root alone mounts: put a new one there "
      "(--order-journal FILE). If this one still holds something, its user recovers it, or root "
      "recovers a copy that belongs to that user",
      path, *why_not));
}

}  // namespace

void believe_place(std::string const& path) { believe(why_not_believed(path), path); }

void refuse_journals_above(std::uint64_t bytes) { most_bytes = bytes; }

void sync_directory_of(std::string const& path) {
  std::string const dir = directory_of(path);
  int const fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool const good = fd >= 0 && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  if (!good) throw failure(dir, "cannot be synced");
}

file_disk::file_disk(std::string const& path, use how) : path_(std::filesystem::absolute(path)) {
  believe_place(path);
  // A user may have put a pipe there, or a lease on it.
  int const flags = (how == use::look ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
                    (how == use::make ? O_TMPFILE : O_NOFOLLOW);
  fd_ = open_direct(path, flags);
  if (fd_ < 0 && how == use::make && errno == EOPNOTSUPP) make_hidden(path);
  if (fd_ < 0)
    throw failure(path, how == use::make ? "a journal cannot be made there" : "cannot be opened");
  try {
    believe(why_not_believed(fd_), path);  // something may have been mounted since
  } catch (...) {
    let_go();
    throw;
  }
  struct stat st = {};
  if (fstat(fd_, &st) != 0 || !S_ISREG(st.st_mode)) {
    let_go();
    throw usage_error(fmt::format("{}: is not a file", path));
  }
  owner_ = st.st_uid;
  device_ = st.st_dev;
  inode_ = st.st_ino;
  is_unnamed_ = how == use::make;
  bytes_ = static_cast<std::uint64_t>(st.st_size) / block_bytes * block_bytes;
  if (bytes_ > most_bytes) {
    let_go();
    throw sluice_error(
        fmt::format("{}: has {} MiB, and a journal here has {} at most: it is not read, and kept; "
                    "`sluice recover`, run by root, reads it",
                    path, bytes_ >> 20, most_bytes >> 20));
  }
  if (how != use::look && flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    let_go();
    throw in_use(path);
  }
}

file_disk::~file_disk() { let_go(); }

void file_disk::let_go() {
  if (!hidden_.empty()) unlink(hidden_.c_str());
  close(fd_);
}

/// Where a file system makes no file without a name, such as FUSE and NFS: by one that nobody
/// expects.
void file_disk::make_hidden(std::string const& directory) {
  std::string const path = fmt::format("{}/.sluice-new.{:x}", directory, random_salt());
  fd_ = open_direct(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW);
  if (fd_ >= 0) hidden_ = path;
}

bool file_disk::has_name() const {
  struct stat there = {};
  return is_unnamed_ ||
         (lstat(path_.c_str(), &there) == 0 && there.st_dev == device_ && there.st_ino == inode_);
}

int file_disk::fill(std::uint64_t bytes) {
  block_buffer const zeros(1u << 20, std::byte{0});
  for (std::uint64_t at = 0; at < bytes; at += zeros.size()) {
    std::span<std::byte const> const all(zeros);
    int const error = write(at, all.first(std::min<std::uint64_t>(all.size(), bytes - at)));
    if (error != 0) return error;
  }
  bytes_ = bytes;
  return flush();
}

int file_disk::link_as(std::string const& path) {
  if (hidden_.empty()) {
    if (linkat(AT_FDCWD, proc_name(fd_).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return errno;
  } else if (renameat2(AT_FDCWD, hidden_.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
    hidden_.clear();
  } else if (errno != EINVAL || link(hidden_.c_str(), path.c_str()) != 0) {
    return errno;  // else it loses the other name at its end
  }
  path_ = std::filesystem::absolute(path);
  is_unnamed_ = false;
  return has_name() ? 0 : EEXIST;  // whoever may write there may have put another in its place
}

int file_disk::read(std::uint64_t offset, std::span<std::byte> to) {
  for (std::size_t had = 0; had < to.size();) {
    ssize_t const n =
        pread(fd_, to.data() + had, to.size() - had, static_cast<off_t>(offset + had));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 ? EIO : errno;
    had += static_cast<std::size_t>(n);
  }
  return 0;
}

int file_disk::write(std::uint64_t offset, std::span<std::byte const> from) {
  for (std::size_t put = 0; put < from.size();) {
    ssize_t const n =
        pwrite(fd_, from.data() + put, from.size() - put, static_cast<off_t>(offset + put));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 ? EIO : errno;
    put += static_cast<std::size_t>(n);
  }
  return 0;
}

int file_disk::flush() { return fdatasync(fd_) == 0 ? 0 : errno; }

int file_disk::write_through(std::uint64_t offset, std::span<std::byte const> from) {
  if (through_) {
    iovec const all = {const_cast<std::byte*>(from.data()), from.size()};
    ssize_t const n = pwritev2(fd_, &all, 1, static_cast<off_t>(offset), RWF_DSYNC);
    if (n == static_cast<ssize_t>(from.size())) return 0;
    if (n < 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) return errno;
    // A short or interrupted one is written again in full, and flushed.
    if (n < 0 && errno != EINTR) through_ = false;
  }
  int const failed = write(offset, from);
  return failed != 0 ? failed : flush();
}

std::uint64_t random_salt() {
  std::uint64_t salt = 0;
  random_bytes(&salt, sizeof salt);
  return salt;
}

std::unique_ptr<file_disk> begin_log_file(std::string const& path, std::uint64_t bytes,
                                          std::uint64_t window_ns) {
  bytes = bytes / block_bytes * block_bytes;
  if (bytes < area_begin + area_bytes_min)
    throw usage_error(
        fmt::format("{}: a journal has at least {} bytes", path, area_begin + area_bytes_min));
  auto made = std::make_unique<file_disk>(directory_of(path), file_disk::use::make);
  errno = made->fill(bytes);
  if (errno != 0) throw failure(path, "cannot be written in full");
  std::byte id[16];
  random_bytes(id, sizeof id);
  errno = make_log(*made, first_superblock(bytes - area_begin, random_salt(), id, window_ns));
  if (errno != 0) throw failure(path, "cannot be written");
  return made;
}

void make_log_file(std::string const& path, std::uint64_t bytes, std::uint64_t window_ns) {
  if (access(path.c_str(), F_OK) == 0)
    throw usage_error(fmt::format("{}: is there already; a journal never replaces a file", path));
  auto const made = begin_log_file(path, bytes, window_ns);
  errno = made->link_as(path);
  if (errno == EEXIST) throw in_use(path);  // by whoever made it meanwhile
  if (errno != 0) throw failure(path, "cannot be given its name");
  sync_directory_of(path);
}

}  // namespace sluice::journal
