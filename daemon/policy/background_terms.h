// SPDX-License-Identifier: Apache-2.0
// What a policy says of background work, in the numbers of those who hold it back: for the jobs of
// a class, by target.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "policy/background.h"
#include "policy/limit.h"

namespace sluice::policy {

struct site;
struct share;

/// What holds for the jobs of a class; rates in milli-tokens per second.
struct background_terms {
  std::string supply;  // data@scratch
  unsigned algorithm = 0;
  std::uint64_t total = 0, foreground = 0, floor = 0;
  std::array<std::string, background_kind_count> channels;  // by kind; empty: there is none
  std::string foreground_channel;                           // of all other roles, and of none
  bool operator==(background_terms const&) const = default;
};

/// Of one share. Throws a usage error where the total is not known, or is less than its parts.
background_terms background_of(site const& s, std::string const& target,
                               std::string const& resource, share const& of);
/// Of a class, by target.
std::vector<background_terms> backgrounds_of(site const& s, std::string const& qos_class);

/// A channel for each kind of work, unless `channels` has it, and one of the foreground, which is
/// counted there. They limit nothing until somebody steers them.
void add_background_channels(site const& s, std::string const& qos_class,
                             std::vector<channel_spec>& channels);

/// `background work by tail-latency: …`.
std::string background_in_words(background_terms const& t);

}  // namespace sluice::policy
