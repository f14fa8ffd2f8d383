// SPDX-License-Identifier: Apache-2.0
#include "base/owners.h"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>

#include "base/descriptor.h"

namespace sluice {

namespace {

constexpr std::int64_t look_every_ns = 1'000'000'000;
constexpr std::int64_t ask_every_ns = 60'000'000'000;
constexpr std::int64_t never_again_ns = std::numeric_limits<std::int64_t>::max();
constexpr off_t most_bytes = 16 << 20;
constexpr uid_t last_uid = static_cast<uid_t>(-2);  // -1 is none

std::optional<uid_t> number_in(std::string_view text) {
  uid_t value = 0;
  auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uid_range> range_in(std::string_view line) {
  auto const colon = line.find(':'), next = line.find(':', colon + 1);
  if (colon == line.npos || colon == 0 || next == line.npos) return std::nullopt;
  auto const first = number_in(line.substr(colon + 1, next - colon - 1));
  auto const count = number_in(line.substr(next + 1));
  if (!first || !count || *first == 0 || *first > last_uid) return std::nullopt;
  if (*count == 0 || *count - 1 > last_uid - *first) return std::nullopt;
  return uid_range{*first, *count, std::string(line.substr(0, colon))};
}

std::optional<uid_t> ask_machine(std::string const& name) {
  passwd entry = {}, *found = nullptr;
  char text[4096];
  if (getpwnam_r(name.c_str(), &entry, text, sizeof text, &found) != 0 || found == nullptr)
    return std::nullopt;
  return found->pw_uid;
}

bool is_unchanged(struct stat const& a, struct stat const& b) {
  auto const marks = [](struct stat const& s) {
    return std::tuple(s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
  };
  return marks(a) == marks(b);
}

/// Who else may write it could make others his own.
bool is_believed(struct stat const& s) {
  return S_ISREG(s.st_mode) && (s.st_uid == 0 || s.st_uid == geteuid()) &&
         (s.st_mode & (S_IWGRP | S_IWOTH)) == 0 && s.st_size <= most_bytes;
}

std::string text_of(std::string const& path) {
  descriptor const file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat s = {};
  if (!file || fstat(file.get(), &s) != 0 || !is_believed(s)) return {};
  std::string text(static_cast<std::size_t>(s.st_size), '\0');
  std::size_t at = 0;
  while (at < text.size()) {
    ssize_t const n = read(file.get(), text.data() + at, text.size() - at);
    if (n <= 0) break;
    at += static_cast<std::size_t>(n);
  }
  text.resize(at);
  return text;
}

}  // namespace

std::vector<uid_range> read_uid_ranges(std::string_view text) {
  std::vector<uid_range> all;
  while (!text.empty()) {
    auto const end = std::min(text.find('\n'), text.size());
    if (auto range = range_in(text.substr(0, end))) all.push_back(*std::move(range));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](auto const& a, auto const& b) { return a.first < b.first; });
  std::vector<uid_range> apart;
  for (uid_range& r : all)
    if (apart.empty() || r.first - apart.back().first >= apart.back().count)
      apart.push_back(std::move(r));
  return apart;
}

owners::owners(std::string path, name_lookup ask)
    : path_(std::move(path)), ask_(ask ? std::move(ask) : ask_machine) {}

void owners::look(std::int64_t now_ns) {
  if (look_ns_ != 0 && now_ns - look_ns_ < look_every_ns) return;
  look_ns_ = now_ns;
  struct stat now = {};
  if (stat(path_.c_str(), &now) != 0) now = {};
  if (is_unchanged(now, seen_)) return;
  seen_ = now;
  asked_.clear();
  ranges_ = read_uid_ranges(text_of(path_));
}

/// Who has no uid here, or is root, is called by the first uid that is given to him. The service
/// that knows names may only have failed.
uid_t owners::owner_of(uid_range const& range, std::int64_t now_ns) {
  auto const at = asked_.find(range.user);
  if (at != asked_.end() && now_ns < at->second.until_ns) return at->second.uid;
  auto const number = number_in(range.user);
  auto const uid = number ? number : ask_(range.user);
  bool const is_usable = uid && *uid != 0 && *uid <= last_uid;
  uid_t const stand_in = at != asked_.end() ? at->second.uid : range.first;
  answer const told = {is_usable ? *uid : stand_in, uid ? never_again_ns : now_ns + ask_every_ns};
  return asked_.insert_or_assign(range.user, told).first->second.uid;
}

uid_t owners::of(uid_t uid, std::int64_t now_ns) {
  if (uid == 0) return uid;
  std::lock_guard const hold(lock_);
  look(now_ns);
  auto const after = std::upper_bound(ranges_.begin(), ranges_.end(), uid,
                                      [](uid_t u, uid_range const& r) { return u < r.first; });
  if (after == ranges_.begin()) return uid;
  uid_range const& range = *std::prev(after);
  return uid - range.first < range.count ? owner_of(range, now_ns) : uid;
}

}  // namespace sluice
