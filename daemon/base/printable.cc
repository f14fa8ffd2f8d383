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

void replace_commands(char* text, std::size_t bytes, std::string_view kept) {
  unsigned char before = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
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
