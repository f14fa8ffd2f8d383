// SPDX-License-Identifier: Apache-2.0
// Every way to write a file of a durable target, and what the area says of it afterwards: the pages
// that were written, or that all are unknown, or that the inode is native for good.
#include <aio.h>
#include <dirent.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <set>
#include <thread>
#include <vector>

#include "order_board.h"

using namespace sluice;

namespace {

abi::order_area* area;
std::string dir;

/// As the daemon does; from then on the file is watched.
noted take(struct stat const& st) {
  raise(*area, st, 0);
  return take(*area, st);
}

noted take(int fd) { return take(stat_of(fd)); }

noted take(std::string const& path) {
  struct stat st;
  CHECK(stat(path.c_str(), &st) == 0);
  return take(st);
}

std::string fresh(char const* name, std::size_t pages = 16) {
  std::string const path = dir + "/" + name;
  int const fd = make_file(path, pages * 4096);
  close(fd);
  take(path);
  return path;
}

int open_fresh(char const* name, int flags = O_RDWR, std::size_t pages = 16) {
  int const fd = open(fresh(name, pages).c_str(), flags | O_CLOEXEC);
  CHECK(fd >= 0);
  return fd;
}

/// Exactly these pages, no doubt.
void exactly(int fd, std::set<std::uint64_t> const& pages) {
  noted const n = take(fd);
  if (n.pages != pages || (n.flags & abi::order_whole) != 0) {
    for (auto p : n.pages) fprintf(stderr, "page %llu\n", static_cast<unsigned long long>(p));
    fprintf(stderr, "flags %llx\n", static_cast<unsigned long long>(n.flags));
    CHECK(n.pages == pages && (n.flags & abi::order_whole) == 0);
  }
}

/// These pages among them, or all unknown.
void at_least(noted const& n, std::set<std::uint64_t> const& pages) {
  if ((n.flags & abi::order_whole) != 0) return;
  for (std::uint64_t const p : pages) CHECK(n.pages.count(p) == 1);
}

char block[65536];

void plain_writes() {
  int const fd = open_fresh("plain");
  CHECK(lseek(fd, 8192, SEEK_SET) == 8192);
  errno = 77;
  CHECK(write(fd, block, 4096) == 4096);
  CHECK(errno == 77);
  exactly(fd, {2});
  CHECK(write(fd, block, 1) == 1);
  exactly(fd, {3});
  CHECK(pwrite(fd, block, 2, 4095) == 2);
  exactly(fd, {0, 1});
  iovec const parts[2] = {{block, 4096}, {block, 4096}};
  CHECK(pwritev(fd, parts, 2, 20480) == 8192);
  exactly(fd, {5, 6});
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  CHECK(writev(fd, parts, 2) == 8192);
  exactly(fd, {0, 1});
  CHECK(pwritev2(fd, parts, 1, -1, 0) == 4096);
  exactly(fd, {2});
  CHECK(syscall(SYS_pwrite64, fd, block, 4096L, 16384L) == 4096);
  exactly(fd, {4});
  CHECK(write(fd, block, 0) == 0);
  exactly(fd, {});
  close(fd);
}

void other_descriptors() {
  int const fd = open_fresh("dup");
  int const other = dup(fd);
  CHECK(pwrite(other, block, 4096, 4096) == 4096);
  exactly(fd, {1});
  pid_t const child = fork();
  if (child == 0) _exit(pwrite(fd, block, 4096, 12288) == 4096 ? 0 : 1);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  exactly(fd, {3});
  // One file position for two processes.
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  for (int i = 0; i < 4; ++i) {
    pid_t const writer = fork();
    if (writer == 0) {
      for (int k = 0; k < 8; ++k)
        if (write(fd, block, 4096) != 4096) _exit(1);
      _exit(0);
    }
  }
  while (wait(&status) > 0) CHECK(status == 0);
  std::set<std::uint64_t> all;
  for (std::uint64_t p = 0; p < 32; ++p) all.insert(p);
  at_least(take(fd), all);
  close(other);
  close(fd);
}

void appends() {
  int const fd = open_fresh("append", O_WRONLY | O_APPEND, 1);
  CHECK(write(fd, block, 100) == 100);
  exactly(fd, {1});
  CHECK(pwrite(fd, block, 8192, 0) == 8192);  // appends all the same, on Linux
  exactly(fd, {1, 2, 3});
  CHECK(ftruncate(fd, 0) == 0);
  CHECK(take(fd).cut == 1);
  std::string const path = dir + "/append";
  for (int i = 0; i < 4; ++i)
    if (fork() == 0) {
      int const own = open(path.c_str(), O_WRONLY | O_APPEND);
      for (int k = 0; k < 50; ++k)
        if (write(own, block, 1000) != 1000) _exit(1);
      _exit(0);
    }
  int status = 0;
  while (wait(&status) > 0) CHECK(status == 0);
  std::set<std::uint64_t> all;
  for (std::uint64_t p = 0; p < 200'000 / 4096 + 1; ++p) all.insert(p);
  at_least(take(fd), all);
  close(fd);
}

void many_threads() {
  int const fd = open_fresh("threads", O_RDWR, 64);
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int k = 0; k < 16; ++k) CHECK(write(fd, block, 4096) == 4096);
    });
  for (auto& t : threads) t.join();
  std::set<std::uint64_t> all;
  for (std::uint64_t p = 0; p < 64; ++p) all.insert(p);
  at_least(take(fd), all);
  for (std::uint64_t p = 0; p < 64; p += 8)
    CHECK(pwrite(fd, block, 1, static_cast<off_t>(p * 4096)) == 1);
  exactly(fd, {0, 8, 16, 24, 32, 40, 48, 56});
  close(fd);
}

