// SPDX-License-Identifier: Apache-2.0
// Barriers in the area that stages and the log daemon share: a slot that is free says durable, one
// that is not durable is not freed without a word; and a served stream that does not wait.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "order_served.h"

using namespace sluice::order;
using sluice::test::lacks_root;
using sluice::test::order_stream;
using sluice::test::served;
namespace abi = sluice::abi;

namespace {

using state = abi::order_slot_state;
constexpr std::uint64_t second_ns = 1'000'000'000;

constexpr std::uint32_t word_of(unsigned user, state s) {
  return user << 3 | static_cast<std::uint32_t>(s);
}

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
  s.is_stopped = true;
  usleep(50'000);
  REQUIRE(stream.barrier(open_one, abi::order_request::fsync) == 0);
  REQUIRE(stream.barrier(closed, abi::order_request::fsync) == 0);
  s.is_stopped = false;
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
