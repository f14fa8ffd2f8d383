// SPDX-License-Identifier: Apache-2.0
// A call as the rules see it: an op on a target, with a size. The op list lives in ops.def, nowhere
// else.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::core {

/// Classes of calls; a resource is a set of classes (see class_mask).
enum class call_class : std::uint8_t {
  metadata,
  directory,
  xattr,
  data,
  mapping,
  sync,
  lock,
  local,
  count
};

enum class op : std::uint8_t {
#define OP(name, cls, unit, sentence) name,
#include "ops.def"
  count
};

inline constexpr unsigned op_count = static_cast<unsigned>(op::count);
static_assert(op_count <= 64, "a rule holds its ops as one 64-bit mask");

struct op_row {
  std::string_view name;
  call_class cls;
  bool has_bytes;
  std::string_view sentence;
};

namespace detail {
enum class op_unit : std::uint8_t { ops, bytes };
}

/// The table of ops, indexed by op.
inline constexpr op_row op_table[op_count] = {
#define OP(name, cls, unit, sentence) \
  {#name, call_class::cls, detail::op_unit::unit == detail::op_unit::bytes, sentence},
#include "ops.def"
};

inline constexpr std::string_view class_names[] = {"metadata", "directory", "xattr", "data",
                                                   "mapping",  "sync",      "lock",  "local"};
static_assert(sizeof class_names / sizeof *class_names == static_cast<unsigned>(call_class::count));

constexpr std::uint64_t op_bit(op o) { return std::uint64_t{1} << static_cast<unsigned>(o); }

/// All ops of one class, as a mask.
constexpr std::uint64_t class_mask(call_class cls) {
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < op_count; ++i)
    if (op_table[i].cls == cls) mask |= std::uint64_t{1} << i;
  return mask;
}

/// The ops a selector names: an op, a class, a resource (`metadata` = metadata + directory + xattr,
/// `data` = read + write, `vops` = `all`) or `all` (everything but class local). 0 when nothing has
/// that name.
constexpr std::uint64_t ops_of_selector(std::string_view name) {
  if (name == "all" || name == "vops") {
    std::uint64_t mask = 0;
    for (unsigned i = 0; i < op_count; ++i)
      if (op_table[i].cls != call_class::local) mask |= std::uint64_t{1} << i;
    return mask;
  }
  if (name == "metadata")
    return class_mask(call_class::metadata) | class_mask(call_class::directory) |
           class_mask(call_class::xattr);
  for (unsigned i = 0; i < op_count; ++i)
    if (op_table[i].name == name) return std::uint64_t{1} << i;
  for (unsigned i = 0; i < static_cast<unsigned>(call_class::count); ++i)
    if (class_names[i] == name) return class_mask(static_cast<call_class>(i));
  return 0;
}

/// The ops of a mask that move bytes; a limit in bytes needs a mask that has no other.
constexpr std::uint64_t byte_ops_of(std::uint64_t mask) {
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < op_count; ++i)
    if (op_table[i].has_bytes) bytes |= std::uint64_t{1} << i;
  return mask & bytes;
}

}  // namespace sluice::core
