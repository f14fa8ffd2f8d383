// SPDX-License-Identifier: Apache-2.0
// The supplies that a message names, and where: not all that a daemon has numbers for. Those of
// earlier policies come after those in force, and only while something is counted on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/most_supplies.h"

namespace sluice::wire {

class supply_list {
 public:
  static constexpr std::uint32_t left_out = ~std::uint32_t{0};

  /// Empty, for a daemon with so many numbers.
  void begin(std::size_t numbers) {
    numbers_.clear();
    place_.assign(numbers, left_out);
  }
  /// At the end, once, and only while there is room.
  void add(std::uint32_t number) {
    if (place_[number] != left_out || numbers_.size() >= most_supplies) return;
    place_[number] = static_cast<std::uint32_t>(numbers_.size());
    numbers_.push_back(number);
  }

  std::vector<std::uint32_t> const& numbers() const { return numbers_; }  // by place
  std::uint32_t place(std::uint32_t number) const { return place_[number]; }

  /// What lies by number, by place. Numbers that it is too short for say nothing.
  template <class T>
  std::vector<T> pick(std::vector<T> const& by_number) const {
    std::vector<T> out;
    out.reserve(numbers_.size());
    for (std::uint32_t n : numbers_) out.push_back(n < by_number.size() ? by_number[n] : T{});
    return out;
  }

 private:
  std::vector<std::uint32_t> numbers_, place_;
};

}  // namespace sluice::wire
