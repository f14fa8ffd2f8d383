// SPDX-License-Identifier: Apache-2.0
// The sketch of paths against exact counts: what is used often enough is in it, and no count is off
// by more than it says. With writers at once, and with some that die in the middle of a change.
#include "core/path_sketch.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/path_head.h"
#include "lib/seeds.h"

using namespace sluice;
using namespace sluice::core;

namespace {

template <class Sketch>
unsigned note(Sketch& s, std::string const& path, sketch_writer who = {100, 1}) {
  auto const length = static_cast<unsigned>(path.size());
  return note_path(s, sketch_key(path.data(), length), path.data(), length, s.slots, who);
}

using entries = std::map<std::string, sketch_entry>;

/// Two slots of one path are added up, as readers do.
template <class Sketch>
entries read_all(Sketch const& s) {
  entries out;
  sketch_entry e;
  for (unsigned i = 0; i < s.slots; ++i) {
    if (!read_slot(s, i, e)) continue;
    auto const [at, is_new] = out.try_emplace(std::string(e.text, e.length), e);
    if (is_new) continue;
    at->second.calls += e.calls;
    at->second.over += e.over;
  }
  return out;
}

template <class Sketch>
std::uint64_t sum_of_calls(Sketch const& s) {
  std::uint64_t sum = 0;
  for (auto const& calls : s.calls) sum += calls.load();
  return sum;
}

/// A few paths often, very many seldom.
std::string some_path(std::mt19937_64& random, unsigned kinds) {
  double const x = static_cast<double>(random() >> 11) * 0x1p-53;
  return "/d/" + std::to_string(static_cast<unsigned>(x * x * x * x * kinds));
}

}  // namespace

TEST_CASE("sketch: what is used often is in it, and counts are off by at most what they say",
          "[paths]") {
  test::for_seeds(200, [](std::mt19937_64& random) {
    auto s = std::make_unique<path_sketch<16>>();
    std::map<std::string, std::uint64_t> exact;
    auto const uses = 1 + random() % 4000;
    auto const kinds = static_cast<unsigned>(1 + random() % 2000);
    for (std::uint64_t i = 0; i < uses; ++i) {
      std::string const path = some_path(random, kinds);
      REQUIRE(note(*s, path) < s->slots);
      ++exact[path];
    }
    CHECK(sum_of_calls(*s) == uses);
    entries const found = read_all(*s);
    CHECK(found.size() == std::min<std::size_t>(exact.size(), s->slots));
    for (auto const& [path, calls] : exact)
      if (calls * s->slots > uses) CHECK(found.count(path) == 1);
    for (auto const& [path, e] : found) {
      CHECK(e.calls >= exact[path]);
      CHECK(e.calls - e.over <= exact[path]);
      CHECK(e.over <= uses / s->slots);
    }
  });
}

TEST_CASE("sketch: bytes and waits begin anew when a slot changes hands", "[paths]") {
  auto s = std::make_unique<path_sketch<1>>();
  unsigned const at = note(*s, "/a");
  s->row[at].bytes.fetch_add(7);
  s->row[at].waited_ns.fetch_add(7);
  REQUIRE(note(*s, "/b") == at);
  sketch_entry e;
  REQUIRE(read_slot(*s, at, e));
  CHECK(std::string(e.text) == "/b");
  CHECK(e.calls == 2);
  CHECK(e.over == 1);
  CHECK(e.bytes == 0);
  CHECK(e.waited_ns == 0);
}

TEST_CASE("sketch: a slot whose writer died is left alone for a second, then taken", "[paths]") {
  auto s = std::make_unique<path_sketch<2>>();
  REQUIRE(note(*s, "/a") == 0);
  REQUIRE(note(*s, "/b") == 1);
  REQUIRE(note(*s, "/b") == 1);
  s->key[0].store(busy_slot({100, 7}));
  CHECK(note(*s, "/c", {100 + busy_ticks, 1}) == 1);
  CHECK(note(*s, "/d", {101 + busy_ticks, 1}) == 0);
  s->key[0].store(busy_slot({0x7ffffffe, 7}));  // the clock's number may turn over
  CHECK(note(*s, "/e", {0x80000001, 1}) == 1);
  CHECK(note(*s, "/f", {0x80000008, 1}) == 0);
  s->key[0].store(busy_slot({200, 7}));
  s->key[1].store(busy_slot({200, 7}));
  CHECK(note(*s, "/g", {200, 1}) == s->slots);
}

