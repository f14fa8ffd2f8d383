// SPDX-License-Identifier: Apache-2.0
// What is done for one fsync, case by case, and the pages that go with it.
#include <catch2/catch.hpp>

#include "journal/file_state.h"
#include "journal/page_set.h"

using namespace sluice::journal;

namespace {

/// A known file with a page written: goes to the log.
file_seen usual() {
  file_seen f;
  f.is_identified = f.has_baseline = f.has_changed = true;
  f.size = 1 << 20;
  f.dirty_bytes = 4096;
  return f;
}

template <class Change>
way with(Change const& change, file_seen f = usual()) {
  change(f);
  return choose(f);
}

}  // namespace

TEST_CASE("an fsync goes to the log only when all that changed is known", "[order]") {
  CHECK(choose(usual()) == way::pages);
  CHECK(with([](auto& f) { f.has_baseline = false; }) == way::native);
  CHECK(with([](auto& f) { f.is_foreign = true; }) == way::native);
  CHECK(with([](auto& f) { f.is_native = true; }) == way::native);
  CHECK(with([](auto& f) { f.has_new_metadata = true; }) == way::native);
  CHECK(with([](auto& f) { f.is_linked_once = false; }) == way::native);
  CHECK(with([](auto& f) { f.dirty_bytes = logged_bytes_max + 1; }) == way::native);
  CHECK(with([](auto& f) { f.is_whole = true; }) == way::native);
  CHECK(with([](auto& f) { f.is_whole = true, f.size = logged_bytes_max; }) == way::all);
  CHECK(with([](auto& f) { f.has_changed = false, f.is_live = true; }) == way::nothing);
  CHECK(with([](auto& f) { f.has_changed = false, f.is_live = false; }) == way::pass);
}

TEST_CASE("a ctime that stayed proves nothing about the tick that it is of", "[order]") {
  CHECK(ctime_proves(1000, 1001, false));
  CHECK_FALSE(ctime_proves(1000, 1000, false));
  CHECK_FALSE(ctime_proves(1000, 999, false));
  CHECK(ctime_proves(1000, 1000, true));  // the kernel dates what follows such a look finer
}

TEST_CASE("nobody is sent away while something of his file counts in the log", "[order]") {
  for (auto const forbid : {&file_seen::is_bypassed, &file_seen::is_ending}) {
    CHECK(with([&](auto& f) { f.*forbid = true; }) == way::pass);
    CHECK(with([&](auto& f) { f.*forbid = f.is_live = true; }) == way::native);
  }
  // Who is not identified was never logged.
  CHECK(with([](auto& f) { f.is_identified = false; }) == way::pass);
}

TEST_CASE("a new small file is logged whole, with its name", "[order]") {
  file_seen f = usual();
  f.has_baseline = false;
  f.is_created = true;
  f.size = logged_bytes_max;
  CHECK(choose(f) == way::first_all);
  f.size += 1;
  CHECK(choose(f) == way::native);
}

TEST_CASE("a lone overwrite is the program's own, unless the journal has some of it", "[order]") {
  file_seen f = usual();
  f.is_overwrite = f.is_alone = true;
  CHECK(choose(f) == way::alone);
  f.is_live = true;
  CHECK(choose(f) == way::pages);
  f.is_live = f.is_alone = false;
  CHECK(choose(f) == way::pages);
  f.is_alone = true;
  f.is_overwrite = false;
  CHECK(choose(f) == way::pages);
}

TEST_CASE("what nobody can tell who wrote is the program's own, once the log has nothing of it",
          "[order]") {
  file_seen f = usual();
  f.is_unseen = true;
  CHECK(choose(f) == way::own);
  f.is_live = true;
  CHECK(choose(f) == way::native);
  f.is_live = false;
  f.has_baseline = false;
  CHECK(choose(f) == way::native);
  f.has_baseline = f.has_new_metadata = true;
  CHECK(choose(f) == way::native);
}

TEST_CASE("new files are synced at home where their directory is synced after each", "[order]") {
  directory_habit d;
  CHECK_FALSE(d.is_synced_anyway());
  d.created();
  d.synced();
  CHECK(d.is_synced_anyway());
  d.synced();
  CHECK(d.is_synced_anyway());
  for (int i = 0; i < 100; ++i) d.created();
  CHECK_FALSE(d.is_synced_anyway());
  d.synced();
  CHECK_FALSE(d.is_synced_anyway());
}

TEST_CASE("a habit of many threads is one, too", "[order]") {
  directory_habit d;
  auto const threads_make_and_sync = [&](unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) d.created();
    for (unsigned i = 0; i < threads; ++i) d.synced();
  };
  for (int round = 0; round < 4; ++round) threads_make_and_sync(40);
  CHECK(d.is_sure());
  for (int i = 0; i < 200; ++i) d.created();  // no more
  CHECK_FALSE(d.is_synced_anyway());
}

TEST_CASE("a directory that is synced now and then has no such habit", "[order]") {
  directory_habit d;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 20; ++i) d.created();
    d.synced();
  }
  CHECK_FALSE(d.is_synced_anyway());
}

TEST_CASE("pages are joined, counted and cut", "[order]") {
  page_set p;
  p.add(10, 12);
  p.add(20, 22);
  p.add(12, 20);
  CHECK(p.all() == page_set::ranges{{10, 22}});
  p.add(0, 1);
  p.add(5, 5);
  p.add(30, 40);
  p.add(9, 11);
  CHECK(p.all() == page_set::ranges{{0, 1}, {9, 22}, {30, 40}});
  CHECK(p.pages() == 24);
  p.cut(31);
  p.cut(31);
  CHECK(p.all() == page_set::ranges{{0, 1}, {9, 22}, {30, 31}});
  p.cut(9);
  CHECK(p.all() == page_set::ranges{{0, 1}});
  p.cut(0);
  CHECK(p.empty());
}