void copies() {
  int const from = open_fresh("from");
  int const fd = open_fresh("copy");
  off_t in = 0, out = 8192;
  if (copy_file_range(from, &in, fd, &out, 4096, 0) == 4096) exactly(fd, {2});
  CHECK(lseek(fd, 16384, SEEK_SET) == 16384);
  in = 0;
  if (copy_file_range(from, &in, fd, nullptr, 4096, 0) == 4096) exactly(fd, {4});
  in = 0;
  CHECK(sendfile(fd, from, &in, 4096) == 4096);
  exactly(fd, {5});
  int ends[2];
  CHECK(pipe(ends) == 0 && write(ends[1], block, 4096) == 4096);
  out = 0;
  CHECK(splice(ends[0], nullptr, fd, &out, 4096, 0) == 4096);
  exactly(fd, {0});
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  CHECK(dprintf(fd, "%s", "hello") == 5);
  exactly(fd, {0});
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192) == 0)
    exactly(fd, {1, 2});
  if (fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096) == 0) {
    noted const n = take(fd);
    CHECK((n.flags & abi::order_whole) != 0 && n.cut == 1);
  }
  close(fd);
}

void streams() {
  std::string const path = fresh("stream");
  FILE* f = fopen(path.c_str(), "r+");
  CHECK(f != nullptr);
  int const fd = fileno(f);
  CHECK(fwrite(block, 1, 100, f) == 100);
  exactly(fd, {});
  CHECK(fflush(f) == 0);
  at_least(take(fd), {0});
  CHECK(fseek(f, 20480, SEEK_SET) == 0);
  for (int i = 0; i < 5000; ++i) CHECK(putc('x', f) == 'x');
  CHECK(fseek(f, 0, SEEK_SET) == 0);
  at_least(take(fd), {5, 6});
  CHECK(fwrite(block, 1, 20000, f) == 20000);
  CHECK(fflush(nullptr) == 0);
  at_least(take(fd), {0, 1, 2, 3, 4});
  char text[10];
  CHECK(fseek(f, 0, SEEK_SET) == 0 && fread(text, 1, 10, f) == 10);
  CHECK(fseek(f, 10, SEEK_SET) == 0 && fprintf(f, "%s", "text") == 4 && fflush(f) == 0);
  at_least(take(fd), {0});
  CHECK(fputs("kept back", f) >= 0 && fclose(f) == 0);
  CHECK((take(path).flags & abi::order_whole) != 0);
  f = fopen(path.c_str(), "a");
  CHECK(f != nullptr && fputs("more", f) >= 0 && fflush(f) == 0);
  at_least(take(path), {16});
  CHECK(fputs("left to exit", f) >= 0);
  pid_t const child = fork();
  if (child == 0) exit(0);  // its libc writes the buffer behind everybody's back
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK((take(path).flags & abi::order_bypass) != 0);
  CHECK(fclose(f) == 0);
  take(path);
}

void sizes() {
  std::string const path = fresh("size");
  int const fd = open(path.c_str(), O_RDWR);
  CHECK(ftruncate(fd, 5000) == 0);
  CHECK(truncate(path.c_str(), 9000) == 0);
  CHECK(take(fd).cut == 5001);
  CHECK(truncate(path.c_str(), 77) == 0);
  CHECK(take(fd).cut == 78);
  close(open(path.c_str(), O_WRONLY | O_TRUNC));
  CHECK(take(fd).cut == 1);
  close(fd);
}

