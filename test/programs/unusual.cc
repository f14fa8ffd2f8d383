// SPDX-License-Identifier: Apache-2.0
// unusual MODE DIR: things that programs do and that a stage may take for something else. Each mode
// ends with reads of the file DIR/file (walks, for `fts`) that must be counted.
#include "check.h"

#include <aio.h>
#include <fts.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
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
