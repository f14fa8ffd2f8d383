// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <algorithm>
#include <string_view>

namespace sluice {

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 32 || c > 126; }, '?');
  return text;
}

namespace {

/// U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069, which turn the order of what is
/// read: so many bytes of one begin there.
std::size_t turn_at(std::string_view rest) {
  auto const byte = [&](std::size_t i) {
    return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0u;
  };
  if (byte(0) == 0xd8 && byte(1) == 0x9c) return 2;
  if (byte(0) != 0xe2) return 0;
  unsigned const last = byte(2);
  bool const is_mark = last == 0x8e || last == 0x8f || (last >= 0xaa && last <= 0xae);
  bool const is_isolate = last >= 0xa6 && last <= 0xa9;
  return (byte(1) == 0x80 && is_mark) || (byte(1) == 0x81 && is_isolate) ? 3 : 0;
}

void replace_commands(char* text, std::size_t bytes, std::string_view kept) {
  unsigned char before = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    for (std::size_t n = turn_at({text + i, bytes - i}); n > 0; --n) text[i + n - 1] = '?';
    auto const byte = static_cast<unsigned char>(text[i]);
    bool const is_second = before == 0xc2 && byte >= 0x80 && byte < 0xa0;  // U+0080 to U+009F
    bool const is_control = byte < 0x20 && kept.find(text[i]) == kept.npos;
    if (is_second || is_control || byte == 0x7f) text[i] = '?';
    before = byte;
  }
}

}  // namespace

std::string without_commands(std::string text) {
  replace_commands(text.data(), text.size(), "\n\t");
  return text;
}

std::string one_line(std::string text) {
  make_one_line(text.data(), text.size());
  return text;
}

void make_one_line(char* text, std::size_t bytes) { replace_commands(text, bytes, {}); }

}  // namespace sluice
