// SPDX-License-Identifier: Apache-2.0
// The versions of the policy that this daemon had in force: the last twenty, with when, from where
// and by whom, a file each in its state directory. A text that is already in force is no new
// version, so a restart or a reload of the same file adds nothing. A full disk costs the history,
// never the policy.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// Where a policy came from.
struct policy_source {
  std::string from;                       // a file, `the policy of PARENT`, `sluice policy apply`
  std::optional<std::uint32_t> by_uid{};  // who applied it; nobody: the daemon took it by itself
};

struct policy_version {
  std::uint64_t number = 0;
  std::int64_t since_s = 0;  // CLOCK_REALTIME
  policy_source source;
  std::string text;
};

class policy_log {
 public:
  static constexpr std::size_t most_versions = 20;

  /// Reads what is there; a file that is none of ours is left out.
  explicit policy_log(std::string dir);

  /// The text is in force since `now_s`. False: it could not be kept.
  bool note(std::string const& text, policy_source const& source, std::int64_t now_s);
  /// Oldest first.
  std::vector<policy_version> const& versions() const { return versions_; }

  /// The answer of the verb `policy-log`: all versions without their texts, newest first, or the
  /// one of the request's "version" with it. Throws a usage error when there is no such version.
  nlohmann::json answer(nlohmann::json const& request) const;

 private:
  std::string file_of(std::uint64_t number) const;

  std::string dir_;
  std::vector<policy_version> versions_;
};

}  // namespace sluice::runtime
