// SPDX-License-Identifier: Apache-2.0
#include "journal/boot.h"

#include <algorithm>
#include <string>

#include "base/boot_id.h"

namespace sluice::journal {

std::array<std::uint8_t, 16> boot_id() {
  std::array<std::uint8_t, 16> id = {};
  std::string text = sluice::boot_id();
  std::erase(text, '-');
  if (text.size() != 2 * id.size()) return id;
  for (std::size_t i = 0; i < id.size(); ++i)
    id[i] = static_cast<std::uint8_t>(std::strtoul(text.substr(2 * i, 2).c_str(), nullptr, 16));
  return id;
}

bool is_this_boot(std::span<std::uint8_t const, 16> id) {
  bool const is_known = std::any_of(id.begin(), id.end(), [](auto b) { return b != 0; });
  auto const now = boot_id();
  return is_known && std::equal(id.begin(), id.end(), now.begin());
}

}  // namespace sluice::journal
