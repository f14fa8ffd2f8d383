// SPDX-License-Identifier: Apache-2.0
// Problem: a limit in operations or bytes is wrong for every mixture of requests; what a request
// costs depends on its kind, its size and the file system under it.
// Idea: the cost of a request, in thousandths of a virtual IOP (VOP), is a row of numbers measured
// once per file system. For reads and writes the row is a curve over sizes in powers of two, so a
// lookup is a count of leading zeros, two loads and a multiply.
// What stays true: fixed-width members only and no padding; cost_milli() is defined for any table
// and any size, garbage included; what validate() lets through never overflows.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/request.h"

namespace sluice::core {

/// Sizes of the points of a curve: 512 B, 1 KiB … 4 MiB.
inline constexpr unsigned cost_points = 14;
inline constexpr unsigned first_cost_shift = 9;
inline constexpr unsigned last_cost_shift = first_cost_shift + cost_points - 1;
constexpr std::uint64_t cost_point_bytes(unsigned point) {
  return std::uint64_t{1} << (first_cost_shift + point);
}

/// An offset or size that is no multiple of this makes a request unaligned.
inline constexpr std::uint64_t cost_alignment = 4096;

inline constexpr std::uint32_t milli_per_vop = 1000;
inline constexpr std::uint32_t max_cost_milli = 1'000'000'000;           // a million VOPs
inline constexpr std::uint64_t max_cost_bytes = std::uint64_t{1} << 54;  // more costs no more

/// Thousandths of a VOP. Between two points a curve is linear in bytes, below the first it is flat,
/// above the last it is proportional to the size.
struct cost_table {
  std::uint32_t read_milli[2][cost_points];  // [0] unaligned, [1] aligned
  std::uint32_t write_milli[2][cost_points];
  std::uint32_t op_milli[op_count];  // of ops that move no bytes; those that do have 0 here
  std::uint32_t create_milli;        // of an open that may create
  std::uint32_t by_device;           // 1: a read or write costs device_milli()
};
static_assert(std::is_standard_layout_v<cost_table> && std::is_trivially_copyable_v<cost_table>);
static_assert(sizeof(cost_table) == (4 * cost_points + op_count + 2) * 4);
static_assert(sizeof(cost_table) % 8 == 0, "an array of them leaves no gap in the ruleset");

/// The cost of `bytes` on a curve. Nothing moved costs nothing.
constexpr std::uint64_t curve_milli(std::uint32_t const (&curve)[cost_points],
                                    std::uint64_t bytes) {
  unsigned const shift = static_cast<unsigned>(std::bit_width(bytes)) - 1;  // 0 bytes: the largest
  unsigned const point = shift - first_cost_shift;
  if (point < cost_points - 1) [[likely]] {
    auto const low = static_cast<std::int64_t>(curve[point]);
    auto const rise = static_cast<std::int64_t>(curve[point + 1]) - low;
    auto const over = static_cast<std::int64_t>(bytes - (std::uint64_t{1} << shift));
    return static_cast<std::uint64_t>(low + ((rise * over) >> shift));
  }
  if (bytes <= cost_point_bytes(0)) return bytes == 0 ? 0 : curve[0];
  if (bytes > max_cost_bytes) bytes = max_cost_bytes;
  std::uint64_t const last = curve[cost_points - 1];
  std::uint64_t const rest = bytes & (cost_point_bytes(cost_points - 1) - 1);
  return (bytes >> last_cost_shift) * last + ((rest * last) >> last_cost_shift);
}

/// What a request costs, in thousandths of a VOP. `bytes` and `aligned` matter for reads and writes
/// only. An open that may create costs `create_milli` instead.
constexpr std::uint64_t cost_milli(cost_table const& t, op what, std::uint64_t bytes,
                                   bool aligned) {
  if (what == op::read) return curve_milli(t.read_milli[aligned ? 1 : 0], bytes);
  if (what == op::write) return curve_milli(t.write_milli[aligned ? 1 : 0], bytes);
  return t.op_milli[static_cast<unsigned>(what) % op_count];
}

/// What a device did for one read or write: nothing for what the cache had, a page for a byte of a
/// fresh one, and for a read also what was read ahead.
struct device_work {
  std::uint64_t read_bytes = 0, written_bytes = 0;
  bool is_none() const { return (read_bytes | written_bytes) == 0; }
};

/// No request pays for more than it moved and this: what a kernel reads ahead at most, with room.
inline constexpr std::uint64_t most_ahead_bytes = std::uint64_t{16} << 20;
/// A write reads the pages at its ends, where it fills them in part. What is read beside is for its
/// buffer, which may be a mapping of another file.
inline constexpr std::uint64_t most_read_for_write = 2 * cost_alignment;

/// What a read or write costs by that, in thousandths of a VOP. `moved` and `aligned` are of the
/// request: one that went past the cache, which moves just its own bytes, costs what calibration
/// saw of its kind. A read pays for no write: that is the kernel's note of the time.
constexpr std::uint64_t device_milli(cost_table const& t, op what, device_work const& did,
                                     std::uint64_t moved, bool aligned) {
  auto const part = [&](std::uint32_t const(&curves)[2][cost_points], std::uint64_t bytes) {
    bytes = bytes < moved + most_ahead_bytes ? bytes : moved + most_ahead_bytes;
    return curve_milli(curves[bytes != moved || aligned ? 1 : 0], bytes);
  };
  if (what != op::write) return part(t.read_milli, did.read_bytes);
  bool const is_more = did.read_bytes > most_read_for_write;
  return part(t.read_milli, is_more ? most_read_for_write : did.read_bytes) +
         part(t.write_milli, did.written_bytes);
}

/// Whether a request of `size` bytes at an offset is aligned; the low bits of the offset will do.
constexpr bool is_aligned(std::uint64_t offset, std::uint64_t size) {
  return ((offset | size) & (cost_alignment - 1)) == 0;
}

/// Null when it can be used; else what is wrong. Points of 0 are refused: that I/O would be free.
constexpr char const* validate(cost_table const& t) {
  for (unsigned aligned = 0; aligned < 2; ++aligned)
    for (unsigned i = 0; i < cost_points; ++i) {
      if (t.read_milli[aligned][i] == 0 || t.write_milli[aligned][i] == 0)
        return "a read or write that costs nothing";
      if (t.read_milli[aligned][i] > max_cost_milli || t.write_milli[aligned][i] > max_cost_milli)
        return "a read or write that costs more than a million VOPs";
    }
  constexpr std::uint64_t with_bytes = byte_ops_of(~std::uint64_t{0});
  for (unsigned i = 0; i < op_count; ++i) {
    if ((with_bytes >> i & 1) != 0 && t.op_milli[i] != 0) return "a fixed cost of an op with bytes";
    if (t.op_milli[i] > max_cost_milli) return "an operation that costs more than a million VOPs";
  }
  if (t.by_device > 1) return "neither by requests nor by the device";
  if (t.create_milli > max_cost_milli) return "a create that costs more than a million VOPs";
  return nullptr;
}

}  // namespace sluice::core
