// SPDX-License-Identifier: Apache-2.0
// Threads that do I/O for different ends: roles DIR STEP... Each step writes or reads its own
// number of bytes, so that the bytes of a role tell which steps it had. Steps of one run share a
// process.
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "sluice_role.h"

namespace {

std::string dir;

void put(std::string const& name, std::size_t bytes, int flags = O_CREAT | O_WRONLY | O_APPEND) {
  int const fd = open((dir + "/" + name).c_str(), flags | O_CLOEXEC, 0600);
  CHECK(fd >= 0);
  std::string const text(bytes, 'x');
  CHECK(write(fd, text.data(), bytes) == ssize_t(bytes));
  close(fd);
}

void get(std::string const& name, std::size_t bytes) {
  int const fd = open((dir + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  std::string text(bytes, 0);
  CHECK(pread(fd, text.data(), bytes, 0) == ssize_t(bytes));
  close(fd);
}

void in_thread(char const* name, std::function<void()> const& work) {
  std::thread([&] {
    if (name != nullptr) pthread_setname_np(pthread_self(), name);
    work();
  }).join();
}

// Its creator names it after it has begun to write.
void named_by_another() {
  std::promise<void> wrote, was_named;
  std::thread other([&] {
    put("f", 20);
    wrote.set_value();
    was_named.get_future().wait();
    put("f", 4000);
  });
  wrote.get_future().wait();
  pthread_setname_np(other.native_handle(), "work:other");
  was_named.set_value();
  other.join();
}

void line(std::string const& text) {
  int const fd = open((dir + "/LOG").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  CHECK(fd >= 0);
  CHECK(write(fd, text.data(), text.size()) == ssize_t(text.size()));
  close(fd);
}

void lines_of_all_kinds() {
  line("10:00 Starting job 1 kind fast\n");
  put("f", 32000);
  line("10:01 something else\n");
  put("f", 1);
  line("10:02 Starting job 2 kind slow\n");
  put("f", 64000);
  std::string head = "10:03 Starting job 3 ", tail = "kind fast\n";
  iovec parts[2] = {{head.data(), head.size()}, {tail.data(), tail.size()}};
  int const fd = open((dir + "/LOG").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  CHECK(writev(fd, parts, 2) > 0);  // in two parts: it is no line
  close(fd);
  put("f", 100);
  FILE* const f = fopen((dir + "/LOG").c_str(), "ae");
  CHECK(f != nullptr);
  fputs("10:04 Starting job 4 kind fast\n", f);
  put("f", 2);
  std::string const end = "10:05 Starting job 5 kind slow\n";
  fwrite(end.data(), 1, end.size(), f);
  fclose(f);
}

// A line that one thread writes for another one, by its number.
void line_of_another() {
  std::promise<pid_t> is;
  std::promise<void> told;
  std::thread other([&] {
    is.set_value(gettid());
    told.get_future().wait();
    put("f", 128000);
  });
  line("10:06 " + std::to_string(is.get_future().get()) + " Beginning numbered\n");
  told.set_value();
  other.join();
}

void in_child(std::function<void()> const& work) {
  pid_t const child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

std::map<std::string, std::function<void()>> const steps = {
    {"early", [] { in_thread("work:early", [] { put("f", 1000); }); }},
    {"late",
     [] {
       in_thread(nullptr, [] {
         put("f", 10);
         prctl(PR_SET_NAME, "work:late");
         put("f", 2000);
       });
     }},
    {"other", named_by_another},
    {"inherited", [] { in_thread("work:x", [] { in_thread(nullptr, [] { put("f", 8000); }); }); }},
    {"told",
     [] {
       sluice_role("told");
       put("f", 16000);
       sluice_role("kinds.told");
       put("f", 16000);
       sluice_role("no such role");
       put("f", 3);
       sluice_role("told");
       in_child([] { put("f", 7); });
       sluice_role(nullptr);
       put("f", 4);
     }},
    {"lines", lines_of_all_kinds},
    {"line_of_another", line_of_another},
    {"make",
     [] { in_thread("work:maker", [] { put("made", 256000, O_CREAT | O_RDWR | O_TRUNC); }); }},
    {"read_made",
     [] {
       in_thread("reader", [] {
         put("f", 5);
         get("made", 11);
         put("f", 512000);
         get("f", 13);
         put("END", 17);
         put("f", 6);
       });
     }},
    {"append_made", [] { put("made", 1024000); }},
    {"suffix", [] { put("x.wal", 2048000); }},
    {"fork", [] { in_thread("work:parent", [] { in_child([] { put("f", 4096000); }); }); }},
    {"crash",
     [] {
       in_thread("work:crash", [] {
         put("f", 9);
         kill(getpid(), SIGKILL);
       });
     }},
};

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc > 2);
  dir = argv[1];
  for (int i = 2; i < argc; ++i) {
    auto const step = steps.find(argv[i]);
    CHECK(step != steps.end());
    step->second();
  }
  return 0;
}
