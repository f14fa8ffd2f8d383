// SPDX-License-Identifier: Apache-2.0
// The set of written pages: covers what was added and not taken, alone and with writers and takers
// at once. A page that a fsync misses is lost data, so the model is a bit per page.
#include "core/page_ranges.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "lib/seeds.h"

using namespace sluice;
using namespace sluice::core;

namespace {

std::set<std::uint64_t> taken(page_ranges& from) {
  std::set<std::uint64_t> pages;
  take(from, [&](page_range r) {
    for (std::uint64_t p = r.first; p < r.end(); ++p) pages.insert(p);
  });
  return pages;
}

}  // namespace

TEST_CASE("bytes become pages", "[ranges]") {
  CHECK(pages_of(0, 0).pages == 0);
  CHECK(pages_of(5, 5).pages == 0);
  CHECK(pages_of(0, 1).pages == 1);
  CHECK(pages_of(4095, 4097).first == 0);
  CHECK(pages_of(4095, 4097).pages == 2);
  CHECK(pages_of(8192, 12288).first == 2);
  CHECK(pages_of(8192, 12288).pages == 1);
  CHECK(fits({0, most_pages}));
  CHECK_FALSE(fits({0, most_pages + 1}));
  CHECK_FALSE(fits({end_of_pages - 1, 2}));
  CHECK_FALSE(fits({0, 0}));
}

TEST_CASE("an appender fills one place", "[ranges]") {
  page_ranges set = {};
  for (std::uint64_t p = 0; p < 10'000; ++p) REQUIRE(add(set, {p, 1}));
  unsigned places = 0;
  take(set, [&](page_range r) {
    ++places;
    CHECK(r.pages == 10'000);
  });
  CHECK(places == 1);
  CHECK(taken(set).empty());
}

TEST_CASE("without room nothing is said to be added", "[ranges]") {
  page_ranges set = {};
  for (std::uint64_t i = 0; i < most_ranges; ++i) REQUIRE(add(set, {i * 10, 1}));
  CHECK_FALSE(add(set, {7, 1}));
  CHECK(add(set, {1, 1}));  // beside one that is there
  CHECK(taken(set).size() == most_ranges + 1);
  CHECK(add(set, {7, 1}));
}

TEST_CASE("a range never grows beyond its word", "[ranges]") {
  page_ranges set = {};
  REQUIRE(add(set, {0, most_pages}));
  REQUIRE(add(set, {most_pages, 5}));
  std::uint64_t total = 0;
  take(set, [&](page_range r) { total += r.pages; });
  CHECK(total == most_pages + 5);
}

TEST_CASE("a set of ranges against one bit per page", "[ranges]") {
  test::for_seeds(300, [](std::mt19937_64& random) {
    page_ranges set = {};
    std::set<std::uint64_t> model;
    for (unsigned step = 0; step < 200; ++step) {
      page_range const r{random() % 600, 1 + random() % 5};
      if (!add(set, r)) {
        CHECK(step >= most_ranges);
        model.clear();
        taken(set);
        continue;
      }
      for (std::uint64_t p = r.first; p < r.end(); ++p) model.insert(p);
      if (random() % 20 == 0) {
        CHECK(taken(set) == model);
        model.clear();
      }
    }
    CHECK(taken(set) == model);
  });
}

// Each writer owns pages, counts up in one, adds it, and now and then makes durable: whoever does
// so takes the set and copies what it names. What a writer wrote before its own turn must be
// durable.
TEST_CASE("nothing that was written before a fsync is missed, writers and takers at once",
          "[ranges]") {
  constexpr unsigned writers = 4, pages_each = 40;
  auto set = std::make_unique<page_ranges>();
  std::vector<std::atomic<unsigned>> file(writers * pages_each), disk(writers * pages_each);
  std::atomic<bool> whole{false};
  std::atomic<unsigned> missed{0};
  std::mutex one_daemon;
  auto const make_durable = [&] {
    std::lock_guard const hold(one_daemon);
    bool const all = whole.exchange(false);
    take(*set, [&](page_range r) {
      for (std::uint64_t p = r.first; p < r.end() && p < file.size(); ++p) disk[p] = file[p].load();
    });
    for (std::size_t p = 0; all && p < file.size(); ++p) disk[p] = file[p].load();
  };
  auto const write = [&](unsigned self) {
    std::mt19937_64 random(self);
    std::vector<unsigned> mine(pages_each);
    for (unsigned step = 0; step < 40'000; ++step) {
      unsigned const i = static_cast<unsigned>(random() % pages_each);
      unsigned const page = i * writers + self;
      file[page].store(++mine[i], std::memory_order_relaxed);
      if (!add(*set, {page, 1})) whole.store(true);
      if (random() % 16 != 0) continue;
      make_durable();
      for (unsigned k = 0; k < pages_each; ++k)
        if (disk[k * writers + self].load() < mine[k]) ++missed;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < writers; ++t) threads.emplace_back(write, t);
  for (auto& t : threads) t.join();
  CHECK(missed == 0);
}