void creations() {
  std::string const path = dir + "/made";
  int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && take(fd).created != 0);
  close(fd);
  fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && take(fd).created == 0);
  close(fd);
  CHECK(unlink(path.c_str()) == 0);
  fd = creat(path.c_str(), 0600);
  CHECK(fd >= 0 && take(fd).created != 0);
  close(fd);
  CHECK(unlink(path.c_str()) == 0);
  FILE* const f = fopen(path.c_str(), "w");
  CHECK(f != nullptr && take(path).created != 0);
  fclose(f);
  std::string pattern = dir + "/tempXXXXXX";
  fd = mkstemp(pattern.data());
  CHECK(fd >= 0 && take(fd).created != 0);
  close(fd);
  int const at = open(dir.c_str(), O_RDONLY | O_DIRECTORY);
  fd = openat(at, "made too", O_WRONLY | O_CREAT | O_EXCL, 0600);
  CHECK(fd >= 0 && take(fd).created != 0);
  close(fd);
  close(at);
}

/// Which of its names is durable nobody can tell: its first fsync is the kernel's.
void other_names() {
  std::string const path = dir + "/named", to = dir + "/renamed";
  auto const made = [&] {
    unlink(path.c_str());
    unlink(to.c_str());
    int const fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    return fd;
  };
  auto const is_new = [](int fd) {
    bool const noted = take(fd).created != 0;
    close(fd);
    return noted;
  };
  int fd = made();
  CHECK(is_new(fd));
  fd = made();
  CHECK(rename(path.c_str(), to.c_str()) == 0 && !is_new(fd));
  fd = made();
  CHECK(renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0);
  CHECK(!is_new(fd));
  fd = made();
  CHECK(link(path.c_str(), to.c_str()) == 0 && !is_new(fd));
  fd = made();
  CHECK(linkat(AT_FDCWD, path.c_str(), AT_FDCWD, to.c_str(), 0) == 0 && !is_new(fd));
  fd = made();
  CHECK(syscall(SYS_renameat2, AT_FDCWD, path.c_str(), AT_FDCWD, to.c_str(), 0) == 0);
  CHECK(!is_new(fd));
  fd = made();
  CHECK(syscall(SYS_linkat, AT_FDCWD, path.c_str(), AT_FDCWD, to.c_str(), 0) == 0 && !is_new(fd));
  fd = made();
  std::string const link = "/proc/self/fd/" + std::to_string(fd);
  CHECK(linkat(AT_FDCWD, link.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0);
  CHECK(!is_new(fd));
  fd = made();
  int const other = open(to.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  CHECK(other >= 0);
  CHECK(renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0);
  CHECK(!is_new(fd) && !is_new(other));
}

void raise(int fd, std::uint64_t flag) { raise(*area, stat_of(fd), flag); }

std::uint64_t requests() {
  std::uint64_t sum = 0;
  for (auto const what : {abi::order_count::answered, abi::order_count::sent_back,
                          abi::order_count::absent, abi::order_count::silent})
    sum += area->head.count[static_cast<unsigned>(what)];
  return sum;
}

/// What the log has of a file does not end with its name in the durable directory.
void moved_out() {
  std::string const to = dir + "/../moved.out";
  CHECK(rename(fresh("moved").c_str(), to.c_str()) == 0);
  int const fd = open(to.c_str(), O_RDWR);
  CHECK(fd >= 0);
  std::uint64_t const before = requests();
  CHECK(fsync(fd) == 0 && requests() == before);
  raise(fd, abi::order_logged);
  CHECK(fsync(fd) == 0 && fdatasync(fd) == 0 && requests() == before + 2);
  close(fd);
  unlink(to.c_str());
}

/// A disk lost bytes that the log has: no sync of the rest makes that good.
void refused() {
  if (std::string(getenv("ORDER_FAKE")) != "native") return;
  int const lost = open_fresh("lost"), healthy = open_fresh("healthy");
  raise(lost, abi::order_logged);
  area->head.refused = EIO;
  CHECK(fsync(healthy) == 0);
  CHECK(fsync(lost) == -1 && errno == EIO);
  CHECK(fsync(lost) == -1 && errno == EIO);
  CHECK((take(lost).flags & abi::order_marked) == 0);
  area->head.refused = 0;
  close(lost);
  close(healthy);
}

void bypasses() {
  auto const is_bypassed = [](int fd) {
    std::uint64_t const flags = take(fd).flags;
    CHECK(((flags & abi::order_bypass) != 0) == ((flags & abi::order_apart) != 0));
    return (flags & abi::order_bypass) != 0;
  };
  int fd = open_fresh("sync", O_WRONLY | O_SYNC);
  CHECK(pwrite(fd, block, 10, 0) == 10);
  CHECK(is_bypassed(fd));
  close(fd);
  fd = open_fresh("direct", O_RDWR | O_DIRECT);
  void* aligned = nullptr;
  CHECK(posix_memalign(&aligned, 4096, 4096) == 0);
  memset(aligned, 'd', 4096);
  if (pwrite(fd, aligned, 4096, 0) == 4096) CHECK(is_bypassed(fd));
  close(fd);
  iovec const part = {block, 100};
  fd = open_fresh("both", O_WRONLY | O_DSYNC);
  CHECK(pwritev2(fd, &part, 1, 0, RWF_DSYNC) == 100);
  CHECK(is_bypassed(fd));
  CHECK(posix_fallocate(fd, 0, 4096) == 0);
  CHECK(is_bypassed(fd));
  CHECK(fallocate(fd, 0, 0, 4096) == 0 || errno == EOPNOTSUPP);
  CHECK(is_bypassed(fd));
  CHECK(ioctl(fd, FICLONE, -1) == -1 && is_bypassed(fd));
  close(fd);
  fd = open_fresh("plain");
  CHECK(posix_fallocate(fd, 0, 4096) == 0 && !is_bypassed(fd));
  for (int const protection : {PROT_READ | PROT_WRITE, PROT_READ}) {
    void* const at = mmap(nullptr, 4096, protection, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED && is_bypassed(fd));
    munmap(at, 4096);
  }
  void* const own = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  CHECK(own != MAP_FAILED && !is_bypassed(fd));
  munmap(own, 4096);
  aiocb request = {};
  request.aio_fildes = fd;
  request.aio_buf = block;
  request.aio_nbytes = 100;
  CHECK(aio_write(&request) == 0);
  CHECK(is_bypassed(fd));
  while (aio_error(&request) == EINPROGRESS) nap_ms(1);
  CHECK(aio_return(&request) == 100);
  close(fd);
}

std::uint64_t counted(abi::order_count what) {
  return area->head.count[static_cast<unsigned>(what)];
}

/// A flag of the call asks for what fsync would do, so it is asked for as an fsync is: by any name
/// of the call. A file that is written elsewhere keeps the kernel's.
void writes_durably() {
  int const fd = open_fresh("through");
  iovec const part = {block, 4096};
  std::uint64_t before = requests();
  errno = 44;
  CHECK(pwritev2(fd, &part, 1, 8192, RWF_DSYNC) == 4096 && errno == 44);
  exactly(fd, {2});
  CHECK(requests() == before + 1);
  CHECK(pwritev2(fd, &part, 1, -1, RWF_SYNC) == 4096 && lseek(fd, 0, SEEK_CUR) == 4096);
  exactly(fd, {0});
  CHECK(syscall(SYS_pwritev2, fd, &part, 1L, 4096L, 0L, long{RWF_DSYNC}) == 4096);
  exactly(fd, {1});
  CHECK(requests() == before + 3);
  CHECK(pwritev2(fd, &part, 0, 0, RWF_DSYNC) == 0 && requests() == before + 3);
  CHECK(pwritev2(fd, &part, 1, 0, 1 << 30) == -1 && requests() == before + 3);
  std::uint64_t const own = counted(abi::order_count::own_sync);
  raise(fd, abi::order_bypass | abi::order_apart);
  CHECK(pwritev2(fd, &part, 1, 0, RWF_DSYNC) == 4096);
  CHECK(requests() == before + 3 && counted(abi::order_count::own_sync) == own + 1);
  take(fd);
  close(fd);
}

/// Durable or not, nothing may be undone of it.
void flushes_ranges() {
  int const fd = open_fresh("range");
  std::uint64_t const before = requests();
  CHECK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) == 0);
  CHECK(requests() == before);
  raise(fd, abi::order_logged);
  CHECK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE) == 0 && requests() == before);
  CHECK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) == 0);
  CHECK(requests() == before + 1 && counted(abi::order_count::ranges) == 1);
  CHECK(syscall(SYS_sync_file_range, fd, 0L, 0L, 1L) == 0 && requests() == before + 2);
  CHECK(sync_file_range(-1, 0, 0, 7) == -1 && errno == EBADF);
  take(fd);
  close(fd);
}

void syncs() {
  int const fd = open_fresh("fsync");
  errno = 55;
  CHECK(pwrite(fd, block, 100, 0) == 100 && fsync(fd) == 0 && fdatasync(fd) == 0 && errno == 55);
  CHECK(syscall(SYS_fsync, fd) == 0 && syncfs(fd) == 0);
  int const at = open(dir.c_str(), O_RDONLY | O_DIRECTORY);
  CHECK(fsync(at) == 0);
  close(at);
  int const path_only = open(dir.c_str(), O_PATH);
  CHECK(fsync(path_only) == -1 && errno == EBADF);
  close(path_only);
  CHECK(fsync(-1) == -1 && errno == EBADF);
  CHECK(fsync(1000) == -1 && errno == EBADF);
  int ends[2];
  CHECK(pipe(ends) == 0 && fsync(ends[0]) == -1 && errno == EINVAL);
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  dir = folder(argc, argv);
  area = &map_order_area();
  plain_writes();
  other_descriptors();
  appends();
  many_threads();
  copies();
  streams();
  sizes();
  creations();
  other_names();
  moved_out();
  refused();
  bypasses();
  writes_durably();
  flushes_ranges();
  syncs();
}
