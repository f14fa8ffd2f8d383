// SPDX-License-Identifier: Apache-2.0
#include "journal/hands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/keep_only.h"
#include "base/letter.h"
#include "journal/mount_points.h"
#include "journal/recovery_mark.h"
#include "journal/stale_pages.h"

namespace sluice::journal {

namespace {

constexpr std::size_t room_bytes = 1 << 20;
constexpr std::size_t name_room = 256;

[[noreturn]] void cannot(char const* what) {
  throw sluice_error(fmt::format("no process to change files for this recovery: {}: {}", what,
                                 std::strerror(errno)));
}

[[noreturn]] void has_ended() {
  throw sluice_error("the process that changes files for this recovery has ended");
}

int error_of(int returned) { return returned == 0 ? 0 : errno; }

descriptor copy_of(int fd) { return descriptor(fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1); }

// A process that was given up in one of these two ends before it changes anything.

void wait_for_file(int fd) { removexattr(proc_name(fd).c_str(), "user.sluice.none"); }

/// And for the directory. A name is not given to what has it.
void wait_for_name(int directory, char const* name) {
  renameat2(directory, name, directory, name, RENAME_NOREPLACE);
  if (descriptor const there{open_below(directory, name, O_PATH)}) wait_for_file(there.get());
}

/// The kernel looks for a signal that ends us when it has the lock.
int write_all(int fd, std::byte const* bytes, std::uint64_t length, std::uint64_t offset) {
  for (std::uint64_t at = 0; at < length;) {
    ssize_t const n = pwrite(fd, bytes + at, length - at, static_cast<off_t>(offset + at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 ? EIO : errno;
    at += static_cast<std::uint64_t>(n);
  }
  return 0;
}

}  // namespace

bool may_others_look_at(int fd) {
  struct stat st = {};
  return fd >= 0 && (fstat(fd, &st) != 0 || (st.st_mode & (S_IRWXG | S_IRWXO)) != 0);
}

bool is_readable(int socket, std::int64_t most_ns) {
  std::int64_t const until_ns = steady_ns() + most_ns;
  pollfd one = {socket, POLLIN, 0};
  while (true) {
    std::int64_t const left_ns = std::max<std::int64_t>(until_ns - steady_ns(), 0);
    if (poll(&one, 1, static_cast<int>(left_ns / 1'000'000 + 1)) > 0) return true;
    if (left_ns == 0) return false;
  }
}

struct hands::order {
  act what = nullptr;  // the process is a copy of ours
  std::uint64_t offset = 0, length = 0;
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  char name[name_room] = {}, to[name_room] = {};

  bool set(char (&at)[name_room], std::string const& text) {
    if (text.size() >= name_room) return false;
    text.copy(at, text.size());
    return true;
  }
};

struct hands::answer {
  int error = 0;
};

hands::~hands() {
  socket_ = descriptor();  // its end
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  if (bytes_ != nullptr) munmap(bytes_, room_bytes);
}

int hands::write(int file, std::uint64_t offset, std::span<std::byte const> bytes) {
  auto const put = [](order const& o, std::byte const* from, int to, int, descriptor&) {
    wait_for_file(to);  // a write sets times before it looks for a signal
    return write_all(to, from, o.length, o.offset);
  };
  for (int error = 0; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), room_bytes))) {
    order o;
    o.offset = offset;
    o.length = std::min(bytes.size(), room_bytes);
    if ((error = why_not(file, -1)) != 0) return error;
    begin();
    std::memcpy(bytes_, bytes.data(), o.length);
    if ((error = ask(put, o, file)) != 0) return error;
    offset += o.length;
  }
  return 0;
}

int hands::truncate(int file, std::uint64_t bytes) {
  order o;
  o.length = bytes;
  return ask(
      [](order const& a, std::byte const*, int fd, int, descriptor&) {
        wait_for_file(fd);
        return error_of(ftruncate(fd, static_cast<off_t>(a.length)));
      },
      o, file);
}

int hands::why_unwritten(int file, page_set const& bytes) {
  auto const look = [](order const& o, std::byte const*, int fd, int, descriptor&) {
    page_set one;
    one.add(o.offset, o.offset + o.length);
    return journal::why_unwritten(fd, one);
  };
  int error = 0;
  for (auto const& [first, end] : bytes.all()) {
    order o;
    o.offset = first;
    o.length = end - first;
    if ((error = ask(look, o, file)) != 0) break;
  }
  return error;
}

int hands::set_mode(int file, mode_t mode) {
  order o;
  o.mode = mode;
  return ask(
      [](order const& a, std::byte const*, int fd, int, descriptor&) {
        wait_for_file(fd);
        return error_of(fchmod(fd, a.mode));
      },
      o, file);
}

int hands::set_owner(int file, uid_t uid, gid_t gid) {
  order o;
  o.uid = uid;
  o.gid = gid;
  return ask(
      [](order const& a, std::byte const*, int fd, int, descriptor&) {
        wait_for_file(fd);
        return error_of(fchown(fd, a.uid, a.gid));
      },
      o, file);
}

