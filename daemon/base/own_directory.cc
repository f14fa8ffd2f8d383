// SPDX-License-Identifier: Apache-2.0
#include "base/own_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/error.h"

namespace sluice {

namespace {

constexpr unsigned look_every = 64;  // files between two questions whether to go on

[[noreturn]] void cannot(char const* what, std::string const& path) {
  throw sluice_error(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

[[noreturn]] void replaced(std::string const& path) {
  throw sluice_error(fmt::format("somebody put another directory in the place of {}", path));
}

/// A directory in `parent`, never a link, nor what is mounted there.
int open_inner(int parent, char const* name) {
  open_how how = {};
  how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(syscall(SYS_openat2, parent, name, &how, sizeof how));
}

/// Everything in the directory, which is closed.
bool remove_below(int fd, std::function<bool()> const& go_on) {
  if (fd < 0) return false;
  std::unique_ptr<DIR, int (*)(DIR*)> const dir(fdopendir(fd), closedir);
  if (!dir) return false;
  // A file system may pass over names while others go: look again until nothing was removed.
  for (unsigned seen = 0, left = 0, gone = 1; gone != 0; left = 0) {
    gone = 0;
    rewinddir(dir.get());
    while (dirent const* entry = readdir(dir.get())) {
      std::string const inner = entry->d_name;
      if (inner == "." || inner == "..") continue;
      if (++seen % look_every == 0 && !go_on()) return false;
      bool const file =
          entry->d_type != DT_DIR && (unlinkat(fd, inner.c_str(), 0) == 0 || errno == ENOENT);
      bool const folder = !file && remove_below(open_inner(fd, inner.c_str()), go_on) &&
                          unlinkat(fd, inner.c_str(), AT_REMOVEDIR) == 0;
      ++(file || folder ? gone : left);
    }
    if (gone == 0) return left == 0;
  }
  return false;
}

bool is_empty(int fd) {
  std::unique_ptr<DIR, int (*)(DIR*)> const dir(fdopendir(dup(fd)), closedir);
  if (!dir) return false;
  while (dirent const* entry = readdir(dir.get()))
    if (std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..")
      return false;
  return true;
}

enum class named { it, another, nothing };

named what_is_named(std::string const& path, int fd) {
  struct stat of_fd = {}, of_name = {};
  if (fstat(fd, &of_fd) != 0 || lstat(path.c_str(), &of_name) != 0) return named::nothing;
  bool const is_it = of_fd.st_dev == of_name.st_dev && of_fd.st_ino == of_name.st_ino;
  return is_it ? named::it : named::another;
}

}  // namespace

own_directory::own_directory(std::string const& target, std::string const& name) {
  if (mkdir(target.c_str(), 0777) == 0)
    made_target_ = target;
  else if (errno != EEXIST)
    cannot("make the target", target);
  path_ = target + "/" + name + ".XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    int const why = errno;
    if (!made_target_.empty()) rmdir(made_target_.c_str());
    throw sluice_error(
        fmt::format("cannot make a directory in the target {}: {}", target, std::strerror(why)));
  }
  fd_ = descriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st = {};
  // Another one of this user's may have been put there since. Whatever is in it is not ours.
  bool const is_ours = fd_ && fstat(fd_.get(), &st) == 0 && st.st_uid == geteuid() &&
                       (st.st_mode & 0777) == 0700 && is_empty(fd_.get());
  if (fd_ && !is_ours) replaced(path_);
  char whole[4096];
  ssize_t const n =
      readlink(fmt::format("/proc/self/fd/{}", fd_.get()).c_str(), whole, sizeof whole - 1);
  if (!fd_ || n <= 0) cannot("look at", path_);
  path_.assign(whole, static_cast<std::size_t>(n));
}

own_directory::~own_directory() {
  std::string why;
  remove(why, [] { return true; });
}

bool own_directory::remove(std::string& why, std::function<bool()> const& go_on) {
  if (path_.empty()) return true;
  bool const empty = remove_below(dup(fd_.get()), go_on);
  auto const now = what_is_named(path_, fd_.get());
  if (now == named::nothing)
    why = fmt::format("{} is gone: somebody renamed or removed it", path_);
  else if (now == named::another)
    why = fmt::format("what is called {} now is another directory: somebody renamed both; leave it",
                      path_);
  else if (!empty || rmdir(path_.c_str()) != 0)
    why = fmt::format("not all of {} could be removed; it is safe to remove it by hand", path_);
  else if (!made_target_.empty())
    rmdir(made_target_.c_str());
  path_.clear();
  return why.empty();
}

working_in::working_in(int directory) : before_(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!before_ || fchdir(directory) != 0) cannot("work in", "the own directory");
}

working_in::~working_in() { (void)!fchdir(before_.get()); }

descriptor open_own(std::string const& path, std::uint64_t device, std::uint64_t inode) {
  descriptor dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st = {};
  if (!dir || fstat(dir.get(), &st) != 0) cannot("open", path);
  if (st.st_dev != device || st.st_ino != inode) replaced(path);
  return dir;
}

bool remove_left_directory(std::string const& path, std::uint64_t inode) {
  descriptor const dir(
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!dir) return errno == ENOENT;
  struct stat st = {};
  if (fstat(dir.get(), &st) != 0 || st.st_ino != inode || st.st_uid != geteuid()) return false;
  return remove_below(dup(dir.get()), [] { return true; }) && rmdir(path.c_str()) == 0;
}

}  // namespace sluice
