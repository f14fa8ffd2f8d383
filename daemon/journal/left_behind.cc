// SPDX-License-Identifier: Apache-2.0
#include "journal/left_behind.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/number.h"
#include "base/owners.h"

namespace sluice::journal {

namespace {

constexpr std::int64_t between_looks_ns = 1'000'000'000;
constexpr std::string_view opener_begins = "open-";

/// At most 4 KiB of it; empty: it cannot be read.
std::string text_at(int process, char const* name) {
  descriptor const file(openat(process, name, O_RDONLY | O_CLOEXEC));
  char text[4096];
  ssize_t const n = file ? read(file.get(), text, sizeof text) : 0;
  return {text, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

std::string name_at(int process) {
  std::string name = text_at(process, "comm");
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

/// All processes of our control group that `is_one` takes by owner and name. A set-user-ID program
/// runs by any name, with root as its owner, but in the group of who starts it.
template <class Test>
unsigned count(pid_t but, Test const& is_one) {
  std::unique_ptr<DIR, int (*)(DIR*)> const all(opendir("/proc"), closedir);
  descriptor const self(open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string const group = text_at(self.get(), "cgroup");
  unsigned found = 0;
  while (dirent const* const entry = all ? readdir(all.get()) : nullptr) {
    pid_t pid = 0;
    if (!to_number(entry->d_name, pid) || pid == but) continue;
    descriptor const one(openat(dirfd(all.get()), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat st = {};
    if (!one || fstat(one.get(), &st) != 0) continue;
    if (st.st_uid == 0 && st.st_gid != getegid()) continue;  // a program of a user's, set-user-ID
    if (is_one(st.st_uid, one.get()) && text_at(one.get(), "cgroup") == group) ++found;
  }
  return found;
}

/// Whose are they?
class person {
 public:
  explicit person(uid_t user) : who_(of(user)) {}
  bool has(uid_t uid) { return of(uid) == who_; }

 private:
  uid_t of(uid_t uid) { return owners_.of(uid, steady_ns()); }

  owners owners_;
  uid_t who_;
};

}  // namespace

std::string opener_name(uid_t user) {
  return fmt::format("{}{}", opener_begins, user);  // a name has 15 bytes
}

unsigned hands_left(uid_t user, pid_t but) {
  person his(user);
  return count(but,
               [&](uid_t owner, int at) { return name_at(at) == hands_name && his.has(owner); });
}

unsigned openers_left(uid_t user, pid_t but) {
  person his(user);
  return count(but, [&](uid_t owner, int at) {
    std::string const name = owner == geteuid() ? name_at(at) : "";
    uid_t uid = 0;
    return name.starts_with(opener_begins) && to_number(name.substr(opener_begins.size()), uid) &&
           his.has(uid);
  });
}

void left_behind::add(pid_t child, std::int64_t patience_ns) {
  std::int64_t const until_ns = steady_ns() + patience_ns;
  timespec const nap = {0, 1'000'000};
  kill(child, SIGKILL);
  for (; waitpid(child, nullptr, WNOHANG) == 0; nanosleep(&nap, nullptr)) {
    if (steady_ns() < until_ns) continue;
    own_.push_back(child);
    is_known_ = false;
    return;
  }
}

bool left_behind::is_below(unsigned most, pid_t at_work) {
  bool const is_due = count_ >= most && steady_ns() >= looked_ns_ + between_looks_ns;
  if (!is_known_ || is_due) look(at_work);
  return count_ < most;
}

/// Our own are known also where /proc does not show them.
void left_behind::look(pid_t at_work) {
  std::erase_if(own_, [](pid_t child) { return waitpid(child, nullptr, WNOHANG) != 0; });
  count_ = std::max<std::size_t>(count_all_(at_work), own_.size());
  looked_ns_ = steady_ns();
  is_known_ = true;
}

}  // namespace sluice::journal
