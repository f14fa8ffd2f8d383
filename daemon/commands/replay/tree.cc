// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"

namespace sluice::replay {

namespace {

constexpr double most_folders = 1e5;  // their names are kept in memory
constexpr unsigned look_every = 64;   // files between two questions whether to go on

[[noreturn]] void cannot(char const* what, std::string const& path) {
  throw sluice_error(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
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

std::string names::job(unsigned j) const { return fmt::format("j{}", j); }
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
