// SPDX-License-Identifier: Apache-2.0
// Background work of a program that a class holds back, by its roles: what a policy says of it, in
// the numbers of those who do it. policies/tail_latency.h decides how much it may do.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/limit.h"
#include "policy/reading.h"

namespace sluice::policy {

struct role_spec;

/// What policies/background.def says of the algorithms.
struct background_row {
  std::string_view name;
  bool is_ready;
  std::string_view purpose;
};
inline constexpr background_row background_rows[] = {
#define BACKGROUND(symbol, name, is_ready, purpose) {name, is_ready, purpose},
#include "policies/background.def"
};

/// Kinds of background work, the most urgent first: the key that names a role, and the role where
/// none is named.
struct background_kind {
  char const* key;
  char const* usual_role;
};
inline constexpr background_kind background_kinds[] = {
    {"flush", "flush"}, {"low", "compaction-low"}, {"high", "compaction-high"}};
inline constexpr unsigned background_kind_count = 3;

/// What holds for the jobs of a class on a target; rates in milli-tokens per second.
struct background_terms {
  std::string supply;  // data@scratch
  std::string origin;
  unsigned algorithm = 0;  // row
  std::uint64_t total = 0, foreground = 0, floor = 0;
  std::array<std::string, background_kind_count> roles, channels;  // by kind; empty: there is none
  std::string foreground_channel;  // of all other roles, and of none
};

/// The keys of a share that are about this.
reading::names background_keys();

/// Of a share on a supply; `total`: what its jobs may have there, if that is known. None: it names
/// no algorithm. Throws a usage error with file, line and column.
std::optional<background_terms> read_background(reading const& in, node const& n,
                                                std::string const& supply,
                                                std::optional<rate> const& total,
                                                std::vector<role_spec> const& roles,
                                                std::string const& path);

/// A channel for each kind of work, unless `channels` has it, and one of the foreground, which is
/// counted there. They limit nothing until somebody steers them.
void add_background_channels(std::vector<background_terms> const& of,
                             std::vector<channel_spec>& channels);

/// `background work by tail-latency: …`.
std::string background_in_words(background_terms const& t);

}  // namespace sluice::policy
