// SPDX-License-Identifier: Apache-2.0
#include "core/gathering.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace sluice::core;

namespace {

/// A buffer, and what was written out of it.
struct gatherer {
  gathered end;
  std::vector<char> room = std::vector<char>(gather_room);
  std::string out;

  bool add(std::string const& piece) {
    return end.add(static_cast<std::uint32_t>(piece.size()), [&](std::uint32_t at) {
      std::copy(piece.begin(), piece.end(), room.begin() + at);
      return true;
    });
  }
  /// Keeps so many bytes, or all that there are.
  void flush(std::uint32_t keeps, std::uint32_t most) {
    auto const was = end.shut();
    std::uint32_t const kept = std::min(keeps, was.bytes);
    out.append(room.data(), was.bytes - kept);
    std::copy(room.begin() + was.bytes - kept, room.begin() + was.bytes, room.begin());
    end.open(kept, most);
  }
};

}  // namespace

TEST_CASE("gathering: what was told is there, in order, whatever is kept", "[gathering]") {
  std::mt19937 random(1);
  gatherer g;
  std::string told;
  CHECK_FALSE(g.add("nobody opened it"));
  g.end.open(0, 1000);
  for (int i = 0; i < 20000; ++i) {
    std::string const piece(1 + random() % 300, static_cast<char>('a' + i % 26));
    while (!g.add(piece)) g.flush(random() % 500, 1000);
    told += piece;
    if (random() % 50 == 0) g.flush(0, 1000);
  }
  g.flush(0, 0);
  CHECK(g.out == told);
  CHECK_FALSE(g.end.is_any());
}

TEST_CASE("gathering: a piece that could not be copied is not there", "[gathering]") {
  gatherer g;
  g.end.open(0, 100);
  CHECK_FALSE(g.end.add(5, [](std::uint32_t) { return false; }));
  CHECK(g.add("x"));
  CHECK(g.end.is_any());
  CHECK_FALSE(g.end.is_taken());
  auto const was = g.end.shut();
  CHECK(was.bytes == 1);
  CHECK(was.calls == 1);
  CHECK_FALSE(g.add("y"));
}

TEST_CASE("gathering: who is shut out while he copies is told so", "[gathering]") {
  gatherer g;
  g.end.open(0, 100);
  REQUIRE(g.add("before"));
  gathered::contents was;
  bool const is_in = g.end.add(4, [&](std::uint32_t at) {
    CHECK(at == 6);
    CHECK_FALSE(g.add("a handler's"));  // it is taken
    was = g.end.shut();
    return true;
  });
  CHECK_FALSE(is_in);
  CHECK(was.bytes == 6);
  // One that never comes back leaves it taken.
  g.end.open(0, 100);
  g.end.add(4, [&](std::uint32_t) {
    CHECK(g.end.is_taken());
    return false;
  });
  CHECK(g.add("after"));
}

TEST_CASE("gathering: what is drawn is there in order, and all of it, but at the end",
          "[gathering]") {
  gatherer g;
  std::string const room = "0123456789";
  std::string got;
  auto const draw = [&](std::uint32_t size) {
    return g.end.draw(size, [&](std::uint32_t at, std::uint32_t n) {
      got.append(room, at, n);
      return true;
    });
  };
  CHECK(draw(1) == gathered::none);  // nobody opened it
  g.end.open(0, 10);
  CHECK(draw(4) == 4);
  CHECK(draw(7) == gathered::none);  // six are left, and more may follow
  CHECK(draw(6) == 6);
  CHECK(got == room);
  CHECK(draw(0) == 0);
  CHECK(draw(1) == gathered::none);
  CHECK(g.end.shut().bytes == 10);
  CHECK(draw(0) == gathered::none);
  g.end.open(0, 3, true);
  CHECK(draw(5) == 3);
  CHECK(draw(5) == 0);
}

