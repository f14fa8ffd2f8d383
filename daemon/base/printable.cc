// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <algorithm>

namespace sluice {

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 32 || c > 126; }, '?');
  return text;
}

std::string without_commands(std::string text) {
  unsigned char before = 0;
  for (char& c : text) {
    auto const byte = static_cast<unsigned char>(c);
    bool const is_second = before == 0xc2 && byte >= 0x80 && byte < 0xa0;  // U+0080 to U+009F
    if (is_second || byte == 0x7f || (byte < 0x20 && c != '\n' && c != '\t')) c = '?';
    before = byte;
  }
  return text;
}

}  // namespace sluice
