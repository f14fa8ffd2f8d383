// SPDX-License-Identifier: Apache-2.0
// Memory that somebody else writes while we read: a mapped file of a user. It is `volatile`, so the
// compiler knows that a value read twice is two values, and refuses what would look at it in place:
// no reference to plain words of it, no text, no validator, no algorithm takes it. What is left:
//   * a word, read once (`load()` of an atomic, or a plain one into a variable of ours);
//   * copy_of(): a part that has no atomics, copied and then validated;
//   * as_shared(): for code that was written for words which change under it (core/, abi/) and
//     takes each of them once. scripts/check-layers has the list of who may call it.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

namespace sluice {

template <class T>
using foreign = T volatile;

/// What lies there now, as an object of our own. Nobody has looked at it yet.
template <class T>
std::unique_ptr<T> copy_of(T const volatile& from) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>);
  auto to = std::make_unique<T>();
  std::memcpy(static_cast<void*>(to.get()), const_cast<T const*>(&from), sizeof(T));
  return to;
}

/// Text up to its zero, or all of it where there is none.
template <std::size_t Bytes>
std::string text_of(char const volatile (&from)[Bytes]) {
  std::string out;
  for (std::size_t i = 0; i < Bytes; ++i) {
    char const c = from[i];
    if (c == 0) break;
    out += c;
  }
  return out;
}

template <class T>
T& as_shared(T volatile& words) {
  return const_cast<T&>(words);
}
template <class T>
T const& as_shared(T const volatile& words) {
  return const_cast<T const&>(words);
}

}  // namespace sluice
