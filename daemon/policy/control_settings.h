// SPDX-License-Identifier: Apache-2.0
// The part of a policy about the controllers themselves: which nodes there are, how often they
// report, how long a grant lasts, what an orphaned node may use; and which users may use which
// class. See daemon/lease for what the lease protocol makes of these numbers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sluice::policy {

/// Who may give away the part of the capacity that no node owns.
enum class pool_owner : std::uint8_t { single, majority, none };
/// What a node without a parent does: its safe share, its last grant, or no limit.
enum class orphan_mode : std::uint8_t { safe, keep, open };

struct control_settings {
  std::vector<std::string> nodes;  // as configured; empty: nobody has escrow or floor
  std::int64_t cycle_ns = 100'000'000;
  std::int64_t lease_ns = 1'000'000'000;
  std::uint32_t escrow_ppm = 290'000;  // of each capacity, of all nodes together
  std::uint32_t floor_ppm = 10'000;
  pool_owner pool = pool_owner::single;
  orphan_mode orphans = orphan_mode::safe;
  std::string default_class;  // of a job that names none; empty: none
  bool enforce = true;        // false: nothing is delayed, what would have been is counted
};

/// As a policy says it.
constexpr char const* pool_owner_names[] = {"single", "majority", "none"};
constexpr char const* orphan_mode_names[] = {"safe", "keep", "open"};
constexpr char const* name_of(pool_owner p) { return pool_owner_names[static_cast<unsigned>(p)]; }
constexpr char const* name_of(orphan_mode m) { return orphan_mode_names[static_cast<unsigned>(m)]; }

/// Names as written; a number is an id.
struct access_rule {
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::vector<uid_t> uids;  // of the users that this machine knew when the policy was read
  std::vector<gid_t> gids;
};

using access_rules = std::map<std::string, access_rule>;  // by class

}  // namespace sluice::policy
