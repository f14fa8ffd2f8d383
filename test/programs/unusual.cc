// SPDX-License-Identifier: Apache-2.0
// unusual MODE DIR: things that programs do and that a stage may take for something else. Each mode
// ends with reads of the file DIR/file (walks, for `fts`) that must be counted.
#include "abi/segment.h"
#include "check.h"

#include <aio.h>
#include <fts.h>
#include <ftw.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace {
std::string file;

void read_times(int fd, int times) {
  char byte;
  for (int i = 0; i < times; ++i) CHECK(pread(fd, &byte, 1, 0) == 1);
}

int open_file() {
  int const fd = open(file.c_str(), O_RDONLY);
  CHECK(fd >= 0);
  return fd;
}

// libseccomp asks like this whether filters exist: the kernel refuses, and nothing has changed.
void seccomp_probe() {
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr, 0, 0) == -1 && errno == EFAULT);
  read_times(open_file(), 20);
}

// The child of a vfork child ends; its parent still works in its own parent's memory.
void nested_vfork() {
  int const fd = open_file();
  int const other = open("/dev/null", O_RDONLY);
  char byte;
  CHECK(read(other, &byte, 1) == 0);
  read_times(fd, 10);
  pid_t const child = vfork();
  CHECK(child >= 0);
  if (child == 0) {
    pid_t const grandchild = vfork();
    if (grandchild == 0) _exit(0);
    _exit(dup2(other, fd) == fd ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  read_times(fd, 10);
}

// A number that stood for a device now stands for the file, and nobody said so but the kernel.
void stale_descriptor() {
  int const fd = open("/dev/null", O_RDONLY);
  char byte;
  CHECK(read(fd, &byte, 1) == 0);
  CHECK(syscall(SYS_dup2, open_file(), fd) == fd);
  read_times(fd, 20);
}

// Each asks for far more than the 4096 bytes there are.
void advice() {
  int const fd = open_file();
  size_t const much = 64 << 20;
  CHECK(posix_fadvise(fd, 0, 1 << 30, POSIX_FADV_WILLNEED) == 0);
  CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED) == 0);
  CHECK(readahead(fd, 0, much) == 0);
  std::string room(much, ' ');
  aiocb request{};
  request.aio_fildes = fd;
  request.aio_buf = room.data();
  request.aio_nbytes = much;
  CHECK(aio_read(&request) == 0);
  aiocb const* const wait_for = &request;
  while (aio_error(&request) == EINPROGRESS) aio_suspend(&wait_for, 1, nullptr);
  CHECK(aio_return(&request) == 4096);
  aiocb* const list = &request;
  request.aio_lio_opcode = LIO_READ;
  CHECK(lio_listio(LIO_WAIT, &list, 1, nullptr) == 0 && aio_return(&request) == 4096);
}

// Linux AIO through syscall(2), as libaio does.
void submission() {
  int const fd = open_file();
  aio_context_t context = 0;
  CHECK(syscall(SYS_io_setup, 4, &context) == 0);
  std::string room(64 << 20, ' ');
  iocb request{};
  request.aio_fildes = static_cast<uint32_t>(fd);
  request.aio_lio_opcode = IOCB_CMD_PREAD;
  request.aio_buf = reinterpret_cast<uintptr_t>(room.data());
  request.aio_nbytes = room.size();
  iocb* list = &request;
  io_event event{};
  CHECK(syscall(SYS_io_submit, context, 1, &list) == 1);
  CHECK(syscall(SYS_io_getevents, context, 1, 1, &event, nullptr) == 1 && event.res == 4096);
}

// A walk that stays where it is names entries by paths from there.
void walk() {
  std::string dir = file.substr(0, file.rfind('/'));
  CHECK(chdir("/") == 0);
  char* const roots[] = {dir.data(), nullptr};
  FTS* const tree = fts_open(roots, FTS_NOCHDIR | FTS_PHYSICAL, nullptr);
  CHECK(tree != nullptr);
  int entries = 0;
  while (fts_read(tree) != nullptr) ++entries;
  CHECK(errno == 0 && fts_close(tree) == 0);
  printf("%d\n", entries);
}

// A stream in memory has no descriptor, whatever number its record shows.
void memory_stream() {
  int const fd = open_file();
  CHECK(dup2(fd, 0) == 0);
  read_times(0, 1);
  char* text = nullptr;
  size_t length = 0;
  FILE* const stream = open_memstream(&text, &length);
  CHECK(stream != nullptr);
  stream->_fileno = 0;  // as it may be found: glibc leaves it as it was in the heap
  std::string const block(1 << 20, 'x');
  CHECK(fwrite(block.data(), 1, block.size(), stream) == block.size());
  CHECK(fflush(stream) == 0 && length == block.size());
  rewind(stream);
  CHECK(fwrite(block.data(), 1, 1000, stream) == 1000);
  CHECK(fclose(stream) == 0);
  free(text);
  read_times(0, 1);
}

