// SPDX-License-Identifier: Apache-2.0
// The requests of a job by role, as its stages counted them. The area belongs to the job's user: it
// is read once, its table is validated, and figures are only shown.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/roles.h"
#include "segment/beside.h"

namespace sluice::segment {

struct role_use {
  std::string name;  // group.role; empty: what has no role
  std::uint64_t calls = 0, read_bytes = 0, written_bytes = 0, delayed = 0, waited_ns = 0;
  std::array<std::uint64_t, core::role_source_count> bytes_by_source = {};
  std::array<std::uint64_t, core::role_source_count> calls_by_source = {};
};

struct role_uses {
  std::vector<role_use> role;  // in the order of the policy; what has none is the last
  std::uint64_t unknown_told = 0, unclassed = 0;
};

/// Nothing where the job has no roles, or its area is damaged.
role_uses look_at_roles(job_files const& files);

/// "roles" of the result file; null without roles.
nlohmann::ordered_json roles_json(job_files const& files);

}  // namespace sluice::segment
