// SPDX-License-Identifier: Apache-2.0
#include "journal/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <string>
#include <utility>

#include "base/process_mark.h"

namespace sluice::journal {

namespace {

constexpr std::size_t kept_max = 64;

/// Its /proc entry is root's while it runs with rights that are not its user's alone, and when it
/// is no more.
bool is_of(descriptor const& entry, uid_t user) {
  struct stat st = {};
  return fstat(entry.get(), &st) == 0 && st.st_uid == user;
}

/// The mode of a descriptor in /proc says how it was opened.
bool may_write_by(descriptor const& entry, std::string const& link) {
  struct stat st = {};
  return fstatat(entry.get(), link.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
         (st.st_mode & S_IWUSR) != 0;
}

}  // namespace

/// In this order: a process that lives at the end had the number all the time. Null: there is none.
processes::found* processes::find(std::uint32_t pid) {
  if (auto const at = found_.find(pid); at != found_.end()) return &at->second;
  descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  descriptor entry(open(fmt::format("/proc/{}", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!process || !entry || sluice::has_ended(process.get())) return nullptr;
  if (found_.size() >= kept_max) found_.clear();
  return &found_.emplace(pid, found{std::move(process), std::move(entry)}).first->second;
}

template <class Ask>
descriptor processes::ask(std::uint32_t pid, uid_t user, Ask&& ask_for) {
  for (int round = 0; round < 2; ++round) {
    found const* const p = find(pid);
    if (p == nullptr || !is_of(p->entry, user)) break;
    descriptor theirs = ask_for(*p);
    if (theirs) return is_of(p->entry, user) ? std::move(theirs) : descriptor();
    if (!sluice::has_ended(p->process.get())) break;
    found_.erase(pid);  // the number may be another process's by now
  }
  return {};
}

descriptor processes::take(std::uint32_t pid, uid_t user, int fd) {
  return ask(pid, user, [&](found const& p) {
    return descriptor(static_cast<int>(syscall(SYS_pidfd_getfd, p.process.get(), fd, 0)));
  });
}

std::string processes::name_of(std::uint32_t pid, uid_t user, int fd) {
  found const* const p = find(pid);
  std::string const link = fmt::format("fd/{}", fd);
  if (p == nullptr || !is_of(p->entry, user) || !may_write_by(p->entry, link)) return {};
  char path[PATH_MAX];
  ssize_t const n = readlinkat(p->entry.get(), link.c_str(), path, sizeof path);
  return n > 0 && n < ssize_t{sizeof path} ? std::string(path, static_cast<std::size_t>(n)) : "";
}

descriptor processes::look_up(std::uint32_t pid, uid_t user, int fd, bool& may_write) {
  return ask(pid, user, [&](found const& p) {
    std::string const link = fmt::format("fd/{}", fd);
    may_write = may_write_by(p.entry, link);
    return descriptor(openat(p.entry.get(), link.c_str(), O_PATH | O_CLOEXEC));
  });
}

}  // namespace sluice::journal
