// SPDX-License-Identifier: Apache-2.0
// Somebody who holds the lock of a file or of a directory: a process asks for the blocks of it, or
// lists it, into memory that never comes. Needs root and userfaultfd.
#pragma once

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#include "base/descriptor.h"

namespace sluice::test {

class held_lock {
 public:
  /// Until it ends. `with_maker`: of a directory, and somebody waits to make a name in it, whom all
  /// others wait for.
  explicit held_lock(std::string const& path, bool with_maker = false) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    descriptor const hears(ends[0]);
    descriptor says(ends[1]);
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      hold(path, with_maker, says.get());
    }
    says = descriptor();
    char byte = 0;
    is_held_ = read(hears.get(), &byte, 1) == 1;
    if (!is_held_) WARN("skip: needs root and userfaultfd");
  }
  ~held_lock() { end(); }
  held_lock(held_lock const&) = delete;
  held_lock& operator=(held_lock const&) = delete;

  explicit operator bool() const { return is_held_; }
  void end() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }

 private:
  static constexpr std::size_t page = 4096;

  /// It tells when it holds it, and ends without that where it cannot.
  [[noreturn]] static void hold(std::string const& path, bool with_maker, int says) {
    int const file = open(path.c_str(), O_RDONLY);
    int const faults = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
    uffdio_api api = {};
    api.api = UFFD_API;
    void* const at =
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* const never = static_cast<char*>(at) + page;
    uffdio_register memory = {};
    memory.range = {reinterpret_cast<std::uintptr_t>(never), page};
    memory.mode = UFFDIO_REGISTER_MODE_MISSING;
    if (file < 0 || faults < 0 || at == MAP_FAILED || ioctl(faults, UFFDIO_API, &api) != 0 ||
        ioctl(faults, UFFDIO_REGISTER, &memory) != 0)
      _exit(1);
    std::thread asks([&] { ask(file, never); });
    pollfd one = {faults, POLLIN, 0};
    poll(&one, 1, -1);
    std::thread makes;
    if (with_maker) make_name(path, makes);
    if (write(says, "h", 1) != 1) _exit(1);
    for (;;) pause();
  }

  static void ask(int file, char* never) {
    struct stat st = {};
    if (fstat(file, &st) == 0 && S_ISDIR(st.st_mode)) {
      syscall(SYS_getdents64, file, never, page);
      return;
    }
    auto* const blocks = reinterpret_cast<fiemap*>(never - sizeof(fiemap));
    blocks->fm_length = FIEMAP_MAX_OFFSET;
    blocks->fm_extent_count = 8;
    ioctl(file, FS_IOC_FIEMAP, blocks);
  }

  static void make_name(std::string const& directory, std::thread& makes) {
    std::atomic<long> id{0};
    makes = std::thread([&id, name = directory + "/nobody"] {
      id = syscall(SYS_gettid);
      close(open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    });
    while (id == 0) usleep(1'000);
    for (std::string word; word != "D"; usleep(1'000))
      std::ifstream("/proc/self/task/" + std::to_string(id) + "/stat") >> word >> word >> word;
  }

  pid_t child_ = -1;
  bool is_held_ = false;
};

}  // namespace sluice::test
