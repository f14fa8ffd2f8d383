// SPDX-License-Identifier: Apache-2.0
// Which changes wait for a barrier, and whom its error is told: order_streams DIR TREE STREAM, with
// ORDER_FAKE=gate; both are ordered, with that stream.
#include <pthread.h>
#include <sys/wait.h>

#include <functional>
#include <thread>

#include "order_board.h"

using namespace sluice;

namespace {

abi::order_area* area;
int subject = -1, other = -1, elsewhere = -1;
int to_child[2], from_child[2];

std::uint64_t lost_patience() {
  auto const counted = [](abi::order_count what) {
    return area->head.count[static_cast<unsigned>(what)].load();
  };
  return counted(abi::order_count::silent) + counted(abi::order_count::absent);
}

void set_wish(wish what) { wish_word(*area) = static_cast<std::uint64_t>(what); }

bool change(int fd) { return pwrite(fd, "y", 1, 0) == 1; }

bool change_as_other() {
  pthread_setname_np(pthread_self(), "other");
  return change(other);
}

/// By a process that was there before.
bool change_in_child() {
  char said = 0;
  CHECK(write(to_child[1], "g", 1) == 1 && read(from_child[0], &said, 1) == 1);
  return said == 'y';
}

pid_t start_child() {
  CHECK(pipe(to_child) == 0 && pipe(from_child) == 0);
  pid_t const pid = fork();
  if (pid != 0) return pid;
  close(to_child[1]);
  for (char c; read(to_child[0], &c, 1) == 1;)
    CHECK(write(from_child[1], change(other) ? "y" : "n", 1) == 1);
  _exit(0);
}

/// Whether `act` waits for a barrier of this thread in the first tree.
bool waits(std::function<bool()> const& act) {
  for (;;) {
    std::uint64_t const lost = lost_patience();
    set_wish(wish::hold);
    CHECK(change(subject) && fsync(subject) == 0);
    std::atomic<bool> is_over{false};
    std::thread one([&] {
      CHECK(act());
      is_over = true;
    });
    nap_ms(60);
    bool const waited = !is_over;
    set_wish(wish::make_durable);
    one.join();
    CHECK(change(subject));
    if (lost_patience() == lost) return waited;
  }
}

/// Who does not wait for a barrier is not told of its error either.
void errors(std::string const& stream) {
  set_wish(wish::fail);
  CHECK(change(subject) && fsync(subject) == 0);
  if (stream == "job" || stream == "path") CHECK(!change_in_child());
  std::thread([&] { CHECK(change_as_other() == (stream == "thread")); }).join();
  if (stream == "thread") CHECK(!change(subject) && errno == EIO);
  set_wish(wish::make_durable);
  CHECK(fsync(subject) == -1 && errno == EIO);
  CHECK(change(subject) && change_in_child() && fsync(subject) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 4);
  std::string const dir = argv[1], tree = argv[2], stream = argv[3];
  area = &map_order_area();
  set_wish(wish::make_durable);
  subject = make_file(dir + "/subject", 1);
  other = make_file(dir + "/other", 1);
  elsewhere = make_file(tree + "/elsewhere", 1);
  pid_t const child = start_child();
  bool const is_shared = stream == "job" || stream == "path";
  CHECK(waits([] { return change(other); }));
  CHECK(waits(change_as_other) == (stream != "thread"));
  CHECK(waits(change_in_child) == is_shared);
  CHECK(waits([] { return change(elsewhere); }) == (stream != "path"));
  CHECK(waits([&] { return mkdir((tree + "/sub").c_str(), 0700) == 0; }));
  errors(stream);
  close(to_child[1]);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}