int remove_name(char const* path, struct stat const*, int type, FTW* where) {
  if (type == FTW_F) CHECK(unlink(path + where->base) == 0);
  return 0;
}

std::string fill(std::string const& tree) {
  for (std::string const& dir : {tree, tree + "/sub"}) {
    CHECK(mkdir(dir.c_str(), 0700) == 0);
    for (int i = 0; i < 5; ++i) CHECK(close(make_file(dir + "/" + std::to_string(i))) == 0);
  }
  return tree;
}

// libc changes the current directory by itself while it walks: each bare name means a file of the
// tree (30 of them) until the walk is over, and none of it before and after.
void changing_walks() {
  std::string tree = fill(file + "s");
  std::string const more = fill(file + "s.more"), last = fill(file + "s.last");
  CHECK(chdir("/") == 0 && unlink("no-such-name") == -1);
  for (std::string const& root : {tree, last}) {
    char* const roots[] = {const_cast<char*>(root.c_str()), nullptr};
    FTS* const walk = fts_open(roots, FTS_PHYSICAL, nullptr);
    CHECK(walk != nullptr);
    int files = 0;
    while (auto* const entry = static_cast<FTSENT*>(fts_read(walk))) {
      if (entry->fts_info == FTS_F) CHECK(unlink(entry->fts_accpath) == 0);
      if (entry->fts_info == FTS_F && ++files == 10) break;
    }
    CHECK(files == 10 && fts_close(walk) == 0);
    CHECK(unlink("no-such-name") == -1);
  }
  CHECK(nftw(more.c_str(), remove_name, 8, FTW_CHDIR | FTW_PHYS) == 0);
  CHECK(unlink("no-such-name") == -1);
  CHECK(syscall(SYS_chdir, tree.c_str()) == 0 && unlink("no-such-name") == -1);
}

bool has_shard() {
  char const* const preload = getenv("LD_PRELOAD");
  if (preload == nullptr) return true;
  std::string const library = preload;
  int const fd = open((library.substr(0, library.rfind('/')) + "/segment").c_str(), O_RDONLY);
  CHECK(fd >= 0);
  void* const at = mmap(nullptr, sizeof(sluice::abi::segment), PROT_READ, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED && close(fd) == 0);
  bool found = false;
  for (auto const& owner : static_cast<sluice::abi::segment*>(at)->shard_owner)
    found = found || (owner & 0xffffffff) == static_cast<unsigned>(gettid());
  CHECK(munmap(at, sizeof(sluice::abi::segment)) == 0);
  return found;
}

int pipes[2];
int shared_fd;

int clone_child(void*) { _exit(dup2(pipes[1], shared_fd) == shared_fd ? 0 : 1); }

// A child of clone(2) that shares the memory, as vfork's does: what it does with its descriptors
// and its end are not its parent's.
void clone_child_test() {
  alignas(16) static char stack[1 << 16];
  shared_fd = open_file();
  CHECK(pipe(pipes) == 0);
  read_times(shared_fd, 10);
  CHECK(has_shard());
  pid_t const child =
      clone(clone_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
  int status = 1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  CHECK(has_shard());
  read_times(shared_fd, 10);
}

void* spawn_crowded(void*) {
  char volatile used[4096] = {};  // the program has a use for its stack, too
  CHECK(used[sizeof used - 1] == 0);
  static char entry[] = "A=b";
  static char* environment[951];
  for (int i = 0; i < 950; ++i) environment[i] = entry;
  static char head[] = "head", bytes[] = "-c10";
  char* const arguments[] = {head, bytes, file.data(), nullptr};
  pid_t child;
  int status = 1;
  CHECK(posix_spawnp(&child, "head", nullptr, nullptr, arguments, environment) == 0);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return nullptr;
}

// A thread of the least stack starts a program with a large environment that does not name us.
void crowded_environment() {
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK(pthread_attr_init(&attributes) == 0);
  CHECK(pthread_attr_setstacksize(&attributes, static_cast<size_t>(PTHREAD_STACK_MIN)) == 0);
  CHECK(pthread_create(&thread, &attributes, spawn_crowded, nullptr) == 0);
  CHECK(pthread_join(thread, nullptr) == 0);
}
}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  file = std::string(argv[2]) + "/file";
  std::string const mode = argv[1];
  if (access(file.c_str(), F_OK) != 0) close(make_file(file));
  if (mode == "seccomp_probe")
    seccomp_probe();
  else if (mode == "nested_vfork")
    nested_vfork();
  else if (mode == "stale_descriptor")
    stale_descriptor();
  else if (mode == "advice")
    advice();
  else if (mode == "submission")
    submission();
  else if (mode == "changing_walks")
    changing_walks();
  else if (mode == "clone_child")
    clone_child_test();
  else if (mode == "memory_stream")
    memory_stream();
  else if (mode == "fts")
    walk();
  else if (mode == "crowded_environment")
    crowded_environment();
  else
    return 2;
  return 0;
}
