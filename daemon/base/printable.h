// SPDX-License-Identifier: Apache-2.0
// Text of others for a terminal or a line of a log: names of files may hold commands to a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace sluice {

/// What is not printable ASCII becomes `?`.
std::string printable(std::string text);

/// What commands a terminal becomes `?`; other alphabets and ends of lines stay.
std::string without_commands(std::string text);

/// The same for a word on a line with others: ends of lines and tabs become `?` too.
std::string one_line(std::string text);
/// one_line() in place.
void make_one_line(char* text, std::size_t bytes);

}  // namespace sluice
