// SPDX-License-Identifier: Apache-2.0
// A filter that comes to all threads at once, while one of them is in the middle of an open: a call
// that the program does not make itself is its end from then on. Where the thread is, is no matter
// of time: the name that it opens lies on a page that comes when the filter is there.
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <thread>

namespace {

constexpr long page_bytes = 4096;

void enter_with_all_threads() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog const filter = {sizeof rules / sizeof *rules, rules};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0);
}

// 77: the kernel has no such thing, or not for us.
int missing_page(char* at) {
  int const faults = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  if (faults < 0) _exit(77);
  uffdio_api api = {UFFD_API, 0, 0};
  CHECK(ioctl(faults, UFFDIO_API, &api) == 0);
  uffdio_register all = {
      {reinterpret_cast<uintptr_t>(at), page_bytes}, UFFDIO_REGISTER_MODE_MISSING, 0};
  CHECK(ioctl(faults, UFFDIO_REGISTER, &all) == 0);
  return faults;
}

void bring(int faults, char* to, char const* from) {
  uffdio_copy copy = {reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from),
                      page_bytes, 0, 0};
  CHECK(ioctl(faults, UFFDIO_COPY, &copy) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  alignas(page_bytes) static char name[page_bytes];
  std::string const where = folder(argc, argv);
  close(make_file(where + "/sandboxed"));
  strcpy(name, (where + "/./sandboxed").c_str());  // nobody knows the directory by this name yet
  auto* const page = static_cast<char*>(
      mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(page != MAP_FAILED);
  int const faults = missing_page(page);
  std::thread other([page] {
    int const fd = open(page, O_RDONLY);
    CHECK(fd >= 0 && close(fd) == 0);
  });
  uffd_msg event;
  CHECK(read(faults, &event, sizeof event) == sizeof event);
  enter_with_all_threads();
  bring(faults, page, name);
  other.join();
}
