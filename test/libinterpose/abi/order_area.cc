// SPDX-License-Identifier: Apache-2.0
// The area that stages and the log daemon share: its golden layout, and places for inodes that many
// claim at once while one gives them back.
#include "abi/order_area.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

using namespace sluice;

namespace {

std::unique_ptr<abi::order_area> fresh_area() { return std::make_unique<abi::order_area>(); }

}  // namespace

TEST_CASE("the layout of the order area is the golden one", "[abi]") {
  REQUIRE(abi::order_layout_version == 6);
  CHECK(offsetof(abi::order_header, layout) == 8);
  CHECK(offsetof(abi::order_header, ordered_targets) == 36);
  CHECK(offsetof(abi::order_header, failed) == 44);
  CHECK(offsetof(abi::order_header, path_streams) == 56);
  CHECK(offsetof(abi::order_header, incarnation) == 64);
  CHECK(offsetof(abi::order_header, unwatched) == 104);
  CHECK(offsetof(abi::order_slot, eager) == 48);
  CHECK(offsetof(abi::order_slot, stream) == 52);
  CHECK(offsetof(abi::order_header, posted) == 136);
  CHECK(offsetof(abi::order_header, doorbell) == 128);
  CHECK(offsetof(abi::order_header, blind) == 192);
  CHECK(sizeof(abi::order_slot) == 64);
  CHECK(sizeof(abi::order_inode) == 384);
  CHECK(sizeof(abi::order_set) == 6336);
  CHECK(offsetof(abi::order_header, voided) == 840);
  CHECK(sizeof(abi::order_header) <= offsetof(abi::order_area, slot));
  CHECK(offsetof(abi::order_area, slot) == 4096);
  CHECK(sizeof(abi::order_mark) == 48);
  CHECK(sizeof(abi::order_area) == 3264512);
}

TEST_CASE("an order area that is not ours is refused", "[abi]") {
  auto const a = fresh_area();
  CHECK(abi::refuse_reason(*a, sizeof *a) != nullptr);
  a->head.magic_word = abi::order_magic;
  a->head.layout = abi::order_layout_version;
  a->head.total_bytes = sizeof *a;
  a->head.set_bytes = sizeof(abi::order_set);
  a->head.slot_bytes = sizeof(abi::order_slot);
  CHECK(abi::refuse_reason(*a, sizeof *a) == nullptr);
  CHECK(abi::refuse_reason(*a, sizeof *a - 1) != nullptr);
  a->head.layout = abi::order_layout_version - 1;
  CHECK(abi::refuse_reason(*a, sizeof *a) != nullptr);
}

TEST_CASE("a key names one inode of one device", "[abi]") {
  auto const a = fresh_area();
  std::set<std::uint64_t> keys;
  for (std::uint64_t device = 1; device <= abi::order_devices; ++device)
    for (std::uint64_t inode : {1ull, 2ull, (1ull << 56) - 1})
      keys.insert(abi::order_key(*a, device << 32, inode));
  CHECK(keys.size() == 3 * abi::order_devices);
  CHECK(keys.count(abi::no_key) == 0);
  CHECK(keys.count(abi::busy_key) == 0);
  CHECK(abi::order_key(*a, 1ull << 32, 2) == abi::order_key(*a, 1ull << 32, 2));
  CHECK(abi::order_key(*a, 99ull << 32, 2) == abi::no_key);  // one device too many
  CHECK(abi::order_key(*a, 1ull << 32, 1ull << 56) == abi::no_key);
  CHECK(abi::order_key(*a, 0, 2) == abi::no_key);
}

TEST_CASE("a full set has no place, and says so", "[abi]") {
  auto const a = fresh_area();
  abi::order_set& s = a->set[0];
  for (std::uint64_t k = 1; k <= abi::order_ways; ++k) CHECK(abi::find_or_claim(s, k) == k - 1);
  CHECK(abi::find_or_claim(s, 99) == abi::order_ways);
  CHECK(abi::find_or_claim(s, 3) == 2);
  CHECK_FALSE(abi::note_inode(s, 99, [](abi::order_inode&) {}));
}

TEST_CASE("flags of all places, of the set and of the area count", "[abi]") {
  auto const a = fresh_area();
  abi::order_set& s = a->set[0];
  s.key[3] = 7;
  s.key[5] = 7;
  s.way[3].state = abi::order_logged;
  s.way[5].state = abi::order_native | abi::order_fallback_one;
  CHECK(abi::state_of(*a, s, 7) == (abi::order_logged | abi::order_native));
  CHECK(abi::state_of(*a, s, 8) == 0);
  s.overflow = 1;
  CHECK(abi::state_of(*a, s, 8) == abi::order_bypass);
  s.overflow = 0;
  a->head.blind = 1;
  CHECK(abi::state_of(*a, s, 8) == abi::order_bypass);
}

// Writers note a page per turn; a daemon takes everything of an inode, or gives its places back,
// which must then count as "all pages unknown". No page may be neither.
TEST_CASE("no page is lost while places are claimed and given back", "[abi]") {
  constexpr unsigned writers = 3, keys = 40, turns = 30'000;
  auto const a = fresh_area();
  abi::order_set& s = a->set[0];  // 40 inodes for 16 places
  std::vector<std::atomic<unsigned>> file(keys + 1), disk(keys + 1);
  std::atomic<bool> end{false};
  auto const write = [&](unsigned self) {
    std::mt19937_64 random(self);
    for (unsigned i = 0; i < turns; ++i) {
      std::uint64_t const key = 1 + random() % keys;
      file[key].fetch_add(1);
      abi::note_inode(s, key, [&](abi::order_inode& e) { core::add(e.written, {key, 1}); });
    }
  };
  std::vector<bool> baseline(keys + 1);
  auto const make_durable = [&](std::uint64_t key) {
    bool named = false;
    bool place = false;
    abi::each_way(s, key, [&](unsigned w) {
      place = true;
      core::take(s.way[w].written, [&](core::page_range) { named = true; });
    });
    if (!place) baseline[key] = false;
    if (named || !baseline[key]) disk[key] = file[key].load();
    baseline[key] = place;
  };
  auto const give_back = [&](unsigned w) {
    std::uint64_t key = s.key[w].load();
    if (key == abi::no_key || !s.key[w].compare_exchange_strong(key, abi::busy_key)) return;
    baseline[key] = false;
    core::take(s.way[w].written, [](core::page_range) {});
    s.key[w] = abi::no_key;
  };
  unsigned missed = 0;
  std::thread daemon([&] {
    std::mt19937_64 random(99);
    while (!end) {
      if (random() % 3 == 0) give_back(static_cast<unsigned>(random() % abi::order_ways));
      std::uint64_t const key = 1 + random() % keys;
      make_durable(key);
    }
  });
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < writers; ++t) threads.emplace_back(write, t);
  for (auto& t : threads) t.join();
  end = true;
  daemon.join();
  for (std::uint64_t key = 1; key <= keys; ++key) {
    make_durable(key);
    missed += disk[key] < file[key] ? 1 : 0;
  }
  CHECK(missed == 0);
}
