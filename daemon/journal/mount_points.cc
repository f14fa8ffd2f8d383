// SPDX-License-Identifier: Apache-2.0
#include "journal/mount_points.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

namespace sluice::journal {

namespace {

/// Blanks and the like are written \040 in mountinfo.
std::string unescaped(std::string const& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  return plain;
}

/// Ids of those that its path leads through; none: one of them is a user's to stop.
std::set<int> way_to(std::vector<mount_point> const& all, mount_point const& m) {
  std::set<int> way;
  for (mount_point const* at = &m; at != nullptr && way.insert(at->id).second;) {
    if (at->type.starts_with("fuse")) return {};
    auto const below = std::find_if(all.begin(), all.end(),
                                    [&](mount_point const& one) { return one.id == at->parent; });
    at = below == all.end() ? nullptr : &*below;
  }
  return way;
}

/// On which mount it is; -1: not known. No file system is asked.
int mount_of(descriptor const& fd) {
  std::ifstream in(fmt::format("/proc/self/fdinfo/{}", fd.get()));
  for (std::string word; in >> word;)
    if (int id = 0; word == "mnt_id:" && in >> id) return id;
  return -1;
}

}  // namespace

std::vector<mount_point> mount_points() {
  std::vector<mount_point> all;
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
    auto const dash = std::find(word.begin(), word.end(), "-");
    if (dash - word.begin() < 6 || word.end() - dash < 3) continue;
    all.push_back({std::atoi(word[0].c_str()), std::atoi(word[1].c_str()), word[2],
                   unescaped(dash[2]), dash[1], unescaped(word[4]), word[5].starts_with("rw")});
  }
  return all;
}

std::string device_text(dev_t device) { return fmt::format("{}:{}", major(device), minor(device)); }

descriptor reach(std::vector<mount_point> const& all, mount_point const& m) {
  std::set<int> const way = way_to(all, m);
  descriptor at(open("/", O_PATH | O_CLOEXEC));
  int on = mount_of(at);
  for (auto const& part : std::filesystem::path(m.where).relative_path()) {
    at = descriptor(openat(at.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    int const now = mount_of(at);
    if (now < 0 || (now != on && !way.contains(now))) return {};
    on = now;
  }
  return on == m.id ? std::move(at) : descriptor();
}

std::optional<std::string> path_below(std::string const& where, std::string const& path) {
  std::string const begin = where == "/" ? "" : where;
  if (path == where) return ".";
  if (!path.starts_with(begin + "/")) return {};
  return path.substr(begin.size() + 1);
}

int open_below(int directory, char const* path, int flags) {
  open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, directory, path, &how, sizeof how));
}

int stat_below(int directory, char const* path, struct stat& st) {
  descriptor const at(open_below(directory, path, O_PATH));
  return at && fstat(at.get(), &st) == 0 ? 0 : errno;
}

descriptor mount_root::open_directory(std::string const& path) const {
  auto const below = path_below(where, path);
  if (!at || !below) return {};
  return descriptor(open_below(at.get(), below->c_str(), O_RDONLY | O_DIRECTORY));
}

mount_root root_above(std::string const& path, dev_t device) {
  auto const all = mount_points();
  std::string const wanted = device_text(device);
  std::vector<mount_point const*> above;
  for (auto const& m : all)
    if (m.device == wanted && path_below(m.where, path)) above.push_back(&m);
  // The deepest has it, and of those the last.
  std::stable_sort(above.begin(), above.end(),
                   [](auto* a, auto* b) { return a->where.size() < b->where.size(); });
  for (auto m = above.rbegin(); m != above.rend(); ++m)
    if (descriptor at = reach(all, **m)) return {(*m)->where, std::move(at)};
  return {};
}

}  // namespace sluice::journal
