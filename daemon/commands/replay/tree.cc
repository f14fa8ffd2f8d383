// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/descriptor.h"
#include "base/error.h"

namespace sluice::replay {

namespace {

constexpr double most_folders = 1e5;  // their names are kept in memory
constexpr unsigned look_every = 64;   // files between two questions whether to go on

[[noreturn]] void cannot(char const* what, std::string const& path) {
  throw sluice_error(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
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

void make_folder(std::string const& path) {
  if (mkdir(path.c_str(), 0700) != 0) cannot("make the directory", path);
}

void make_file(std::string const& path, bool xattr) {
  descriptor const fd(open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  if (!fd) cannot("make the file", path);
  if (xattr) fsetxattr(fd.get(), "user.sluice", "replay", 6, 0);
}

void make_data(std::string const& path, std::uint64_t bytes, std::function<bool()> const& go_on) {
  descriptor const fd(open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  if (!fd) cannot("make the file", path);
  std::vector<char> const block(1 << 20, 's');
  for (std::uint64_t at = 0; at < bytes && go_on();) {
    ssize_t const n =
        write(fd.get(), block.data(), std::min<std::uint64_t>(block.size(), bytes - at));
    if (n <= 0) cannot("write", path);
    at += static_cast<std::uint64_t>(n);
  }
}

/// `prefix` and every folder below it, level by level.
void add_level(std::vector<std::string>& out, std::string const& prefix, unsigned levels,
               unsigned fanout, bool leaves_only) {
  if (levels == 0) {
    if (leaves_only) out.push_back(prefix);
    return;
  }
  for (unsigned i = 0; i < fanout; ++i) {
    std::string const inner = fmt::format("{}/d{}", prefix, i);
    if (!leaves_only) out.push_back(inner);
    add_level(out, inner, levels - 1, fanout, leaves_only);
  }
}

}  // namespace

std::string names::job(unsigned j) const { return fmt::format("{}/j{}", root, j); }
std::string names::data(unsigned j) const { return job(j) + "/data"; }
std::string names::worker(unsigned j, unsigned w) const { return fmt::format("{}/w{}", job(j), w); }

std::vector<std::string> names::folders(unsigned j) const {
  std::vector<std::string> out;
  add_level(out, job(j), shape.depth, shape.fanout, false);
  return out;
}

std::vector<std::string> names::leaves(unsigned j) const {
  std::vector<std::string> out;
  add_level(out, job(j), shape.depth, shape.fanout, true);
  return out;
}

void file_name(std::vector<std::string> const& leaves, std::size_t i, std::string& into) {
  char digits[20];
  char* const end = std::to_chars(digits, digits + sizeof digits, i).ptr;
  into.assign(leaves[i % leaves.size()]).append("/f").append(digits, end);
}

void check_shape(tree_shape const& s) {
  double folders = 0, level = 1;
  for (unsigned i = 0; i < s.depth && folders <= most_folders; ++i)
    folders += level = level * s.fanout;
  if (folders > most_folders)
    throw usage_error(
        fmt::format("--depth {} --fanout {} make more than {} directories; take smaller ones",
                    s.depth, s.fanout, most_folders));
}

own_directory::own_directory(std::string const& target) {
  if (mkdir(target.c_str(), 0777) == 0)
    made_target_ = target;
  else if (errno != EEXIST)
    cannot("make the target", target);
  path_ = target + "/sluice-replay.XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    int const why = errno;
    if (!made_target_.empty()) rmdir(made_target_.c_str());
    throw sluice_error(
        fmt::format("cannot make a directory in the target {}: {}", target, std::strerror(why)));
  }
  fd_ = descriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
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
  // When it was moved away meanwhile, what has its name now is not ours; rmdir harms no files.
  if (!empty || rmdir(path_.c_str()) != 0)
    why = fmt::format("not all of {} could be removed; it is safe to remove it by hand", path_);
  else if (!made_target_.empty())
    rmdir(made_target_.c_str());
  path_.clear();
  return why.empty();
}

void populate(names const& n, wanted_files const& w, std::function<bool()> const& go_on) {
  make_folder(n.job(w.job));
  for (auto const& folder : n.folders(w.job)) {
    if (!go_on()) return;
    make_folder(folder);
  }
  std::vector<std::string> const leaves = n.leaves(w.job);
  std::string file;
  for (unsigned i = 0; i < n.shape.files; ++i) {
    if (i % look_every == 0 && !go_on()) return;
    file_name(leaves, i, file);
    make_file(file, w.xattrs);
  }
  for (unsigned const worker : w.workers) {
    if (!go_on()) return;
    make_folder(n.worker(w.job, worker));
    make_file(n.worker(w.job, worker) + "/r0", false);
  }
  make_data(n.data(w.job), w.reads ? n.shape.file_bytes : 0, go_on);
}

}  // namespace sluice::replay
