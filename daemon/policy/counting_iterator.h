// SPDX-License-Identifier: Apache-2.0
// Says how far a parser that takes iterators has read: the value of a callback ends there.
#pragma once

#include <cstddef>
#include <iterator>

namespace sluice::policy {

class counting_iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = char const*;
  using reference = char const&;

  counting_iterator() = default;
  counting_iterator(char const* at, char const** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  counting_iterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  counting_iterator operator++(int) {
    counting_iterator const before = *this;
    ++*this;
    return before;
  }
  bool operator==(counting_iterator const& other) const { return at_ == other.at_; }

 private:
  char const* at_ = nullptr;
  char const** furthest_ = nullptr;
};

}  // namespace sluice::policy
