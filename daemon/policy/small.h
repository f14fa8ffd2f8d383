// SPDX-License-Identifier: Apache-2.0
// The values of `small`, in a policy and on the command line: what is done for small reads and
// writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/compile.h"
#include "policy/target.h"

namespace sluice::policy {

struct small_word {
  std::string_view word;
  bool target_spec::*sets;
  bool users_may;          // say it with --small
  std::string_view means;  // after "on TARGET"
  std::uint32_t small_targets::*targets;
};
inline constexpr small_word small_words[] = {
    {"hints", &target_spec::hints, true,
     "the kernel is told what small unaligned writes and strided reads need",
     &small_targets::hinted_targets},
    {"reads", &target_spec::buffers, true,
     "small reads are answered from memory while nobody has the file open for writing",
     &small_targets::buffered_targets},
    {"strict", &target_spec::is_strict, true,
     "small writes wait for a few milliseconds; whoever opens the file finds them",
     &small_targets::strict_targets},
    {"close-to-open", &target_spec::gathers, false,
     "small writes are gathered: others see them at close, fsync and lock; a killed program "
     "loses what waits",
     &small_targets::gathered_targets}};

/// Words of what target `t` has.
std::vector<std::string_view> modes_of(small_targets const& small, unsigned t);

/// Sets what a word of these means in the target. Throws a usage error that begins with `where` for
/// anything else.
void parse_small(std::string_view word, std::string const& where, target_spec& target);

/// One --small: `hints@DIR`, or `hints` for all files, in which case the path is empty.
target_spec parse_small_target(std::string_view text);
/// Adds what it says.
void add_small(std::string_view text, compile_input& input);

}  // namespace sluice::policy
