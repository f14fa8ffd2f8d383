// SPDX-License-Identifier: Apache-2.0
// What the roles of running jobs move, as rows of `sluice top`: of each role its bytes per second,
// and the part of the time in which its threads waited.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "segment/role_look.h"

namespace sluice::cli {

class role_rows {
 public:
  /// Adds the streams `data:ROLE` to the row of a job, unless a limit of that name has one. `job`
  /// tells it from others. Nothing at the first look: there is no time between two yet.
  void add(nlohmann::json& row, std::string const& job, segment::role_uses const& uses,
           std::int64_t now_ns);
  /// All jobs of this look have been added.
  void end_look();

 private:
  struct counts {
    std::uint64_t bytes = 0, waited_ns = 0;
    std::int64_t at_ns = 0;
  };
  std::map<std::string, counts> before_, now_;
};

}  // namespace sluice::cli
