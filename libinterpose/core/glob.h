// SPDX-License-Identifier: Apache-2.0
// Problem: rules name paths and programs by pattern, and a pattern must never make a guest hang.
// Idea: on a mismatch go back only to the last `*`: earlier ones need no second try.
// What stays true: at most |pattern| * |text| steps, no recursion, no heap, any bytes allowed.
#pragma once

#include <string_view>

namespace sluice::core {

// Longest pattern of those that are kept in shared memory (abi/after_area.h).
inline constexpr unsigned most_glob_bytes = 127;

// `*` any run of characters, `/` included; `?` one; `[a-z]` `[!a-z]` one of a set; `\x` means x
// (in a set a backslash is itself). A `[` that is never closed is itself. The whole text must
// match.
bool glob_match(std::string_view pattern, std::string_view text);

// A pattern of files: with a '/' it is held against the whole path, else against its last part.
bool path_match(std::string_view pattern, std::string_view path);

}  // namespace sluice::core
