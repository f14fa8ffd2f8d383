// SPDX-License-Identifier: Apache-2.0
// timed_disks DIR FLUSH_US MIB NAME...: files DIR/NAME of so many MiB in memory, to put loop
// devices on. Each is a disk whose flushes take a known time, one after the other. Since Linux 6.9
// the kernel reads and writes them without this program (FUSE passthrough), so a write takes no
// processor time but that of its copy. Prints "kernel" or "program": who does the reads and writes.
// Ends when it is told to (SIGTERM), or with its parent.
// build: -lfuse3
#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <fuse3/fuse_lowlevel.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>

namespace {

// Of passthrough, which headers before 6.9 lack: linux/fuse.h.
constexpr std::uint32_t may_pass_through = 1u << (37 - 32);  // in flags2
constexpr std::uint32_t passes_through = 1u << 7;            // in open_flags
struct backing_map {
  std::int32_t fd;
  std::uint32_t flags;
  std::uint64_t padding;
};
constexpr unsigned long open_backing = _IOW(229, 1, backing_map);
constexpr unsigned max_stack_depth_word = 0;  // in what fuse_init_out has as unused

struct disk {
  std::string path;  // "/NAME"
  int memory = -1;
  std::int32_t backing = 0;  // its number in the kernel; 0: this program reads and writes
  std::mutex flushing = {};
};

std::deque<disk> disks;
off_t disk_bytes = 0;
timespec flush_time = {};
int device = -1;  // /dev/fuse
std::atomic<bool> is_begun = false;

[[noreturn]] void fail(char const* what) {
  std::fprintf(stderr, "timed_disks: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

disk& opened(fuse_file_info const* file) { return disks[file->fh - 1]; }

int on_getattr(char const* path, struct stat* st, fuse_file_info*) {
  *st = {};
  bool const is_root = std::strcmp(path, "/") == 0;
  bool const is_there =
      std::any_of(disks.begin(), disks.end(), [path](disk const& d) { return d.path == path; });
  if (!is_root && !is_there) return -ENOENT;
  st->st_mode = is_root ? S_IFDIR | 0700 : S_IFREG | 0600;
  st->st_nlink = is_root ? 2 : 1;
  st->st_size = is_root ? 0 : disk_bytes;
  return 0;
}

// The kernel takes files when it has the answer to INIT, so not before the first open.
void give_all_to_kernel() {
  for (disk& d : disks) {
    backing_map map = {d.memory, 0, 0};
    int const id = ioctl(device, open_backing, &map);
    if (id > 0) d.backing = id;
  }
  std::puts(disks.front().backing != 0 ? "kernel" : "program");
  std::fflush(stdout);
}

int on_open(char const* path, fuse_file_info* file) {
  static std::once_flag is_given;
  std::call_once(is_given, give_all_to_kernel);
  for (std::size_t i = 0; i < disks.size(); ++i)
    if (disks[i].path == path) file->fh = i + 1;
  if (file->fh == 0) return -ENOENT;
  file->direct_io = opened(file).backing == 0;
  return 0;
}

int on_read(char const*, char* to, std::size_t bytes, off_t at, fuse_file_info* file) {
  ssize_t const n = pread(opened(file).memory, to, bytes, at);
  return n < 0 ? -errno : static_cast<int>(n);
}

int on_write(char const*, char const* from, std::size_t bytes, off_t at, fuse_file_info* file) {
  ssize_t const n = pwrite(opened(file).memory, from, bytes, at);
  return n < 0 ? -errno : static_cast<int>(n);
}

int on_fsync(char const*, int, fuse_file_info* file) {
  std::lock_guard const hold(opened(file).flushing);
  if (flush_time.tv_sec != 0 || flush_time.tv_nsec != 0)
    clock_nanosleep(CLOCK_MONOTONIC, 0, &flush_time, nullptr);
  return 0;
}

// The library of Debian 12 does not know of passthrough: it is put into its answers to INIT, which
// is the first, and to OPEN, which alone has the length of a fuse_open_out.
ssize_t answer(int fd, iovec* parts, int count, void*) {
  fuse_init_out init;
  fuse_open_out opened_file;
  bool const has_body = count == 2;
  if (has_body && parts[1].iov_len >= sizeof init && !is_begun.exchange(true)) {
    std::memcpy(&init, parts[1].iov_base, sizeof init);
    init.flags |= FUSE_INIT_EXT;
    init.flags2 |= may_pass_through;
    init.unused[max_stack_depth_word] = 1;
    parts[1] = {&init, sizeof init};
  } else if (has_body && parts[1].iov_len == sizeof opened_file) {
    std::memcpy(&opened_file, parts[1].iov_base, sizeof opened_file);
    disk const* const d = opened_file.fh != 0 ? &disks[opened_file.fh - 1] : nullptr;
    if (d != nullptr && d->backing != 0) {
      opened_file.open_flags |= passes_through;
      std::memcpy(&opened_file.padding, &d->backing, sizeof d->backing);
      parts[1] = {&opened_file, sizeof opened_file};
    }
  }
  return writev(fd, parts, count);
}

ssize_t receive(int fd, void* to, std::size_t bytes, void*) { return read(fd, to, bytes); }

void mount_at(char const* dir) {
  device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) fail("/dev/fuse");
  std::string const options =
      "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0";
  if (mount("timed_disks", dir, "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0) fail(dir);
}

// The last process of a namespace of mounts unmounts what is left there, and would wait for itself.
void leave_mounts(char const* dir) {
  if (unshare(CLONE_NEWNS) != 0 ||
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      umount2(dir, MNT_DETACH) != 0)
    fail("unshare");
}

void make_disk(char const* name) {
  disk& d = disks.emplace_back();
  d.path = std::string("/") + name;
  d.memory = memfd_create(name, MFD_CLOEXEC);
  // All of it is there at once: the first write to a page shall not take longer.
  if (d.memory < 0 || fallocate(d.memory, 0, 0, disk_bytes) != 0) fail("memfd");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: timed_disks DIR FLUSH_US MIB NAME...\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_TIMERSLACK, 1);
  long const flush_us = std::atol(argv[2]);
  flush_time = {flush_us / 1'000'000, flush_us % 1'000'000 * 1000};
  disk_bytes = std::atol(argv[3]) << 20;
  for (int i = 4; i < argc; ++i) make_disk(argv[i]);
  fuse_operations acts = {};
  acts.getattr = on_getattr;
  acts.open = on_open;
  acts.read = on_read;
  acts.write = on_write;
  acts.fsync = on_fsync;
  char* words[] = {argv[0], nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, words);
  fuse* const served = fuse_new(&args, &acts, sizeof acts, nullptr);
  mount_at(argv[1]);
  fuse_custom_io const io = {answer, receive, nullptr, nullptr};
  if (served == nullptr || fuse_session_custom_io(fuse_get_session(served), &io, device) != 0)
    fail("fuse");
  leave_mounts(argv[1]);
  fuse_set_signal_handlers(fuse_get_session(served));
  return fuse_loop_mt(served, nullptr);
}