TEST_CASE("sketch: what somebody wrote over it is not believed", "[paths]") {
  test::for_seeds(50, [](std::mt19937_64& random) {
    auto s = std::make_unique<path_sketch<16>>();
    auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(s.get());
    for (std::size_t i = 0; i < sizeof *s / 8; ++i) words[i].store(random());
    CHECK(read_all(*s).empty());
    for (unsigned i = 0; i < 200; ++i) note(*s, some_path(random, 100));
    for (auto const& [path, e] : read_all(*s)) CHECK(path.substr(0, 3) == "/d/");
  });
  auto s = std::make_unique<path_sketch<4>>();
  REQUIRE(note(*s, "/a/b") == 0);
  s->row[0].text[0].fetch_xor(1);
  sketch_entry e;
  CHECK_FALSE(read_slot(*s, 0, e));
}

// Each thread is the only one that knows some paths; all together know a few. What is lost or
// counted twice are at most the uses that were under way when a slot changed hands.
TEST_CASE("sketch: writers at once lose nothing that is used often", "[paths]") {
  constexpr unsigned writers = 4, each = 30'000;
  auto s = std::make_unique<path_sketch<32>>();
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> noted{0};
  for (unsigned t = 0; t < writers; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::uint64_t mine = 0;
      for (unsigned i = 0; i < each; ++i) {
        std::string const path = i % 4 == 0   ? "/common"
                                 : i % 4 == 1 ? "/own/" + std::to_string(t)
                                              : "/x/" + std::to_string(random() % 5000);
        mine += note(*s, path, {100, t + 1}) < s->slots;
      }
      noted += mine;
    });
  for (auto& t : threads) t.join();
  CHECK(sum_of_calls(*s) == noted);
  CHECK(noted > writers * each * 9 / 10);
  entries const found = read_all(*s);
  REQUIRE(found.count("/common") == 1);
  CHECK(found.at("/common").calls >= writers * each / 4 * 99 / 100);
  for (unsigned t = 0; t < writers; ++t) CHECK(found.count("/own/" + std::to_string(t)) == 1);
}

namespace {

std::string head_of(unsigned parts, std::vector<std::string> const& pieces) {
  path_head head(parts);
  for (auto const& piece : pieces) head.add(piece.data(), static_cast<unsigned>(piece.size()));
  return {head.text(), head.length()};
}

}  // namespace

TEST_CASE("path head: the first parts of where the pieces lead", "[paths]") {
  CHECK(head_of(2, {"/"}) == "/");
  CHECK(head_of(2, {"/a"}) == "/a");
  CHECK(head_of(2, {"/a//b/./c/"}) == "/a/b");
  CHECK(head_of(2, {"/a/b/c", "../../d"}) == "/a/d");
  CHECK(head_of(2, {"/a/b/c", ".."}) == "/a/b");
  CHECK(head_of(2, {"/a", "../../.."}) == "/");
  CHECK(head_of(9, {"/a", "b/..c/.d/..."}) == "/a/b/..c/.d/...");
  CHECK(head_of(0, {"/a"}) == "/a");
  std::string const wide(100, 'w');
  CHECK(head_of(16, {"/" + wide, wide, wide, "x"}) == "/" + wide + "/" + wide);
  CHECK(head_of(16, {"/" + wide, wide, wide, "x/../../y"}) == "/" + wide + "/" + wide + "/y");
  CHECK(head_of(16, {"/" + std::string(5000, 'w'), "x"}) == "/");
}

TEST_CASE("path head: any pieces against a list of parts", "[paths]") {
  test::for_seeds(500, [](std::mt19937_64& random) {
    static constexpr char letters[] = "a./b/.";
    std::vector<std::string> parts, pieces;
    for (auto n = random() % 5; n > 0; --n) {
      std::string piece;
      for (auto k = random() % 40; k > 0; --k) piece += letters[random() % 6];
      pieces.push_back(piece);
      for (std::size_t at = 0; at <= piece.size();) {
        std::size_t const end = std::min(piece.find('/', at), piece.size());
        std::string const part = piece.substr(at, end - at);
        if (part == "..") {
          if (!parts.empty()) parts.pop_back();
        } else if (!part.empty() && part != ".") {
          parts.push_back(part);
        }
        at = end + 1;
      }
    }
    auto const wanted = static_cast<unsigned>(1 + random() % most_head_parts);
    std::string expected;
    for (std::size_t i = 0; i < parts.size() && i < wanted; ++i) expected += "/" + parts[i];
    if (expected.size() < sketch_text_bytes)
      CHECK(head_of(wanted, pieces) == (expected.empty() ? "/" : expected));
  });
}
