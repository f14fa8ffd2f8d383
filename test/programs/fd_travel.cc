// SPDX-License-Identifier: Apache-2.0
// fd_travel MODE FILE COUNT: reads COUNT times one byte of FILE through a descriptor that came by
// MODE. Modes that end in a pipe (reused_*) make no read of the file under that number at all.
#include "received.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

namespace {
int into(int fd, int number) {
  CHECK(dup2(fd, number) == number);
  return number;
}

/// A file gets the number that a pipe had, by ways of which the later ones cannot be seen.
int after_pipe(std::string const& mode, char const* file) {
  int pair[2];
  CHECK(pipe(pair) == 0);
  CHECK(write(pair[1], "xx", 2) == 2);
  char byte;
  CHECK(read(pair[0], &byte, 1) == 1);
  if (mode == "after_pipe") close(pair[0]);
  if (mode == "after_pipe_range")
    close_range(static_cast<unsigned>(pair[0]), static_cast<unsigned>(pair[0]), 0);
  if (mode == "after_pipe_raw") syscall(SYS_close, pair[0]);
  int const fd = open(file, O_RDONLY);
  CHECK(fd == pair[0]);
  return fd;
}

int arrive(std::string const& mode, char const* file) {
  if (mode == "openat2_raw") {
    uint64_t how[3] = {O_RDONLY, 0, 0};
    return static_cast<int>(syscall(SYS_openat2, AT_FDCWD, file, how, sizeof how));
  }
  if (mode.rfind("after_pipe", 0) == 0) return after_pipe(mode, file);
  int const fd = open(file, O_RDONLY);
  CHECK(fd >= 0);
  if (mode == "open") return fd;
  if (mode == "dup") return dup(fd);
  if (mode == "dup2") return into(fd, 200);
  if (mode == "dup3") return dup3(fd, 201, O_CLOEXEC);
  if (mode == "dup_close") {
    int const copy = dup(fd);
    close(fd);
    return copy;
  }
  if (mode == "fdupfd") return fcntl(fd, F_DUPFD, 300);
  if (mode == "fdupfd_cloexec") return fcntl(fd, F_DUPFD_CLOEXEC, 301);
  if (mode == "high") return fcntl(fd, F_DUPFD, 9000);
  if (mode == "scm") return received_by_socket(fd);
  if (mode == "fork") {
    pid_t const child = fork();
    if (child != 0) {
      int status = 0;
      CHECK(waitpid(child, &status, 0) == child);
      _exit(WEXITSTATUS(status));
    }
    return fd;
  }
  CHECK(!"a mode that is known");
  return -1;
}

/// A pipe gets the number that a file had; its reads must not be taken for reads of the file.
void reused(std::string const& mode, char const* file, int count) {
  int const fd = open(file, O_RDONLY);
  char byte;
  CHECK(fd >= 0);
  if (mode == "reused_close") close(fd);
  if (mode == "reused_range") closefrom(fd);
  if (mode == "reused_raw") syscall(SYS_close, fd);
  int pair[2];
  CHECK(pipe(pair) == 0);
  if (mode == "reused_dup2") {
    CHECK(dup2(pair[0], fd) == fd);
    pair[0] = fd;
  }
  CHECK(pair[0] == fd);
  for (int i = 0; i < count; ++i) CHECK(write(pair[1], "x", 1) == 1 && read(fd, &byte, 1) == 1);
}
}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 4);
  std::string const mode = argv[1];
  int const count = atoi(argv[3]);
  if (mode.rfind("reused_", 0) == 0) {
    reused(mode, argv[2], count);
    return 0;
  }
  int const fd = mode == "inherit" ? 0 : arrive(mode, argv[2]);
  char byte;
  for (int i = 0; i < count; ++i) CHECK(pread(fd, &byte, 1, 0) == 1);
  return 0;
}
