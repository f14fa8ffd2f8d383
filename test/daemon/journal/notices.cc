// SPDX-License-Identifier: Apache-2.0
// Barriers in the area that stages and the log daemon share: a slot that is free says durable, one
// that is not durable is not freed without a word; and a served stream that does not wait.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "journal/notices.h"
#include "order_served.h"

using namespace sluice::journal;
using sluice::descriptor;
using sluice::test::lacks_root;
using sluice::test::order_stream;
using sluice::test::served;
namespace abi = sluice::abi;

namespace {

using state = abi::order_slot_state;
constexpr std::uint64_t second_ns = 1'000'000'000;

/// An area, and a request in its first slot.
struct board {
  sluice::test::scratch at;
  sluice::test::guest program{at.dir + "/order", true};
  area mine{at.dir + "/order"};
  abi::order_slot& slot = program.area().slot[0];
  abi::order_header& head = program.area().head;
  std::vector<request> asked;

  void post(std::uint32_t kind, pid_t owner = getpid()) {
    slot.kind = kind;
    slot.pid = static_cast<std::uint32_t>(owner);
    slot.word = word_of(7, state::posted);
    asked.clear();
    mine.take_posted(asked);
    REQUIRE(asked.size() == 1);
  }
};

constexpr auto barrier = static_cast<std::uint32_t>(abi::order_request::fsync) | abi::order_barrier;

}  // namespace

TEST_CASE("a barrier that is durable frees its slot, any other answer stays", "[order]") {
  board b;
  b.post(barrier);
  CHECK(b.asked[0].is_barrier);
  CHECK(b.asked[0].kind == abi::order_request::fsync);
  b.mine.hold(b.asked[0]);
  CHECK(b.slot.word == word_of(7, state::held));
  b.mine.answer(b.asked[0], 0);
  CHECK(b.slot.word == word_of(7, state::free));
  for (int const result : {EIO, abi::go_native}) {
    b.post(barrier);
    b.mine.answer(b.asked[0], result);
    CHECK(b.slot.word == word_of(7, state::done));
    CHECK(b.slot.result == result);
  }
  b.post(barrier);
  b.mine.hold(b.asked[0]);
  b.slot.word = word_of(7, state::abandoned);
  b.mine.answer(b.asked[0], 0);
  CHECK(b.slot.word == word_of(7, state::free));
  CHECK(b.head.unsure == 0);
  // Who waits for his fsync gets an answer.
  b.post(static_cast<std::uint32_t>(abi::order_request::fsync));
  CHECK_FALSE(b.asked[0].is_barrier);
  b.mine.hold(b.asked[0]);
  CHECK(b.slot.word == word_of(7, state::taken));
  b.mine.answer(b.asked[0], 0);
  CHECK(b.slot.word == word_of(7, state::done));
}

TEST_CASE("a new daemon has no descriptor of what the old one held", "[order]") {
  board b;
  b.post(barrier);
  b.mine.hold(b.asked[0]);
  b.asked.clear();
  b.mine.take_posted(b.asked);
  CHECK(b.asked.empty());
  b.mine.take_posted(b.asked, true);
  REQUIRE(b.asked.size() == 1);
  CHECK(b.asked[0].is_barrier);
  CHECK(b.slot.word == word_of(7, state::taken));
}