TEST_CASE("gathering: what could not be copied, or was shut meanwhile, is not drawn",
          "[gathering]") {
  gatherer g;
  g.end.open(0, 10);
  auto const nothing = [](std::uint32_t, std::uint32_t) { return false; };
  auto const all = [](std::uint32_t, std::uint32_t) { return true; };
  CHECK(g.end.draw(4, nothing) == gathered::none);
  CHECK(g.end.draw(4, [&](std::uint32_t at, std::uint32_t) {
    CHECK(at == 0);
    CHECK(g.end.draw(1, all) == gathered::none);  // a handler's: it is taken
    return g.end.shut().bytes == 0;
  }) == gathered::none);
  g.end.open(0, 10);
  CHECK(g.end.draw(4, all) == 4);
  auto const was = g.end.shut();
  CHECK(was.bytes == 4);
  CHECK(was.calls == 1);
}

TEST_CASE("gathering: who leaves a file early is asked later the next time") {
  unsigned patience = gather_begin;
  for (int i = 0; i < 20; ++i) patience = patience_after(patience, enough_reads - 1);
  CHECK(patience == most_patience);
  CHECK(patience_after(patience, enough_reads) == gather_begin);
  CHECK(patience_after(gather_begin, 0) == 2 * gather_begin);
}

TEST_CASE("gathering: reads ahead end at multiples of the window, and are large enough") {
  CHECK(most_read_ahead(0, 8) == read_window);
  CHECK(most_read_ahead(read_window - 100, 100) == 100);
  CHECK(most_read_ahead(read_window - 100, 101) == read_window + 100);
  CHECK(most_read_ahead(5 * read_window + 1, most_piece) == read_window - 1);
}

TEST_CASE("gathering: threads lose nothing and count nothing twice", "[gathering]") {
  gatherer g;
  std::atomic<unsigned> refused{0};
  std::atomic<bool> is_over{false};
  std::vector<std::string> told(3);
  g.end.open(0, 4000);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < told.size(); ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 20000; ++i) {
        std::string const piece = std::to_string(t) + ":" + std::to_string(i) + ";";
        if (g.add(piece))
          told[t] += piece;
        else
          ++refused;
      }
    });
  std::thread flusher([&] {
    while (!is_over) {
      // Only its owner may open one again that somebody copies into: bytes kept could move below
      // it.
      auto const was = g.end.shut();
      g.out.append(g.room.data(), was.bytes);
      while (g.end.is_taken()) std::this_thread::yield();
      g.end.open(0, 4000);
    }
  });
  for (auto& t : threads) t.join();
  is_over = true;
  flusher.join();
  g.flush(0, 0);
  std::vector<std::string> found(told.size());
  for (std::size_t at = 0; at < g.out.size();) {
    std::size_t const end = g.out.find(';', at) + 1;
    REQUIRE(end != 0);
    found.at(static_cast<unsigned>(g.out[at] - '0')) += g.out.substr(at, end - at);
    at = end;
  }
  CHECK(found == told);
}

TEST_CASE("gathering: flushes end at windows", "[gathering]") {
  CHECK(most_gathered(0) == gather_window);
  CHECK(most_gathered(-1) == gather_window);
  CHECK(most_gathered(gather_window - 1) == 1);
  CHECK(kept_bytes(0, 100) == 0);
  CHECK(kept_bytes(0, gather_window) == 0);
  CHECK(kept_bytes(0, gather_window + 7) == 7);
  CHECK(kept_bytes(gather_window - 10, 30) == 20);
  CHECK(kept_bytes(gather_window - 10, 9) == 0);
  CHECK(kept_bytes(1, 2 * gather_window) == 1);
}

TEST_CASE("gathering: small writes in a row begin a habit, and a pause grows", "[gathering]") {
  habit h;
  auto const writes_until = [&](int fd, unsigned most) {
    for (unsigned i = 1; i <= most; ++i)
      if (h.wrote(fd, 10)) return i;
    return 0u;
  };
  CHECK(writes_until(5, 100) == gather_begin);
  CHECK(writes_until(5, 100) == gather_begin);
  CHECK_FALSE(h.wrote(5, most_piece + 1));
  h.pause();
  unsigned const first = writes_until(5, 100000);
  h.pause();
  unsigned const second = writes_until(5, 100000);
  CHECK(first > gather_begin);
  CHECK(second > first + first / 2);
  CHECK(writes_until(6, 100) == gather_begin);  // another descriptor
}
