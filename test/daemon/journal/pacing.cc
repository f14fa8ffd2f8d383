// SPDX-License-Identifier: Apache-2.0
// When a batch of the log waits for company, and how home is written beside it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <vector>

#include "journal/at_once.h"
#include "journal/held_file.h"
#include "journal/pacing.h"

using namespace sluice::journal;

TEST_CASE("a batch waits for those whom the last one served, and for nobody else", "[order]") {
  gathering g;
  CHECK(g.patience_ns(1) == 0);
  g.written(1, 0, 1'000'000);
  CHECK(g.patience_ns(1) == 0);  // one program alone
  g.written(8, 8, 1'000'000);
  CHECK(g.expected() == 16);
  CHECK(g.patience_ns(8) == 500'000);
  CHECK(g.patience_ns(16) == 0);
  g.waited(8, 16, 100'000);
  g.written(16, 0, 1'000'000);
  CHECK(g.patience_ns(1) == 500'000);
}

TEST_CASE("a wait is short on a slow disk too", "[order]") {
  gathering g;
  g.written(2, 2, 80'000'000);
  CHECK(g.patience_ns(1) <= 1'000'000);
}

TEST_CASE("who waits in vain waits less and less often", "[order]") {
  gathering g;
  unsigned waits = 0, batches = 0;
  for (; batches < 1000; ++batches) {
    g.written(2, 1, 1'000'000);
    std::uint64_t const patience_ns = g.patience_ns(2);
    if (patience_ns == 0) continue;
    ++waits;
    g.waited(2, 2, patience_ns);
  }
  CHECK(waits < 30);
  CHECK(waits > 5);
  // And as before when somebody comes.
  while (g.patience_ns(2) == 0) g.written(2, 1, 1'000'000);
  g.waited(2, 3, 100'000);
  g.written(3, 0, 1'000'000);
  CHECK(g.patience_ns(2) != 0);
}

TEST_CASE("a wait counts as good when it serves more in the same time", "[order]") {
  auto const after = [](std::size_t came, std::uint64_t waited_ns) {
    gathering g;
    g.written(8, 8, 1'000'000);
    g.waited(8, 8 + came, waited_ns);
    g.written(8 + came, 8, 1'000'000);
    return g.patience_ns(1) != 0;
  };
  CHECK(after(8, 400'000));
  CHECK(after(4, 400'000));
  CHECK_FALSE(after(3, 400'000));
  CHECK_FALSE(after(0, 400'000));
}

TEST_CASE("home is written in pieces that last as long as a batch of the log", "[order]") {
  home_pace p;
  std::uint64_t const at_first = p.pages();
  for (int i = 0; i < 20; ++i) p.wrote(10'000, 1'000'000);
  CHECK(p.pages() > at_first);
  for (int i = 0; i < 20; ++i) p.wrote(50'000'000, 1'000'000);
  CHECK(p.pages() < at_first);
  CHECK(p.pages() > 0);
}

TEST_CASE("home is written with pauses while others wait, and without them as the log fills",
          "[order]") {
  constexpr std::uint64_t room = 64 << 20;
  CHECK(home_pace::pause_ns(1000, room / 3, room, false) == 0);
  CHECK(home_pace::pause_ns(1000, room / 3, room, true) == 3000);
  CHECK(home_pace::pause_ns(1000, room / 8 * 5, room, true) == 1500);
  CHECK(home_pace::pause_ns(1000, room / 4 * 3, room, true) == 0);
  CHECK(home_pace::pause_ns(1000, room, room, true) == 0);
}

TEST_CASE("a sync of all is for file systems on which others have little dirty", "[order]") {
  constexpr std::uint64_t each = home_pace::flush_bytes;
  CHECK(home_pace::is_all_quicker(100, 99 * each));
  CHECK_FALSE(home_pace::is_all_quicker(100, 100 * each));
  CHECK_FALSE(home_pace::is_all_quicker(0, each));
  CHECK_FALSE(home_pace::is_all_quicker(100, 0, 0));
  CHECK(home_pace::is_all_quicker(1, 1ull << 50, ~0ull));
}

TEST_CASE("many syncs are made at once, each of them, and an error of one is told", "[order]") {
  std::atomic<int> made = 0;
  std::vector<std::function<int()>> all(100, [&] { return ++made, 0; });
  CHECK(all_at_once({}) == 0);
  CHECK(all_at_once(all) == 0);
  CHECK(made == 100);
  all[50] = [] { return EIO; };
  CHECK(all_at_once(all) == EIO);
  CHECK(made == 199);
}

TEST_CASE("an error of the disk is told to both who sync a file, if the log has some of it",
          "[order]") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);  // which cannot be synced
  held_file f;
  f.fd = sluice::descriptor(ends[0]);
  CHECK(sync_held_file(f, false, false) == EINVAL);
  CHECK(f.refused == 0);
  CHECK(sync_held_file(f, false, true) == EINVAL);
  f.fd = sluice::descriptor(memfd_create("file", MFD_CLOEXEC));
  CHECK(sync_held_file(f, true, true) == EINVAL);
  close(ends[1]);
}
