// SPDX-License-Identifier: Apache-2.0
// Devices and pipes are written in place, and so is what an open descriptor names (/dev/stdout): a
// rename would replace them. Of a symbolic link the file that it leads to is replaced.
#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "base/error.h"
#include "base/open_file.h"
#include "base/who_may_rename.h"

namespace sluice {

namespace {

constexpr int most_links = 40;
constexpr int most_tries = 16;              // for a name beside that nobody has
constexpr std::size_t longest_begin = 200;  // of that name

[[noreturn]] void refuse(std::string const& called, int why) {
  throw usage_error(fmt::format("{}: {}", called, std::strerror(why)));
}

/// Where a name leads.
struct place {
  descriptor folder;
  std::string name;
  struct stat st = {};
  bool is_there = false;
  bool is_in_place = false;  // it is not to be replaced
};

/// A name in a directory.
place look(descriptor folder, std::string name, std::string const& called) {
  place at;
  at.folder = std::move(folder);
  at.name = std::move(name);
  at.is_there = fstatat(at.folder.get(), at.name.c_str(), &at.st, AT_SYMLINK_NOFOLLOW) == 0;
  if (!at.is_there && errno != ENOENT) refuse(called, errno);
  return at;
}

bool is_in_proc(place const& at) {
  struct statfs fs = {};
  return fstatfs(at.folder.get(), &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/// Who made it would read along, or never.
void check_pipe(place const& at, std::string const& called) {
  bool const is_pipe = at.is_there && (S_ISFIFO(at.st.st_mode) || S_ISSOCK(at.st.st_mode));
  if (is_pipe && !at.is_in_place && at.st.st_uid != geteuid() && at.st.st_uid != 0)
    throw usage_error(
        fmt::format("{}: is a pipe of another user; nothing is written to it", called));
}

/// As the kernel does with fs.protected_symlinks: where everybody may make links, only those of the
/// directory's owner and our own.
void check_link(place const& at, std::string const& called) {
  struct stat folder = {};
  if (fstat(at.folder.get(), &folder) != 0) refuse(called, errno);
  bool const is_shared =
      (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & (S_IWOTH | S_IWGRP)) != 0;
  // Owners that are not known here seem to be one.
  bool const is_owners = at.st.st_uid == folder.st_uid && folder.st_uid != overflow_uid();
  if (is_shared && at.st.st_uid != geteuid() && !is_owners)
    throw usage_error(
        fmt::format("{}: is a symbolic link of another user, in a directory in which others may "
                    "make some; it is not followed",
                    called));
}

std::string target_of(place const& link, std::string const& called) {
  char target[PATH_MAX];
  ssize_t const n = readlinkat(link.folder.get(), link.name.c_str(), target, sizeof target);
  if (n < 0) refuse(called, errno);
  return {target, static_cast<std::size_t>(n)};
}

/// Goes from name to name as the kernel does, for it may be told to follow every link.
class walk {
 public:
  explicit walk(std::string const& path) : called_(path) { go(path); }

  /// At the end of all links; of a descriptor's name the last before /proc.
  place end() {
    while (true) {
      std::string name = take();
      bool const is_last = left_.empty();
      if (is_last && (name.empty() || name == "." || name == "..")) refuse(called_, EISDIR);
      if (name.empty() || name == ".") continue;
      place at = look(std::move(folder_), std::move(name), called_);
      bool const is_link = at.is_there && S_ISLNK(at.st.st_mode);
      // Servers are asked for that, so not at each name.
      if (is_link || is_last) at.is_in_place = is_in_proc(at);
      if (is_link && !at.is_in_place)
        follow(std::move(at));
      else if (is_last)
        return at;
      else
        enter(at);
    }
  }

 private:
  std::string take() {
    std::size_t const slash = left_.find('/');
    std::string name = left_.substr(0, slash);
    left_ = slash == std::string::npos ? "" : left_.substr(slash + 1);
    // A slash at the end means a directory.
    if (slash != std::string::npos && left_.empty()) left_ = ".";
    return name;
  }

  void go(std::string const& path) {
    if (path.empty()) refuse(called_, ENOENT);
    if (path[0] == '/' || !folder_) open_folder(AT_FDCWD, path[0] == '/' ? "/" : ".", 0);
    left_ = left_.empty() ? path : path + "/" + left_;
  }

  void follow(place at) {
    check_link(at, called_);
    if (++links_ > most_links) refuse(called_, ELOOP);
    std::string const target = target_of(at, called_);
    folder_ = std::move(at.folder);
    go(target);
  }

  /// Names in /proc lead where no text says.
  void enter(place const& at) {
    open_folder(at.folder.get(), at.name.c_str(), at.is_in_place ? 0 : O_NOFOLLOW);
  }

  void open_folder(int from, char const* name, int flags) {
    folder_ = descriptor(openat(from, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags));
    if (!folder_) refuse(called_, errno);
  }

  std::string const& called_;
  descriptor folder_;
  std::string left_;
  int links_ = 0;
};

place end_of(std::string const& path) {
  place at = walk(path).end();
  if (at.is_there && S_ISDIR(at.st.st_mode))
    throw usage_error(fmt::format("{}: is a directory; give the name of a file", path));
  check_pipe(at, path);
  at.is_in_place |= at.is_there && !S_ISREG(at.st.st_mode);
  return at;
}

bool is_same(struct stat const& seen, int opened) {
  struct stat st = {};
  return fstat(opened, &st) == 0 && is_same_file(st, seen);
}

/// The access control list of the old file, and its group; where the old one has no list, the new
/// one keeps none that it has from its directory. False: not all of it could be had.
bool take_over_group(place const& at, int made) {
  constexpr char const* list_name = "system.posix_acl_access";
  struct stat st = {};
  if (fstat(made, &st) != 0) return false;
  if (st.st_gid != at.st.st_gid && fchown(made, static_cast<uid_t>(-1), at.st.st_gid) != 0)
    return false;
  descriptor const old(
      openat(at.folder.get(), at.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  // Somebody may have put another file there meanwhile.
  if (!old || !is_same(at.st, old.get())) return false;
  char list[4096];
  ssize_t const bytes = fgetxattr(old.get(), list_name, list, sizeof list);
  if (bytes < 0 && errno == EOPNOTSUPP) return true;
  if (bytes < 0 && errno == ENODATA)
    return fremovexattr(made, list_name) == 0 || errno == ENODATA || errno == EOPNOTSUPP;
  if (bytes < 0) return false;
  return fsetxattr(made, list_name, list, static_cast<std::size_t>(bytes), 0) == 0;
}

/// The new file may be read and written as the old one, if that is ours, but never more than a
/// plain file.
void give_mode(place const& at, int made) {
  mode_t mode = umask(0);
  umask(mode);
  mode = 0666 & ~mode;
  if (at.is_there && at.st.st_uid == geteuid()) {
    mode = at.st.st_mode & 0777;
    if (!take_over_group(at, made)) mode &= ~mode_t{070};
  }
  (void)!fchmod(made, mode);
}

/// An empty file beside it, of which `name` becomes the name, or a usage error.
descriptor make_beside(place const& at, std::string const& called, std::string& name) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int why = 0;
  for (int i = 0; i < most_tries && (i == 0 || why == EEXIST); ++i) {
    std::uint32_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) refuse(called, errno);
    name = fmt::format("{}.{:x}", at.name.substr(0, longest_begin), number);
    descriptor made(openat(at.folder.get(), name.c_str(), flags, 0600));
    why = errno;
    if (!made) continue;
    give_mode(at, made.get());
    return made;
  }
  refuse(called, why);
}

/// By its own name: a descriptor's leads further than names do.
descriptor open_in_place(place const& at, std::string const& called) {
  bool const is_link = at.is_there && S_ISLNK(at.st.st_mode);
  if (is_link) return descriptor(open(called.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  // Somebody may have put another one there meanwhile, and it could be waited for in vain.
  descriptor const found(openat(at.folder.get(), at.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found) return {};
  if (!is_same(at.st, found.get()) || S_ISREG(at.st.st_mode)) refuse(called, EEXIST);
  return descriptor(
      open(fmt::format("/proc/self/fd/{}", found.get()).c_str(), O_WRONLY | O_CLOEXEC));
}

}  // namespace

std::string without_links(std::string const& path) {
  place const at = end_of(path);
  std::string const folder = path_of(at.folder.get());
  return folder.empty() ? path : folder + (folder == "/" ? "" : "/") + at.name;
}

void check_output_file(std::string const& path) {
  if (path == "-") return;
  place const at = end_of(path);
  if (at.is_in_place) {
    if (access(path.c_str(), W_OK) != 0) refuse(path, errno);
    return;
  }
  std::string name;
  make_beside(at, path, name);
  unlinkat(at.folder.get(), name.c_str(), 0);
}

output_file::output_file(std::string const& path) : path_(path) {
  if (path == "-") {
    to_.rdbuf(std::cout.rdbuf());
    return;
  }
  place at = end_of(path);
  descriptor opened = at.is_in_place ? open_in_place(at, path) : make_beside(at, path, temporary_);
  if (!opened) refuse(path, errno);
  folder_ = std::move(at.folder);
  name_ = std::move(at.name);
  file_ = std::make_unique<__gnu_cxx::stdio_filebuf<char>>(opened.release(),
                                                           std::ios::out | std::ios::binary);
  to_.rdbuf(file_.get());
}

output_file::~output_file() {
  if (!temporary_.empty()) unlinkat(folder_.get(), temporary_.c_str(), 0);
}

void output_file::commit() {
  if (to_) errno = 0;  // else it is of the write that failed
  to_.flush();
  bool is_good = static_cast<bool>(to_);
  if (file_) is_good = file_->close() != nullptr && is_good;
  if (is_good && !temporary_.empty())
    is_good = renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) == 0;
  if (!is_good)
    throw sluice_error(fmt::format("{}: cannot be written: {}", path_,
                                   errno != 0 ? std::strerror(errno) : "no reason given"));
  temporary_.clear();
}

}  // namespace sluice
