// SPDX-License-Identifier: Apache-2.0
// A compiled policy: everything that the stage needs to find the channels of a request, in flat
// form without pointers, so that it can lie in shared memory and be mapped anywhere. Idea: for
// every op and target the rules that may match are one 64-bit mask (rules_for), so an unlimited
// request costs one load, and a limited one costs a bit scan. Rules stand in the order in which
// their buckets are to be passed, narrowest first.
// Must stay true: fixed-width members only, no padding that is not named, written once by the
// creator before `state` of the segment says ready; readers validate() once and trust it
// afterwards.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/cost_table.h"
#include "core/request.h"
#include "core/unit_kind.h"

namespace sluice::core {

inline constexpr unsigned max_targets =
    16;                                    // target 0 is `elsewhere`: every file in no named target
inline constexpr unsigned max_rules = 64;  // bits of rules_for
inline constexpr unsigned max_channels = 64;
inline constexpr unsigned max_cost_tables = 16;
inline constexpr unsigned max_gates = 8;  // channels one request may have to pass
inline constexpr unsigned max_quiet_devices = 32;
inline constexpr unsigned max_inside_mounts = 8;
inline constexpr unsigned max_devices_below = 32;
inline constexpr unsigned string_pool_bytes = 32768;
inline constexpr std::uint8_t any_target = 0xff;
inline constexpr std::uint32_t any_user = 0xffffffffu;

/// A string in the pool: offset from its start, length without the terminating zero.
struct text {
  std::uint32_t offset;
  std::uint32_t length;
};

/// A named file tree, as found in the creator's mount table.
struct target_row {
  text path;                                       // canonical absolute path of the root
  text name;                                       // as the policy calls it
  std::uint64_t device;                            // st_dev of the root, as statx major<<32 | minor
  std::uint64_t inode;                             // of the root
  std::uint64_t mount_id;                          // stx_mnt_id of the root, 0 unknown
  std::uint64_t inside_mounts[max_inside_mounts];  // mounts that show only files below the root
  std::uint8_t parent;                             // the target this one lies in; 0 = elsewhere
  std::uint8_t whole_device;  // 1: every file of the device is in the target (or in a nested one)
  std::uint8_t inside_count;
  std::uint8_t one_file_system;  // 1: what is mounted below the root is not in the target
  std::uint8_t unused[4];
};

/// A file system of which all mounts that the creator sees lie below a target's root.
struct device_below {
  std::uint64_t device;
  std::uint32_t target;
  std::uint32_t unused;
};

/// match -> channel. A rule without conditions matches every request of its ops on its target.
struct rule_row {
  std::uint64_t ops;  // mask of op
  text path_glob;    // length 0: any. With a '/' against the whole path, else against the last part
  text thread_glob;  // length 0: any
  text role;         // as written; length 0: any. role_table::rules_of says which roles these are
  std::uint32_t user;   // any_user or a uid
  std::uint8_t target;  // any_target, or the target (with the targets nested in it)
  std::uint8_t channel;
  std::uint8_t conditional;  // 1 when path_glob, thread_glob, role or user is set
  std::uint8_t unused;
};

struct channel_row {
  text name;                // as printed: `open`, `data@/scratch`
  text origin;              // where it comes from: `--limit open=1000/s`, `site.json:12`
  std::uint8_t unit;        // unit_kind
  std::uint8_t level;       // order of passing: 0 narrowest; rules are sorted by it
  std::uint8_t count_only;  // 1: never delays (monitor)
  std::uint8_t cost;        // of a channel that counts VOPs: its table + 1; else 0
  std::uint8_t unused[4];
};

struct ruleset {
  std::uint32_t target_count;  // at least 1: `elsewhere`
  std::uint32_t rule_count;
  std::uint32_t channel_count;
  std::uint32_t quiet_count;
  std::uint32_t string_bytes;
  std::uint32_t counts_elsewhere;  // 1: calls on target 0 are counted (a rule reaches it, or nobody
                                   // names any)
  std::uint32_t below_count;
  std::uint32_t cost_count;
  std::uint64_t top_mount;  // the creator's mount of `/`: it lies below nothing. 0 unknown
  device_below below[max_devices_below];
  target_row target[max_targets];
  rule_row rule[max_rules];
  channel_row channel[max_channels];
  std::uint64_t
      quiet_device[max_quiet_devices];  // proc, sysfs, cgroup, devtmpfs …: never controlled
  std::uint64_t rules_for[op_count][max_targets];
  char strings[string_pool_bytes];
  cost_table cost[max_cost_tables];
};

/// What about a request can only be known when it happens.
struct context {
  std::uint64_t path_rules;  // rules whose path_glob matches this file (or that have none)
  std::uint64_t
      caller_rules;  // rules whose thread_glob and user match the calling thread (or have none)
};

inline std::string_view view(ruleset const& rules, text t) {
  return {rules.strings + t.offset, t.length};
}

/// The table of a channel that counts VOPs.
inline cost_table const& costs_of(ruleset const& rules, unsigned channel) {
  return rules.cost[(rules.channel[channel].cost - 1u) % max_cost_tables];
}

/// True when `target` is `ancestor` or nested in it. Bounded even for a cyclic table.
bool is_within(ruleset const& rules, unsigned target, unsigned ancestor);

/// The target that has what is mounted below the root of `target`: itself, or the nearest around it
/// that is more than one file system; 0 when there is none.
unsigned with_mounts_below(ruleset const& rules, unsigned target);

/// Fills rules_for from rule[], target[] and counts_elsewhere. Rules must already be sorted by
/// level.
void index_rules(ruleset& rules);

/// Rules (as a mask) whose path_glob lets this path through; `path` as the program gave it.
std::uint64_t path_rules(ruleset const& rules, std::string_view path);

/// Rules (as a mask) whose thread_glob and user let this caller through.
std::uint64_t caller_rules(ruleset const& rules, std::string_view thread, std::uint32_t user);

/// Null when every offset, count and index is in range; else what is wrong. The one check at the
/// border.
char const* validate(ruleset const& rules);

}  // namespace sluice::core
