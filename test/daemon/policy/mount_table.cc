// SPDX-License-Identifier: Apache-2.0
// What a target needs of the mount table: whole devices, bind mounts, what lies below.
#include "policy/mount_table.h"

#include <catch2/catch.hpp>

#include "lib/mount_lines.h"

using namespace sluice::policy;
using sluice::parse_mounts;
using sluice::test::table;

namespace {

constexpr std::uint64_t device(std::uint64_t major, std::uint64_t minor) {
  return major << 32 | minor;
}

}  // namespace

TEST_CASE("mount table: the mount a path lies in") {
  auto const mounts = parse_mounts(table);
  CHECK(mount_of(mounts, {"/scratch/x", 0, 0, 0})->id == 40);
  CHECK(mount_of(mounts, {"/etc", 0, 0, 0})->id == 27);
  CHECK(mount_of(mounts, {"/etc", 0, 0, 40})->id == 40);
  CHECK(mount_of(mounts, {"/etc", 0, 0, 999}) == nullptr);
}

TEST_CASE("mount table: a whole device only at the root of its file system") {
  auto const mounts = parse_mounts(table);
  CHECK(is_whole_device(mounts, {"/scratch", device(0, 50), 2, 40}));
  CHECK_FALSE(is_whole_device(mounts, {"/scratch/project", device(0, 50), 2, 40}));
  CHECK_FALSE(is_whole_device(mounts, {"/home/a/work", device(0, 50), 2, 41}));
  CHECK_FALSE(is_whole_device(mounts, {"/scratch", device(0, 51), 2, 40}));
}

TEST_CASE("mount table: bind mounts inside a tree") {
  auto const mounts = parse_mounts(table);
  using ids = std::vector<std::uint64_t>;
  CHECK(inside_mounts(mounts, {"/scratch/project", device(0, 50), 2, 40}) == ids{41, 42});
  CHECK(inside_mounts(mounts, {"/scratch/project/a", device(0, 50), 2, 40}) == ids{41});
  CHECK(inside_mounts(mounts, {"/home/a/work", device(0, 50), 2, 41}) == ids{41});
  CHECK(inside_mounts(mounts, {"/home/a/work/deep", device(0, 50), 2, 41}).empty());
}

TEST_CASE("mount table: kernel file systems are quiet, others not") {
  auto const quiet = quiet_devices(parse_mounts(table));
  auto const has = [&](std::uint64_t d) { return std::count(quiet.begin(), quiet.end(), d) != 0; };
  CHECK(has(device(0, 21)));
  CHECK(has(device(0, 22)));
  CHECK_FALSE(has(device(254, 0)));
  CHECK_FALSE(has(device(0, 23)));
}

TEST_CASE("mount table: what is mounted below a tree") {
  auto const mounts = parse_mounts(
      "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "40 27 0:50 / /scratch rw - lustre fs rw\n"
      "41 40 0:51 / /scratch/a rw - nfs fs rw\n"
      "42 41 0:52 / /scratch/a/b rw - nfs fs rw\n"
      "43 40 0:53 / /scratch/a rw - tmpfs fs rw\n"
      "44 40 0:54 / /scratch/twice rw - nfs fs rw\n"
      "45 27 0:54 / /home rw - nfs fs rw\n"
      "46 40 0:21 / /scratch/proc rw - proc proc rw\n"
      "47 27 0:55 / /scratchy rw - nfs fs rw\n");
  auto const below = mounts_below(mounts, {"/scratch", device(0, 50), 2, 40});
  std::vector<std::string> points;
  for (auto const& m : below) points.push_back(m.point);
  CHECK(points == std::vector<std::string>{"/scratch/a", "/scratch/twice"});
  CHECK(below[0].type == "tmpfs");  // it covers what was mounted there before
  CHECK(devices_only_in(below, mounts) == std::vector<std::uint64_t>{device(0, 53)});
  CHECK(mounts_below(mounts, {"/scratch/a/b/c", device(0, 52), 2, 42}).empty());
  CHECK(top_mount(mounts) == 27);
}
