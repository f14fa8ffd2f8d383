// SPDX-License-Identifier: Apache-2.0
// Journals in files: who makes one, where several would.
#include "journal/file_disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/error.h"
#include "journal/slots.h"
#include "lib/scratch.h"

using namespace sluice;
using namespace sluice::journal;

namespace {

constexpr std::uint64_t bytes = 1 << 20;

unsigned made_by(unsigned many, std::string const& path) {
  std::atomic<unsigned> made{0}, ready{0};
  std::vector<std::thread> all;
  for (unsigned i = 0; i < many; ++i)
    all.emplace_back([&] {
      for (++ready; ready.load() != many;) std::this_thread::yield();
      try {
        make_log_file(path, bytes, 1);
        ++made;
      } catch (sluice::error const&) {
      }
    });
  for (auto& t : all) t.join();
  return made;
}

}  // namespace

TEST_CASE("of several who make one journal one does, and nobody writes into it", "[order]") {
  test::scratch const own;
  std::string const path = own.dir + "/log";
  for (unsigned round = 0; round < 40; ++round) {
    INFO("round " << round);
    REQUIRE(made_by(4, path) == 1);
    file_disk disk(path, file_disk::use::write);
    CHECK(disk.bytes() == bytes);
    CHECK(read_slots(disk).what == slots_found::good);
    unlink(path.c_str());
  }
}

TEST_CASE("a journal that has lost its name knows it, whoever has that name", "[order]") {
  test::scratch const own;
  std::string const path = own.dir + "/log", elsewhere = own.dir + "/x";
  make_log_file(path, bytes, 1);
  file_disk const disk(path, file_disk::use::write);
  CHECK(disk.has_name());
  REQUIRE(rename(path.c_str(), elsewhere.c_str()) == 0);
  CHECK_FALSE(disk.has_name());
  make_log_file(path, bytes, 1);
  CHECK_FALSE(disk.has_name());
  REQUIRE(rename(elsewhere.c_str(), path.c_str()) == 0);
  CHECK(disk.has_name());
}
