// SPDX-License-Identifier: Apache-2.0
// A log in a file that becomes larger while it is used.
#include <sys/stat.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>
#include <vector>

#include "journal/file_disk.h"
#include "journal/grow.h"
#include "journal/scan.h"
#include "journal/slots.h"
#include "lib/scratch.h"
#include "roomy_writer.h"

using namespace sluice::journal;

namespace {

constexpr std::uint64_t first_bytes = 1 << 20, ring = first_bytes - area_begin;

struct small_log {
  sluice::test::scratch holder;
  std::string path = holder.dir + "/log";
  small_log() { make_log_file(path, first_bytes, 1); }
  std::uint64_t bytes() const {
    struct stat st = {};
    REQUIRE(stat(path.c_str(), &st) == 0);
    return static_cast<std::uint64_t>(st.st_size);
  }
};

surroundings calm() {
  return {[] { return std::uint64_t{1}; }, [] { return std::uint64_t{1}; }};
}

/// Appends and commits; the LSN behind.
std::uint64_t put(sluice::test::roomy_writer& w, std::size_t bytes) {
  std::vector<std::byte> const what(bytes, std::byte{7});
  record r;
  r.what = kind::data;
  r.file.handle = "inode";
  r.bytes = what;
  std::uint64_t lsn = 0;
  REQUIRE(w.append(r, lsn) == 0);
  REQUIRE(w.commit(lsn) == 0);
  return lsn;
}

bool is_whole(file_disk& d, writer const& w) {
  superblock const s = read_slots(d).in_force;
  return scan(d, s, [](auto const&, auto) { return true; }).end == w.tail();
}

bool goes_on(std::uint64_t) { return true; }

}  // namespace

TEST_CASE("a ring grows where all that is in use keeps its place, and only there", "[order]") {
  small_log l;
  file_disk d(l.path, file_disk::use::write);
  sluice::test::roomy_writer w(d, read_slots(d).in_force, calm(), [] { return 0; });
  REQUIRE(d.extend(first_bytes, area_begin + 4 * ring, goes_on) == 0);
  CHECK(l.bytes() == area_begin + 4 * ring);
  // The second lap lies elsewhere in the larger ring, and so do a first and a second.
  while (w.tail() < ring + ring / 2) put(w, 50'000);
  CHECK(w.grow(4 * ring) == EAGAIN);
  CHECK(w.room() == ring);
  while (w.tail() < 3 * ring) put(w, 50'000);
  CHECK(w.grow(4 * ring) == EAGAIN);
  // The fifth is again where the first was.
  while (w.tail() < 4 * ring + ring / 4) put(w, 50'000);
  CHECK(w.grow(4 * ring) == EAGAIN);
  REQUIRE(w.checkpoint() == 0);
  put(w, 50'000);
  CHECK(w.grow(4 * ring) == 0);
  CHECK(w.room() == 4 * ring);
  CHECK(is_whole(d, w));
  while (w.in_use() < 3 * ring) put(w, 50'000);
  CHECK(is_whole(d, w));
  while (w.tail() < 10 * ring) put(w, 50'000);
  CHECK(is_whole(d, w));
}

TEST_CASE("a ring grows beside those who write", "[order]") {
  small_log l;
  file_disk d(l.path, file_disk::use::write);
  sluice::test::roomy_writer w(d, read_slots(d).in_force, calm(), [] { return 0; });
  {
    log_growth g(d, w, [] { return true; });
    g.want();  // nobody said how far
    g.up_to(area_begin + 4 * ring + 5000);
    std::atomic<bool> is_over = false;
    std::vector<std::thread> crew;
    for (int t = 0; t < 3; ++t)
      crew.emplace_back([&] {
        std::vector<std::byte> const what(3000, std::byte{1});
        record r;
        r.what = kind::data;
        r.file.handle = "inode";
        r.bytes = what;
        std::uint64_t lsn = 0;
        while (!is_over && w.append(r, lsn) == 0) w.commit(lsn);
      });
    g.want();
    g.want();
    for (int i = 0; i < 60'000 && w.room() == ring; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    is_over = true;
    for (auto& t : crew) t.join();
  }
  CHECK(w.room() == 4 * ring);
  CHECK(w.failed() == 0);
  CHECK(is_whole(d, w));
}

TEST_CASE("a log that cannot be prepared in full stays as it is", "[order]") {
  small_log l;
  file_disk d(l.path, file_disk::use::write);
  CHECK(d.extend(first_bytes, std::uint64_t{1} << 60, goes_on) == ENOSPC);
  CHECK(l.bytes() == first_bytes);
  CHECK(d.bytes() == first_bytes);
  CHECK(read_slots(d).what == slots_found::good);
}

TEST_CASE("what was prepared of a larger log is not prepared again", "[order]") {
  small_log l;
  constexpr std::uint64_t end = 32 << 20;
  unsigned pieces = 0;
  {
    file_disk d(l.path, file_disk::use::write);
    CHECK(d.extend(first_bytes, end, [&](auto) { return ++pieces < 10; }) == ECANCELED);
    CHECK(read_slots(d).what == slots_found::good);
  }
  CHECK(l.bytes() > first_bytes);
  CHECK(l.bytes() < end);
  file_disk d(l.path, file_disk::use::write);
  unsigned more = 0;
  CHECK(d.extend(first_bytes, end, [&](auto) { return ++more != 0; }) == 0);
  CHECK(more < 10);
  CHECK(l.bytes() == end);
  CHECK(d.bytes() == end);
}