int hands::remove_attribute(int file, std::string const& name) {
  order o;
  if (!o.set(o.name, name)) return ERANGE;
  return ask(
      [](order const& a, std::byte const*, int fd, int, descriptor&) {
        wait_for_file(fd);
        return error_of(fremovexattr(fd, a.name));
      },
      o, file);
}

int hands::set_mark(int file, std::string const& mark) {
  order o;
  if (!o.set(o.name, mark)) return ERANGE;
  return ask(
      [](order const& a, std::byte const*, int fd, int, descriptor&) {
        wait_for_file(fd);
        return set_recovery_mark(fd, a.name);
      },
      o, file);
}

int hands::link(int file, int directory, std::string const& name) {
  order o;
  if (!o.set(o.name, name)) return ENAMETOOLONG;
  return ask(
      [](order const& a, std::byte const*, int fd, int in, descriptor&) {
        wait_for_name(in, a.name);
        return error_of(linkat(AT_FDCWD, proc_name(fd).c_str(), in, a.name, AT_SYMLINK_FOLLOW));
      },
      o, file, directory);
}

int hands::unlink(int directory, std::string const& name) {
  order o;
  if (!o.set(o.name, name)) return ENAMETOOLONG;
  return ask(
      [](order const& a, std::byte const*, int in, int, descriptor&) {
        wait_for_name(in, a.name);
        return error_of(unlinkat(in, a.name, 0));
      },
      o, directory);
}

int hands::rename(int directory, std::string const& from, std::string const& to) {
  order o;
  if (!o.set(o.name, from) || !o.set(o.to, to)) return ENAMETOOLONG;
  return ask(
      [](order const& a, std::byte const*, int in, int, descriptor&) {
        wait_for_name(in, a.name);
        return error_of(renameat2(in, a.name, in, a.to, RENAME_NOREPLACE));
      },
      o, directory);
}

int hands::look_up(int directory, std::string const& name, descriptor& found) {
  order o;
  if (!o.set(o.name, name)) return ENAMETOOLONG;
  return ask(
      [](order const& a, std::byte const*, int in, int, descriptor& there) {
        there = descriptor(open_below(in, a.name, O_PATH));
        return there ? 0 : errno;
      },
      o, directory, -1, &found);
}

int hands::ask(act what, order asked, int file, int other, descriptor* found) {
  if (int const error = why_not(file, other); error != 0) return error;
  begin();
  asked.what = what;
  letter<order> sent{asked, {copy_of(file), copy_of(other)}};
  if (!sent.fds[0] || (other >= 0 && !sent.fds[1])) return EMFILE;
  if (!sent.send_to(socket_.get())) has_ended();
  return hear(file, other, found);
}

/// 0: it may be asked for.
int hands::why_not(int file, int other) {
  if (is_held(file) || is_held(other)) return held;
  bool const is_shared = may_others_look_at(file) || may_others_look_at(other);
  unsigned const most = is_shared ? patience_.most_shared : patience_.most_private;
  return left_.is_below(most, pid_) ? 0 : unasked;
}

int hands::hear(int file, int other, descriptor* found) {
  letter<answer> told;
  if (!is_readable(socket_.get(), patience_.after(late_))) {
    give_up(file, other);
    return held;
  }
  if (!told.take_from(socket_.get())) has_ended();
  if (found != nullptr) *found = std::move(told.fds[0]);
  return told.words.error;
}

bool hands::is_held(int fd) const {
  struct stat st = {};
  return fd >= 0 && !held_.empty() && fstat(fd, &st) == 0 && held_.contains({st.st_dev, st.st_ino});
}

void hands::give_up(int file, int other) {
  ++late_;
  struct stat st = {};
  for (int const fd : {file, other})
    if (fd >= 0 && fstat(fd, &st) == 0) held_.insert({st.st_dev, st.st_ino});
  left_.add(std::exchange(pid_, 0), patience_.ends_ns);
  socket_ = descriptor();
  munmap(bytes_, room_bytes);  // of this process alone: the other may still read there
  bytes_ = nullptr;
}

/// None of it is an errno of a file: EAGAIN of fork would be a lease.
void hands::begin() {
  if (socket_) return;
  int ends[2];
  void* const shared =
      mmap(nullptr, room_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) cannot("mmap");
  bytes_ = static_cast<std::byte*>(shared);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) cannot("socketpair");
  descriptor mine(ends[0]), its(ends[1]);
  pid_ = fork();
  if (pid_ == 0) serve(its.get(), bytes_);
  if (pid_ < 0) cannot("fork");
  socket_ = std::move(mine);
}

void hands::serve(int socket, std::byte const* bytes) {
  socket = keep_only(socket);
  prctl(PR_SET_NAME, hands_name);
  letter<order> asked;
  while (asked.take_from(socket)) {
    letter<answer> told;
    order const& o = asked.words;
    told.words.error = o.what(o, bytes, asked.fds[0].get(), asked.fds[1].get(), told.fds[0]);
    if (!told.send_to(socket)) break;
    asked = {};
  }
  _exit(0);
}

}  // namespace sluice::journal
