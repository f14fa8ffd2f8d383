// SPDX-License-Identifier: Apache-2.0
#include "journal/late_looks.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "order_served.h"

using namespace sluice::journal;

TEST_CASE("a look costs a call for each range and a moment for each page besides", "[order]") {
  CHECK(look_ns({}, 0) == 0);
  CHECK(look_ns({{0, 1000}}, 1000) < look_ns({{0, 1}}, 1000));
  CHECK(look_ns({{0, 1}, {2, 3}}, 4) > look_ns({{0, 2}}, 4));
  CHECK(look_ns({{0, 10}}, 5) == look_ns({{0, 5}}, 5));  // it was cut since
}

TEST_CASE("sets of pages become one list of ranges", "[order]") {
  page_set a, b, c;
  a.add(10, 20);
  a.add(0, 1);
  b.add(15, 30);
  b.add(1, 2);
  CHECK(all_of({&a, &b, &c}) == page_ranges{{0, 2}, {10, 30}});
  CHECK(all_of({&c}).empty());
}

TEST_CASE("a late look finds pages that are dirty and not known", "[order]") {
  sluice::test::scratch at;
  if (geteuid() != 0 || !sluice::test::mount_ext4(at.dir + "/image", "32M", at.dir + "/fs")) {
    WARN("needs root and loop devices");
    return;
  }
  auto const file = std::make_shared<held_file>();
  file->fd = sluice::descriptor(open((at.dir + "/fs/file").c_str(), O_RDWR | O_CREAT, 0600));
  std::string const page(page_bytes, 'x');
  auto const dirty = [&](int number) {
    off_t const where = static_cast<off_t>(page_bytes) * number;
    REQUIRE(pwrite(file->fd.get(), page.data(), page.size(), where) == 4096);
  };
  for (int i = 0; i < 64; ++i) dirty(i);
  REQUIRE(fsync(file->fd.get()) == 0);
  if (dirty_pages(file->fd.get(), {}) != 0) {
    WARN("this kernel does not count dirty pages");
    return;
  }
  late_looks looks;
  auto const has_found = [&](page_ranges const& known) {
    return looks.has_found(*looks.begin(file, known, 64));
  };
  CHECK_FALSE(has_found({}));
  dirty(0);
  dirty(40);
  CHECK(has_found({}));
  CHECK(has_found({{0, 32}}));
  CHECK(has_found({{32, 64}}));
  CHECK_FALSE(has_found({{0, 64}}));
  CHECK_FALSE(has_found({{0, 32}, {33, 80}}));
  CHECK(file.use_count() == 1);  // nothing keeps it open
  file->fd = {};
  system(("umount " + at.dir + "/fs").c_str()) == 0 || std::printf("still mounted\n");
}
