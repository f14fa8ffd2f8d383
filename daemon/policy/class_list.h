// SPDX-License-Identifier: Apache-2.0
// The answer to a user who is about to submit a job: the classes, which of them are open to the
// user, and whether the request is possible.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/site.h"

namespace sluice::policy {

struct person {
  uid_t uid;
  gid_t gid;
  std::vector<gid_t> groups;
  std::string name;
};

/// Throws a usage error that says which classes there are, or which of them this user may use.
void check_class(site const& s, std::string const& qos_class, uid_t uid,
                 std::span<gid_t const> groups, std::string const& user);

/// {"classes": [{"class", "open"}], "default"}. Throws a usage error when the class wanted is none
/// of them or not his, or a limit (several have commas between them) is none.
nlohmann::json class_list(site const& s, person const& who, std::optional<std::string> const& wish,
                          std::optional<std::string> const& limits);

/// The parts of "a=1/s,b=2/s".
std::vector<std::string> split_limits(std::string const& text);

}  // namespace sluice::policy
