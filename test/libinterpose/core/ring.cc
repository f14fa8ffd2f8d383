// SPDX-License-Identifier: Apache-2.0
#include "core/ring.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

using namespace sluice;
using core::added;

namespace {

std::unique_ptr<core::ring> new_ring() {
  auto r = std::make_unique<core::ring>();
  r->end.store(core::ring_end::is_shut);
  core::open(*r);
  return r;
}

added add(core::ring& r, std::string const& piece) {
  return core::add(r, static_cast<std::uint32_t>(piece.size()),
                   [&](std::uint32_t to, std::uint32_t at, std::uint32_t n) {
                     std::memcpy(r.bytes + to, piece.data() + at, n);
                     return true;
                   });
}

/// What the keeper takes, and moves on.
std::string take(core::ring& r) {
  std::string out;
  std::uint64_t const end = core::bytes_in(r);
  for (std::uint64_t at = r.begin.load(); at < end; ++at) out += r.bytes[at % core::ring::room];
  r.begin.store(end);
  return out;
}

}  // namespace

TEST_CASE("ring: bytes come out as they went in, also around its end", "[core]") {
  auto const r = new_ring();
  std::string in, out;
  for (unsigned i = 0; i < 40'000; ++i) {
    std::string const piece(1 + i % 61, static_cast<char>('a' + i % 26));
    while (add(*r, piece) == added::full) out += take(*r);
    in += piece;
  }
  out += take(*r);
  CHECK(in.size() > 4 * core::ring::room);
  CHECK(in == out);
  CHECK(r->calls.load() == 40'000);
}

TEST_CASE("ring: what waits is what the file lacks, and never more than there is room", "[core]") {
  auto const r = new_ring();
  CHECK(core::waiting_bytes(*r) == 0);
  REQUIRE(add(*r, "twelve bytes") == added::yes);
  CHECK(core::waiting_bytes(*r) == 12);
  core::shut(*r);
  CHECK(core::waiting_bytes(*r) == 12);
  take(*r);
  CHECK(core::waiting_bytes(*r) == 0);
  r->begin.store(13);  // scribbled over
  CHECK(core::waiting_bytes(*r) == 0);
  r->end.store(10 * core::ring::room);
  CHECK(core::waiting_bytes(*r) == core::ring::room);
}

TEST_CASE("ring: nothing is added to one that is shut, taken, or left in the middle", "[core]") {
  auto const r = new_ring();
  REQUIRE(add(*r, "first") == added::yes);
  auto const inner = core::add(*r, 3, [&](std::uint32_t, std::uint32_t, std::uint32_t) {
    CHECK(add(*r, "a handler") == added::no);
    core::shut(*r);  // the keeper, or whoever found it taken
    return true;
  });
  CHECK(inner == added::no);
  CHECK(core::is_shut(*r));
  CHECK(take(*r) == "first");
  CHECK(add(*r, "late") == added::no);
  core::open(*r);
  CHECK(add(*r, "again") == added::yes);
  auto const cannot = [](std::uint32_t, std::uint32_t, std::uint32_t) { return false; };
  CHECK(core::add(*r, 3, cannot) == added::no);
  CHECK(add(*r, std::string(core::ring::room + 1, 'x')) == added::no);
  CHECK(take(*r) == "again");
}

TEST_CASE("ring: what was told to be in it is there when it is shut meanwhile", "[core]") {
  for (int turn = 0; turn < 200; ++turn) {
    auto const r = new_ring();
    std::string told;
    std::thread writer([&] {
      for (unsigned i = 0;; ++i) {
        std::string const piece = std::to_string(i) + "\n";
        added const a = add(*r, piece);
        if (a == added::yes) told += piece;
        if (a == added::no) return;
      }
    });
    std::string out;
    while (out.size() < 3000) out += take(*r);
    core::shut(*r);
    out += take(*r);
    writer.join();
    CHECK(out == told);
  }
}
