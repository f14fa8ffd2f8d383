// SPDX-License-Identifier: Apache-2.0
// The part of a policy about the controllers themselves: which nodes there are, how often they
// report, how long a grant lasts, what an orphaned node may use; and which users may use which
// class. See daemon/lease for what the lease protocol makes of these numbers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <span>
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

char const* name_of(pool_owner p);
char const* name_of(orphan_mode m);

/// Names as written; a number is an id.
struct access_rule {
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::vector<uid_t> uids;  // of the users that this machine knew when the policy was read
  std::vector<gid_t> gids;
};

using access_rules = std::map<std::string, access_rule>;  // by class

struct site;

/// A class without a rule is everybody's; uid 0 may use all. `groups` are all of the user's.
bool may_use(site const& s, std::string const& qos_class, uid_t uid, std::span<gid_t const> groups);

/// What the control and access sections mean, one sentence each.
std::vector<std::string> control_in_words(site const& s);

/// What is allowed but deserves a second look.
std::vector<std::string> warnings(site const& s);

}  // namespace sluice::policy
