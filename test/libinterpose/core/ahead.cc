// SPDX-License-Identifier: Apache-2.0
// What is read ahead for small writes and reads.
#include "core/ahead.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace sluice;
using core::ahead_page;
using core::ahead_window;

namespace {

/// A program that writes; every look is at where it is.
struct writer {
  core::overwrites watch;
  std::uint64_t size = 16 * ahead_window, at = 0;
  bool has_position = false;
  core::ahead_end end = core::ahead_end::has_come;
  std::vector<core::file_span> advised;
  unsigned looks = 0;

  void write(std::uint64_t n) {
    auto const where = has_position ? static_cast<std::int64_t>(at) : -1;
    bool const is_due = watch.wrote(where, n);
    at += n;
    if (!is_due) return;
    ++looks;
    auto const span = watch.look(at, size);
    if (span.is_empty()) return;
    watch.came_of_it(end);
    if (end != core::ahead_end::was_cached) advised.push_back(span);
  }
  void write_all(std::uint64_t n) {
    while (at + n <= size) write(n);
  }
};

}  // namespace

TEST_CASE("ahead: an unaligned overwrite is read ahead once, in order, before it comes there",
          "[ahead]") {
  writer w;
  w.has_position = GENERATE(false, true);
  std::uint64_t const piece = GENERATE(8, 512, 4097, 8193, 16383);
  while (w.at + piece <= w.size) {
    std::uint64_t const needed = w.at + piece;
    if (!w.advised.empty()) CHECK(needed <= w.advised.back().to + ahead_page);
    w.write(piece);
  }
  REQUIRE(w.advised.size() >= 15);
  CHECK(w.advised.front().from <= 5 * piece);
  for (std::size_t i = 1; i < w.advised.size(); ++i)
    CHECK(w.advised[i].from == w.advised[i - 1].to);
  CHECK(w.advised.back().to == w.size);
  CHECK(w.looks <= 40);
}

TEST_CASE("ahead: whole pages, large pieces and jumps are let alone", "[ahead]") {
  writer w;
  SECTION("whole pages") { w.write_all(ahead_page); }
  SECTION("whole pages at known places") {
    w.has_position = true;
    w.write_all(4 * ahead_page);
  }
  SECTION("large pieces") { w.write_all(core::ahead_most_piece + 1); }
  SECTION("random places") {
    w.has_position = true;
    for (std::uint64_t i = 0; i < 4000; ++i) {
      w.at = i * 7919 % 4000 * 4097;
      w.write(100);
    }
  }
  CHECK(w.looks == 0);
}

TEST_CASE("ahead: pieces that would fill pages but lie across them count", "[ahead]") {
  writer w;
  w.has_position = true;
  w.at = 100;
  w.write_all(ahead_page);
  CHECK(w.advised.size() >= 15);
}

TEST_CASE("ahead: a file that grows is looked at more and more rarely", "[ahead]") {
  writer w;
  w.size = 0;
  for (std::uint64_t sum = 0; sum < 1024 * ahead_window; sum += 10'000) w.write(10'000);
  CHECK(w.advised.empty());
  CHECK(w.looks <= 7 + 1024 / 64);
}

TEST_CASE("ahead: what is in the cache, or never comes there, is looked at more and more rarely",
          "[ahead]") {
  writer w;
  w.size = 1024 * ahead_window;
  w.end = GENERATE(core::ahead_end::was_cached, core::ahead_end::stays_away);
  while (w.at < w.size / 2) w.write(5000);
  CHECK(w.looks <= 2 * (7 + 512 / 64));
  w.end = core::ahead_end::has_come;
  unsigned const looks = w.looks;
  w.advised.clear();
  w.write_all(5000);
  CHECK(w.advised.size() >= 300);  // after one rest of 64 MiB
  CHECK(w.looks - looks <= 2 * w.advised.size());
}

TEST_CASE("ahead: what cannot be paid is asked for again", "[ahead]") {
  writer w;
  w.end = core::ahead_end::unpaid;
  w.write_all(5000);
  CHECK(w.advised.size() >= 15);
}

TEST_CASE("ahead: who goes back is followed", "[ahead]") {
  writer w;
  while (w.at < 8 * ahead_window) w.write(4097);
  w.at = 0;
  w.advised.clear();
  while (w.at < 4 * ahead_window) w.write(4097);
  REQUIRE_FALSE(w.advised.empty());
  CHECK(w.advised.front().from < 2 * ahead_window);
}

TEST_CASE("ahead: strided reads are advised once each, so many ahead", "[ahead]") {
  using core::strided_reads;
  strided_reads r;
  std::int64_t const step = GENERATE(8192, 40'000, -40'000);
  std::int64_t const begin = 500 * 40'000;
  std::vector<std::int64_t> advised;
  for (int i = 0; i < 200; ++i) {
    auto const a = r.read(begin + i * step, 512);
    for (unsigned k = 0; k < a.count; ++k) {
      CHECK(a.span[k].to - a.span[k].from == 512);
      advised.push_back(static_cast<std::int64_t>(a.span[k].from));
      r.came_of_it(core::ahead_end::has_come);
    }
  }
  REQUIRE(advised.size() >= 190);
  for (std::size_t i = 1; i < advised.size(); ++i) CHECK(advised[i] == advised[i - 1] + step);
  CHECK(advised.back() == begin + (199 + std::int64_t{strided_reads::depth}) * step);
}

TEST_CASE("ahead: sequential, random and large reads are let alone", "[ahead]") {
  core::strided_reads r;
  for (std::int64_t i = 0; i < 100; ++i) CHECK(r.read(i * 4096, 4096).count == 0);
  for (std::int64_t i = 0; i < 100; ++i) CHECK(r.read(i * 100, 50).count == 0);  // same pages
  for (std::int64_t i = 0; i < 100; ++i) CHECK(r.read(i * i * 5000, 512).count == 0);
  for (std::int64_t i = 0; i < 100; ++i) CHECK(r.read(i << 20, 100'000).count == 0);
  for (std::int64_t i = 0; i < 100; ++i) CHECK(r.read(8192, 512).count == 0);
}

TEST_CASE("ahead: strided reads of the cache, or past it, cost a look now and then", "[ahead]") {
  core::strided_reads r;
  auto const end = GENERATE(core::ahead_end::was_cached, core::ahead_end::stays_away);
  unsigned looks = 0;
  for (std::int64_t i = 0; i < 1'000'000; ++i) {
    auto const a = r.read(i * 40'000, 512);
    looks += a.count;
    for (unsigned k = 0; k < a.count; ++k) r.came_of_it(end);
  }
  CHECK(looks < 1000);
}
