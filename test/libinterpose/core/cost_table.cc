// SPDX-License-Identifier: Apache-2.0
// The price of a request: what stands in the table at its points, between them and beyond, against
// the same in long arithmetic.
#include "core/cost_table.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "lib/seeds.h"

using namespace sluice::core;

namespace {

cost_table flat(std::uint32_t milli) {
  cost_table t = {};
  for (unsigned aligned = 0; aligned < 2; ++aligned)
    for (unsigned i = 0; i < cost_points; ++i)
      t.read_milli[aligned][i] = t.write_milli[aligned][i] = milli;
  return t;
}

/// The same by its definition.
double cost_by_definition(std::uint32_t const (&curve)[cost_points], double bytes) {
  if (bytes <= 512) return bytes == 0 ? 0 : curve[0];
  double const last_bytes = 4.0 * 1024 * 1024;
  if (bytes >= last_bytes) return curve[cost_points - 1] * bytes / last_bytes;
  unsigned point = 0;
  while (static_cast<double>(cost_point_bytes(point + 1)) <= bytes) ++point;
  double const from = static_cast<double>(cost_point_bytes(point));
  return curve[point] +
         (static_cast<double>(curve[point + 1]) - curve[point]) * (bytes - from) / from;
}

}  // namespace

TEST_CASE("a point of the curve costs what stands there", "[cost]") {
  cost_table t = flat(1000);
  for (unsigned i = 0; i < cost_points; ++i) t.read_milli[1][i] = 100 + i;
  for (unsigned i = 0; i < cost_points; ++i)
    CHECK(cost_milli(t, op::read, cost_point_bytes(i), true) == 100 + i);
  CHECK(cost_milli(t, op::read, 4096, false) == 1000);
  CHECK(cost_milli(t, op::write, 4096, true) == 1000);
}

TEST_CASE("nothing moved costs nothing, little costs the first point", "[cost]") {
  cost_table const t = flat(1500);
  CHECK(cost_milli(t, op::read, 0, true) == 0);
  CHECK(cost_milli(t, op::write, 1, false) == 1500);
  CHECK(cost_milli(t, op::write, 511, false) == 1500);
}

TEST_CASE("what the device did costs what it did, by the curves of pages", "[cost]") {
  cost_table t = flat(1000);
  for (unsigned i = 0; i < cost_points; ++i) {
    t.read_milli[0][i] = 3000, t.write_milli[0][i] = 6000, t.write_milli[1][i] = 2000;
  }
  CHECK(device_milli(t, op::read, {0, 0}, 4096, true) == 0);          // the cache had it
  CHECK(device_milli(t, op::read, {131072, 0}, 4096, true) == 1000);  // and read ahead
  CHECK(device_milli(t, op::read, {4096, 0}, 100, false) == 1000);    // a page for a part of it
  CHECK(device_milli(t, op::read, {4096, 0}, 4096, false) == 3000);   // past the cache
  CHECK(device_milli(t, op::read, {4096, 4096}, 4096, true) == 1000);
  CHECK(device_milli(t, op::write, {0, 0}, 8, false) == 0);  // the page was dirty
  CHECK(device_milli(t, op::write, {4096, 4096}, 100, false) == 3000);
  CHECK(device_milli(t, op::write, {0, 4608}, 4608, false) == 6000);  // past the cache
  t.read_milli[1][7] = 50'000;  // 64 KiB, which the mapping of its buffer needed
  CHECK(device_milli(t, op::write, {65536, 4096}, 4096, true) == 3000);
  t.by_device = 2;
  CHECK(std::string_view(validate(t)) == "neither by requests nor by the device");
}

TEST_CASE("between two points the cost is linear, also where it falls", "[cost]") {
  cost_table t = flat(1000);
  t.write_milli[1][3] = 2000;  // 4 KiB
  t.write_milli[1][4] = 4000;  // 8 KiB
  t.write_milli[1][5] = 1000;  // 16 KiB
  CHECK(cost_milli(t, op::write, 6144, true) == 3000);
  CHECK(cost_milli(t, op::write, 12288, true) == 2500);
}

TEST_CASE("above the last point the cost grows with the size", "[cost]") {
  cost_table const t = flat(8000);
  CHECK(cost_milli(t, op::read, 4u << 20, true) == 8000);
  CHECK(cost_milli(t, op::read, 6u << 20, true) == 12000);
  CHECK(cost_milli(t, op::read, 1ull << 30, true) == 256 * 8000);
}

TEST_CASE("what moves no bytes costs by its row", "[cost]") {
  cost_table t = flat(1000);
  t.op_milli[static_cast<unsigned>(op::stat)] = 380;
  t.op_milli[static_cast<unsigned>(op::fsync)] = 35000;
  CHECK(cost_milli(t, op::stat, 0, true) == 380);
  CHECK(cost_milli(t, op::fsync, 4096, false) == 35000);
  CHECK(cost_milli(t, op::seek, 0, true) == 0);
}

TEST_CASE("a request is aligned when offset and size are", "[cost]") {
  CHECK(is_aligned(0, 4096));
  CHECK(is_aligned(8192, 65536));
  CHECK_FALSE(is_aligned(512, 4096));
  CHECK_FALSE(is_aligned(4096, 4097));
}

TEST_CASE("any table and any size agree with the definition", "[cost]") {
  sluice::test::for_seeds(2000, [](std::mt19937_64& random) {
    cost_table t = flat(1);
    for (auto& point : t.read_milli[0])
      point = static_cast<std::uint32_t>(1 + random() % max_cost_milli);
    std::uint64_t const bytes = random() >> (10 + random() % 54);
    double const wanted = cost_by_definition(t.read_milli[0], static_cast<double>(bytes));
    double const got = static_cast<double>(cost_milli(t, op::read, bytes, false));
    INFO(bytes << " bytes");
    CHECK(std::abs(got - wanted) <= 1 + wanted * 1e-12);
  });
}

TEST_CASE("a table of zeros or absurd costs is refused", "[cost]") {
  cost_table t = flat(1000);
  CHECK(validate(t) == nullptr);
  CHECK(validate(cost_table{}) != nullptr);
  t.write_milli[0][13] = 0;
  CHECK(validate(t) != nullptr);
  t = flat(max_cost_milli);
  CHECK(validate(t) == nullptr);
  t.read_milli[0][0] = max_cost_milli + 1;
  CHECK(validate(t) != nullptr);
  t = flat(1000);
  t.op_milli[static_cast<unsigned>(op::read)] = 1;
  CHECK(validate(t) != nullptr);
  t = flat(1000);
  t.create_milli = max_cost_milli + 1;
  CHECK(validate(t) != nullptr);
}
