// SPDX-License-Identifier: Apache-2.0
#include "base/own_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/open_file.h"
#include "base/who_may_rename.h"

namespace sluice {

namespace {

constexpr int name_tries = 16;       // for a name that nobody has
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

named what_is_named(int parent, std::string const& name, int fd) {
  struct stat of_fd = {}, of_name = {};
  if (fstat(fd, &of_fd) != 0 || fstatat(parent, name.c_str(), &of_name, AT_SYMLINK_NOFOLLOW) != 0)
    return named::nothing;
  return is_same_file(of_fd, of_name) ? named::it : named::another;
}

/// A new directory there, with a name like `NAME.1c8f03d2`; returns the name.
std::string make_inner(int parent, std::string const& name, std::string const& target) {
  for (int i = 0;; ++i) {
    std::uint32_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) cannot("choose a name in", target);
    std::string const made = fmt::format("{}.{:08x}", name, number);
    if (mkdirat(parent, made.c_str(), 0700) == 0) return made;
    if (errno != EEXIST || i == name_tries) cannot("make a directory in the target", target);
  }
}

}  // namespace

own_directory::own_directory(std::string const& target, std::string const& name) {
  if (mkdir(target.c_str(), 0777) == 0)
    made_target_ = target;
  else if (errno != EEXIST)
    cannot("make the target", target);
  try {
    make_in(target, name);
  } catch (...) {
    if (!name_.empty()) unlinkat(target_.get(), name_.c_str(), AT_REMOVEDIR);
    if (!made_target_.empty()) rmdir(made_target_.c_str());
    throw;
  }
}

void own_directory::make_in(std::string const& target, std::string const& name) {
  target_ = descriptor(open(target.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!target_) cannot("open the target", target);
  if (std::string const who = who_may_rename(target_.get()); !who.empty())
    throw usage_error(
        fmt::format("{0}: {1} may rename what others have there, so nothing could be removed "
                    "safely at the end; make a directory of your own in it, and give that one",
                    target, who));
  name_ = make_inner(target_.get(), name, target);
  fd_ = descriptor(
      openat(target_.get(), name_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st = {};
  if (!fd_ || fstat(fd_.get(), &st) != 0) cannot("open", target + "/" + name_);
  // It cannot be another one, unless a file system is wrong about owners. That may have work in it.
  bool const is_new = st.st_uid == geteuid() && (st.st_mode & 0077) == 0 && is_empty(fd_.get());
  if (!is_new) replaced(target + "/" + name_);
  path_ = path_of(fd_.get());
  if (path_.empty()) cannot("look at", target + "/" + name_);
}

own_directory::~own_directory() {
  std::string why;
  remove(why, [] { return true; });
}

bool own_directory::remove(std::string& why, std::function<bool()> const& go_on) {
  if (path_.empty()) return true;
  bool const empty = remove_below(dup(fd_.get()), go_on);
  auto const now = what_is_named(target_.get(), name_, fd_.get());
  if (now == named::nothing)
    why = fmt::format("{} is gone: somebody renamed or removed it", path_);
  else if (now == named::another)
    why = fmt::format("what is called {} now is another directory: somebody renamed both; leave it",
                      path_);
  else if (!empty || unlinkat(target_.get(), name_.c_str(), AT_REMOVEDIR) != 0)
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
  std::size_t const slash = path.rfind('/');
  if (slash == std::string::npos) return false;
  std::string const name = path.substr(slash + 1);
  descriptor const parent(
      open(path.substr(0, slash + 1).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return errno == ENOENT;
  if (!who_may_rename(parent.get()).empty()) return false;
  descriptor const dir(openat(parent.get(), name.c_str(),
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!dir) return errno == ENOENT;
  struct stat st = {};
  if (fstat(dir.get(), &st) != 0 || st.st_ino != inode || st.st_uid != geteuid()) return false;
  return remove_below(dup(dir.get()), [] { return true; }) &&
         unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0;
}

}  // namespace sluice
