// SPDX-License-Identifier: Apache-2.0
// The roles of a policy: what the I/O of a program is for. A group of roles is about one kind of
// program; each role has conditions, or several sets of them. They become the flat table that the
// stage reads (core/roles.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/roles.h"
#include "policy/reading.h"

namespace sluice::policy {

/// Conditions that must hold together. Empty texts: any.
struct clause_spec {
  std::string origin;
  std::string environment, title, thread, path;
  std::string log_file, log_line;  // both or none
  std::string reads, until;        // both or none
  std::string made_by;
  std::uint64_t ops = 0;  // mask
  std::uint8_t thread_word = 0;
  bool is_rest = false;
};

struct role_spec {
  std::string group, name, program;
  std::string origin;
  std::vector<clause_spec> clauses;

  std::string full_name() const { return group + "." + name; }
};

/// The section "roles" of a policy. Throws usage errors with file, line and column.
std::vector<role_spec> read_roles(reading const& r, node const& n);

/// The roles that a limit means by a name: one as `group.name`, or all that are called so. 0: none.
std::uint32_t roles_called(std::vector<role_spec> const& roles, std::string_view name);

/// Masks of roles. This bit is of calls that have none.
inline constexpr std::uint64_t of_no_role = std::uint64_t{1} << core::max_roles;
/// All but these, and calls of no role.
std::uint64_t roles_besides(std::vector<role_spec> const& roles,
                            std::vector<std::string> const& names);

/// Throws unless somebody is called so; `where` begins the message.
void check_role(std::vector<role_spec> const& roles, std::string const& name,
                std::string const& where);

/// The table; `roles_of_rule`: of each rule, the mask of roles it holds for, 0 for all calls.
/// Throws a usage error when it does not fit.
std::unique_ptr<core::role_table> compile_roles(std::vector<role_spec> const& roles,
                                                std::vector<std::uint64_t> const& roles_of_rule);

/// Each role in a sentence.
std::vector<std::string> roles_in_words(std::vector<role_spec> const& roles);

}  // namespace sluice::policy
