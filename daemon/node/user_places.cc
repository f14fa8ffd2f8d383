// SPDX-License-Identifier: Apache-2.0
#include "node/user_places.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/descriptor.h"

namespace sluice::node {

namespace {

constexpr gid_t as_it_is = static_cast<gid_t>(-1);

/// An errno of a child, in its status.
int errno_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD; }

int make_in(std::string const& slot, uid_t user) {
  std::string const own = slot + "/own";
  if (mkdir(own.c_str(), 0700) != 0) return errno == EEXIST ? 0 : errno;
  return lchown(own.c_str(), user, as_it_is) == 0 ? 0 : errno;
}

/// Nobody else gets in before it has its name.
int make_slot(std::string const& slot, std::string const& fresh, uid_t user) {
  rmdir((fresh + "/own").c_str());
  rmdir(fresh.c_str());
  if (mkdir(fresh.c_str(), 0700) != 0) return errno;
  int error = make_in(fresh, user);
  if (error == 0 && renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, slot.c_str(), RENAME_NOREPLACE))
    error = errno;
  if (error == 0) return chmod(slot.c_str(), 0711) == 0 ? 0 : errno;
  rmdir((fresh + "/own").c_str());
  rmdir(fresh.c_str());
  return error;
}

}  // namespace

std::string place_of_journal(std::string const& directory, uid_t user) {
  std::string const slot = fmt::format("{}/{}", directory, user);
  struct stat st = {};
  bool const is_flat = user == geteuid() || (lstat(slot.c_str(), &st) == 0 && st.st_uid == user);
  return is_flat ? slot : slot + "/own";
}

std::string user_places::slot_of(uid_t user) const {
  return fmt::format("{}/{}", directory_, user);
}

std::string user_places::place_of(uid_t user) const { return place_of_journal(directory_, user); }

int user_places::make(uid_t user) {
  std::string const slot = slot_of(user), fresh = fmt::format("{}/.new-{}", directory_, user);
  if (place_of(user) == slot) return mkdir(slot.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
  constexpr int most_tries = 3;  // an earlier keeper may just remove it
  int error = ENOENT;
  for (int i = 0; i < most_tries && error == ENOENT; ++i) {
    error = make_slot(slot, fresh, user);
    if (error == EEXIST) error = complete(slot, user);
  }
  return error;
}

int user_places::complete(std::string const& slot, uid_t user) {
  return in_a_child(user, [&] {
    // An earlier keeper may have been killed before this.
    int const failed = chmod(slot.c_str(), 0711) == 0 ? 0 : errno;
    return failed != 0 ? failed : make_in(slot, user);
  });
}

int user_places::remove(uid_t user) {
  std::string const slot = slot_of(user), place = place_of(user);
  if (user == geteuid()) return rmdir(slot.c_str()) == 0 || errno == ENOENT ? 0 : errno;
  if (place == slot) return ENOTEMPTY;  // of an older version: it stays
  return in_a_child(user, [&] {
    bool const is_gone = rmdir(place.c_str()) == 0 || errno == ENOENT;
    return is_gone && (rmdir(slot.c_str()) == 0 || errno == ENOENT) ? 0 : errno;
  });
}

bool user_places::is_without_journal(uid_t user) {
  int const error = in_a_child(user, [journal = place_of(user) + "/journal"] {
    struct stat st = {};
    return lstat(journal.c_str(), &st) == 0 ? 0 : errno;
  });
  return error == ENOENT;
}

int user_places::in_a_child(uid_t user, std::function<int()> const& task) {
  int status = 0;
  if (auto const at = held_up_.find(user); at != held_up_.end()) {
    if (waitpid(at->second, nullptr, WNOHANG) == 0) return EBUSY;
    held_up_.erase(at);
  }
  pid_t const pid = fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    syscall(SYS_close_range, 0, ~0u, 0);  // it may stay longer than we
    _exit(std::min(task(), 255));
  }
  for (int waited_ms = 0; waited_ms < patience_ms; ++waited_ms) {
    if (waitpid(pid, &status, WNOHANG) == pid) return errno_of(status);
    poll(nullptr, 0, 1);
  }
  held_up_[user] = pid;
  return EBUSY;
}

}  // namespace sluice::node
