// SPDX-License-Identifier: Apache-2.0
// A file system that a user serves himself, as he may: in namespaces of his own, with what the
// kernel speaks (FUSE). It keeps the last word of every close for itself.
#pragma once

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace sluice::test {

/// A process of a user that has a file of such a file system open to be written.
class fuse_files {
 public:
  /// `dir`: a folder, which every user may enter. fd stays -1 where such a thing cannot be.
  fuse_files(std::string const& dir, uid_t user) {
    std::string const device = dir + "/fuse", mount = dir + "/mount";
    if (mknod(device.c_str(), S_IFCHR | 0666, makedev(10, 229)) != 0 && errno != EEXIST) return;
    chmod(device.c_str(), 0666);
    mkdir(mount.c_str(), 0777);
    int told[2];
    if (pipe(told) != 0) return;
    pid = fork();
    if (pid == 0) {
      setpgid(0, 0);
      close(told[0]);
      be_user(device, mount, user, told[1]);
      _exit(1);
    }
    close(told[1]);
    struct {
      int fd;
      struct stat st;
    } word;
    if (read(told[0], &word, sizeof word) == sizeof word) fd = word.fd, st = word.st;
    close(told[0]);
  }
  ~fuse_files() { end(); }
  fuse_files(fuse_files const&) = delete;
  fuse_files& operator=(fuse_files const&) = delete;

  /// Who waits for its server is let go.
  void end() {
    if (pid <= 0) return;
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = 0;
  }

  pid_t pid = 0;
  int fd = -1;
  struct stat st = {};

 private:
  static void put(char const* path, std::string const& text) {
    int const to = open(path, O_WRONLY);
    if (to < 0 || write(to, text.data(), text.size()) < 0) _exit(2);
    close(to);
  }

  static fuse_attr attributes(std::uint64_t inode) {
    fuse_attr a = {};
    a.ino = inode;
    a.mode = inode == 1 ? S_IFDIR | 0777 : S_IFREG | 0666;
    a.nlink = 1;
    a.size = inode == 1 ? 0 : 65536;
    a.blksize = 4096;
    return a;
  }

  [[noreturn]] static void serve(int device) {
    alignas(8) static char in[1 << 18];
    while (true) {
      if (read(device, in, sizeof in) < 0) {
        if (errno == EINTR || errno == EAGAIN || errno == ENOENT) continue;
        _exit(0);
      }
      auto const* const asked = reinterpret_cast<fuse_in_header const*>(in);
      struct {
        fuse_out_header head;
        alignas(8) char body[512];
      } out = {};
      std::size_t bytes = 0;
      auto const say = [&](auto const& what) {
        std::memcpy(out.body, &what, sizeof what);
        bytes = sizeof what;
      };
      switch (asked->opcode) {
        case FUSE_INIT: {
          fuse_init_out what = {};
          what.major = FUSE_KERNEL_VERSION;
          what.minor = 31;
          what.max_readahead = what.max_write = 65536;
          what.time_gran = 1;
          say(what);
          break;
        }
        case FUSE_LOOKUP: {
          fuse_entry_out what = {};
          what.nodeid = 2;
          what.entry_valid = 1000;
          what.attr = attributes(2);
          say(what);
          break;
        }
        case FUSE_GETATTR: {
          fuse_attr_out what = {};
          what.attr = attributes(asked->nodeid);
          say(what);
          break;
        }
        case FUSE_OPEN: {
          fuse_open_out what = {};
          what.fh = 1;
          say(what);
          break;
        }
        case FUSE_FLUSH:
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
          continue;  // of a FLUSH somebody waits
        default:
          out.head.error = -ENOSYS;
      }
      out.head.unique = asked->unique;
      out.head.len = static_cast<std::uint32_t>(sizeof out.head + bytes);
      if (write(device, &out, out.head.len) < 0 && errno != ENOENT) _exit(3);
    }
  }

  static void be_user(std::string const& device, std::string const& mount, uid_t user, int told) {
    if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) return;
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return;
    put("/proc/self/setgroups", "deny");
    put("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
    put("/proc/self/gid_map", "0 " + std::to_string(user) + " 1");
    int const to = open(device.c_str(), O_RDWR);
    std::string const with =
        "fd=" + std::to_string(to) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
    if (to < 0 || ::mount("fuse", mount.c_str(), "fuse", MS_NOSUID | MS_NODEV, with.c_str()) != 0)
      return;
    if (fork() == 0) serve(to);
    close(to);  // or the end of this process, which closes its file, would wait for itself
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    struct {
      int fd;
      struct stat st;
    } word = {};
    word.fd = open((mount + "/file").c_str(), O_RDWR);
    if (word.fd < 0 || fstat(word.fd, &word.st) != 0) return;
    if (write(told, &word, sizeof word) != sizeof word) return;
    for (;;) pause();
  }
};

}  // namespace sluice::test
