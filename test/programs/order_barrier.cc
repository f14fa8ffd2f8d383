// SPDX-License-Identifier: Apache-2.0
// What becomes of barriers: errors are told, what the daemon sends back is synced, tokens are
// waited for and given away. order_barrier DIR, below sluice with ORDER_FAKE=gate, or bare: then a
// barrier is an fsync. This is also how sluice_order.h is used.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <thread>

#include "order_board.h"
#include "sluice_order.h"

using namespace sluice;

namespace {

abi::order_area* area;  // null: nobody is there
std::string dir;

void set_wish(wish what) { wish_word(*area) = static_cast<std::uint64_t>(what); }

int make(char const* name) { return make_file(dir + "/" + name, 1); }

bool fails(long result) { return result == -1 && errno == EIO; }

/// A manifest that names parts: it must not be there without them.
void used_as_meant() {
  int const part = make("part"), manifest = make("manifest");
  sluice_token token;
  CHECK(pwrite(part, "data", 4, 0) == 4);
  CHECK(sluice_barrier(part, &token) == 0);
  CHECK(pwrite(manifest, "part", 4, 0) == 4);  // waits, if it has to
  CHECK(sluice_barrier(manifest, &token) == 0);
  CHECK(sluice_wait(token) == 0);  // now both are durable
  CHECK(sluice_wait(token) == 0);
  CHECK(sluice_wait({}) == 0 && sluice_after({}) == 0);
  close(part);
  close(manifest);
  CHECK(sluice_barrier(-1, &token) == -1 && errno == EBADF);
}

std::uint64_t inode_of(int fd) {
  struct stat st = {};
  CHECK(fstat(fd, &st) == 0);
  return st.st_ino;
}

/// The next change is refused, once; and the next fsync of the file says it, once: not that of the
/// file with the number beside it.
void errors_are_told() {
  int const before = make("before"), bad = make("bad"), after = make("after");
  int const good = (inode_of(before) ^ 1) == inode_of(bad) ? before : after;
  set_wish(wish::fail);
  CHECK(fsync(bad) == 0);
  CHECK(fails(pwrite(good, "x", 1, 0)));
  set_wish(wish::make_durable);
  CHECK(pwrite(good, "x", 1, 0) == 1 && fsync(good) == 0);
  CHECK(fails(fsync(bad)));
  CHECK(fsync(bad) == 0 && pwrite(bad, "x", 1, 0) == 1);
  // By a name, of a file that is closed by then.
  set_wish(wish::fail);
  CHECK(fsync(bad) == 0 && close(bad) == 0);
  CHECK(fails(rename((dir + "/bad").c_str(), (dir + "/worse").c_str())));
  set_wish(wish::make_durable);
  CHECK(access((dir + "/bad").c_str(), F_OK) == 0);
  int const again = open((dir + "/bad").c_str(), O_RDWR);
  CHECK(again >= 0 && fails(fdatasync(again)) && fdatasync(again) == 0);
  // By exec.
  char const* const argv[] = {"true", nullptr};
  set_wish(wish::fail);
  CHECK(fsync(again) == 0 && fails(execv("/bin/true", const_cast<char* const*>(argv))));
  set_wish(wish::make_durable);
  CHECK(fails(fsync(again)));
  // By whoever waits; then nobody else is told.
  sluice_token token;
  set_wish(wish::fail);
  CHECK(sluice_barrier(again, &token) == 0 && fails(sluice_wait(token)));
  set_wish(wish::make_durable);
  CHECK(pwrite(good, "x", 1, 0) == 1 && fsync(again) == 0);
  // A child that knew of the barrier is told as well.
  set_wish(wish::hold);
  CHECK(fsync(again) == 0);
  pid_t const child = fork();
  if (child == 0) _exit(fails(pwrite(good, "c", 1, 0)) ? 0 : 1);
  nap_ms(50);
  set_wish(wish::fail);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(fails(pwrite(good, "p", 1, 0)));
  set_wish(wish::make_durable);
  CHECK(fails(fsync(again)));
  close(good);
  close(again);
}

/// The daemon does nothing: then we do, with the descriptor or without one.
void sent_back() {
  int const one = make("one"), two = make("two");
  set_wish(wish::send_back);
  CHECK(fsync(one) == 0 && pwrite(two, "x", 1, 0) == 1);
  set_wish(wish::hold);
  CHECK(fsync(one) == 0 && close(one) == 0);
  int const other = dup(two);
  CHECK(other == one);  // another file by its number
  set_wish(wish::send_back);
  CHECK(pwrite(two, "x", 1, 0) == 1);
  set_wish(wish::make_durable);
  close(other);
  close(two);
}

/// Another process of the job waits for our barrier.
void given_away() {
  int const fd = make("sent"), own = make("own");
  int ends[2];
  CHECK(pipe(ends) == 0);
  pid_t const child = fork();
  if (child == 0) {
    sluice_token token;
    CHECK(read(ends[0], &token, sizeof token) == sizeof token && token.slot != 0);
    CHECK(sluice_after(token) == 0);
    _exit(pwrite(own, "x", 1, 0) == 1 ? 0 : 1);
  }
  set_wish(wish::hold);
  sluice_token token;
  CHECK(sluice_barrier(fd, &token) == 0);
  CHECK(write(ends[1], &token, sizeof token) == sizeof token);
  nap_ms(60);
  int status = 1;
  bool const silent = area->head.count[static_cast<unsigned>(abi::order_count::silent)] != 0;
  CHECK(waitpid(child, &status, WNOHANG) == 0 || silent);
  set_wish(wish::make_durable);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(sluice_wait(token) == 0);
  close(fd);
  close(own);
}

/// The eventfd is not readable before it is durable, or was refused; and then it is. The program
/// may have closed its own by then.
void told_by_eventfd() {
  int const fd = make("told");
  auto const readable = [](int eventfd, int within_ms) {
    pollfd one = {eventfd, POLLIN, 0};
    return poll(&one, 1, within_ms) == 1;
  };
  for (wish const end : {wish::make_durable, wish::fail}) {
    int const over = eventfd(0, 0), other = dup(over);
    sluice_token token;
    set_wish(wish::hold);
    CHECK(sluice_barrier(fd, &token) == 0 && token.slot != 0);
    CHECK(sluice_notify(token, over) == 0 && close(over) == 0);
    bool const early = readable(other, 50);
    CHECK(!early || area->head.count[static_cast<unsigned>(abi::order_count::silent)] != 0);
    set_wish(end);
    CHECK(readable(other, 20000));
    CHECK(end == wish::fail ? fails(sluice_wait(token)) : sluice_wait(token) == 0);
    CHECK(sluice_notify(token, other) == 0 && readable(other, 0));
    close(other);
  }
  set_wish(wish::make_durable);
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  dir = folder(argc, argv);
  char const* const preload = getenv("LD_PRELOAD");
  if (preload != nullptr && *preload != 0) area = &map_order_area();
  if (area != nullptr) set_wish(wish::make_durable);
  used_as_meant();
  if (area == nullptr) return 0;
  CHECK(area->head.count[static_cast<unsigned>(abi::order_count::barriers)] == 2);
  if (area->head.ordered_targets == 0) return 0;  // an fsync waits there
  errors_are_told();
  sent_back();
  given_away();
  told_by_eventfd();
}