TEST_CASE("who writes his slots anew while they are served is sent back", "[order]") {
  board b;
  std::vector<request> waiting;  // as for a file that is busy
  unsigned sent_back = 0;
  for (unsigned user = 1; user <= 100'000; ++user) {
    b.slot.word = word_of(user, state::posted);
    b.mine.take_posted(waiting);
    bool const is_answered = b.slot.word == word_of(user, state::done);
    CHECK((!is_answered || b.slot.result == abi::go_native));
    sent_back += is_answered;
  }
  CHECK(waiting.size() > abi::order_slots);  // no honest program has more
  CHECK(waiting.size() + sent_back == 100'000);
  CHECK(waiting.size() < 10'000);
  waiting.clear();
  b.post(barrier);
}

TEST_CASE("a barrier that is not durable is not freed without a word", "[order]") {
  pid_t const gone = fork();
  if (gone == 0) _exit(0);
  REQUIRE(waitpid(gone, nullptr, 0) == gone);
  struct row {
    pid_t owner;
    int result;
    std::uint64_t lives_s;
    unsigned failed;
  };
  for (row const& r : {row{gone, EIO, 5, 1}, row{gone, abi::go_native, 5, 0},
                       row{getpid(), abi::go_native, 60, 0}, row{getpid(), EIO, 0, 0}}) {
    board b;
    b.post(barrier, r.owner);
    b.mine.answer(b.asked[0], r.result);
    for (std::uint64_t s = 1; s < 200; ++s) {
      b.mine.reclaim(s * second_ns);
      bool const is_over = r.lives_s != 0 && s - 1 >= r.lives_s;
      INFO("result " << r.result << " at " << s << " s");
      CHECK(b.slot.word == word_of(7, is_over ? state::free : state::done));
      CHECK(b.head.unsure == (is_over ? 1 : 0));
      CHECK(b.head.failed == (is_over ? r.failed : 0));
    }
  }
  board b;
  b.slot.word = word_of(7, state::held);
  for (std::uint64_t s = 1; s < 200; ++s) b.mine.reclaim(s * second_ns);
  CHECK(b.slot.word == word_of(7, state::held));
}

TEST_CASE("a stream goes on when its barriers are durable, with its files closed", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const home = open(s.dir.c_str(), O_RDONLY | O_DIRECTORY);
  order_stream stream(*s.program, s.log, home);
  std::vector<std::string> const names = {"a", "b", "c"};
  for (auto const& name : names) {
    int const fd = s.make(name);
    s.write(fd, 0, "text of " + name);
    REQUIRE(stream.barrier(fd, abi::order_request::fsync) == 0);
    REQUIRE(stream.before_close(fd) == 0);
    close(fd);
  }
  CHECK(stream.count() == 3);
  REQUIRE(stream.pass() == 0);
  s.kill();
  for (auto const& name : names) REQUIRE(unlink(s.path(name).c_str()) == 0);
  s.recover_it();
  for (auto const& name : names) CHECK(s.read(name) == "text of " + name);
  close(home);
}

TEST_CASE("a barrier whose daemon died is made good by its stream", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const home = open(s.dir.c_str(), O_RDONLY | O_DIRECTORY);
  order_stream stream(*s.program, s.log, home);
  int const open_one = s.make("open"), closed = s.make("closed");
  s.write(open_one, 0, "text");
  s.write(closed, 0, "text");
  s.stand_still();
  REQUIRE(stream.barrier(open_one, abi::order_request::fsync) == 0);
  REQUIRE(stream.barrier(closed, abi::order_request::fsync) == 0);
  s.go_on();
  REQUIRE(stream.before_close(closed) == 0);
  close(closed);
  s.stop();
  auto const unsure = s.program->area().head.unsure.load();
  REQUIRE(stream.barrier(open_one, abi::order_request::fsync) == 0);  // by its own sync
  REQUIRE(stream.pass() == 0);
  s.kill();
  CHECK(s.program->area().head.unsure.load() >= unsure);
  s.recover_it();
  CHECK(s.read("open") == "text");
  CHECK(s.read("closed") == "text");
  close(open_one);
  close(home);
}

namespace {

struct watched : board {
  notices told;
  abi::order_slot& watch = program.area().slot[1];
  descriptor const eventfd_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  /// Somebody wants to know of the barrier in the first slot, by that descriptor.
  void ask(int fd) {
    watch.kind = static_cast<std::uint32_t>(abi::order_request::notify) | abi::order_barrier;
    watch.pid = static_cast<std::uint32_t>(getpid());
    watch.fd = fd;
    watch.device = 0;
    watch.inode = 7;
    watch.word = word_of(9, state::posted);
    std::vector<request> wanted;
    mine.take_posted(wanted);
    REQUIRE(wanted.size() == 1);
    told.add(wanted[0]);
    told.look();
  }
  std::uint64_t count() const {
    std::uint64_t n = 0;
    return read(eventfd_.get(), &n, sizeof n) == sizeof n ? n : 0;
  }
};

}  // namespace

TEST_CASE("an eventfd is told when a barrier has an answer, not before", "[order]") {
  for (int const result : {0, EIO, abi::go_native}) {
    watched w;
    w.post(barrier);
    w.ask(w.eventfd_.get());
    CHECK(w.watch.word == word_of(9, state::held));
    CHECK(w.count() == 0);
    std::uint32_t const rung = w.head.doorbell;
    w.mine.answer(w.asked[0], result);
    CHECK(w.head.doorbell == rung + 1);  // the loop is not asleep until its next turn
    w.told.look();
    CHECK(w.count() == 1);
    CHECK(w.watch.word == word_of(9, state::free));
    w.told.look();
    CHECK(w.count() == 0);
  }
  // Of what is over already, and of what there never was.
  watched late;
  late.ask(late.eventfd_.get());
  CHECK(late.count() == 1);
}

TEST_CASE("what is no eventfd is not written to, and a full one is not waited for", "[order]") {
  watched w;
  std::string const path = w.at.dir + "/file";
  descriptor const file(open(path.c_str(), O_RDWR | O_CREAT, 0600));
  w.post(barrier);
  w.ask(file.get());
  CHECK(w.watch.word == word_of(9, state::done));
  CHECK(w.watch.result == abi::go_native);
  w.ask(-1);
  CHECK(w.watch.word == word_of(9, state::done));
  descriptor const full(eventfd(0, EFD_CLOEXEC));  // a write would wait
  std::uint64_t const most = ~std::uint64_t{0} - 1;
  REQUIRE(write(full.get(), &most, sizeof most) == sizeof most);
  w.ask(full.get());
  w.mine.answer(w.asked[0], 0);
  w.told.look();
  CHECK(w.watch.word == word_of(9, state::free));
  CHECK(lseek(file.get(), 0, SEEK_END) == 0);
}
