// SPDX-License-Identifier: Apache-2.0
// The policy in force at a controller, and its copies in the state directory. One copy is a policy
// that was applied over the socket, with the hash of the file it replaces, so that a file edited
// later wins again. The other is the policy of the parent. A full disk costs the memory, never the
// control.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policy/site.h"
#include "runtime/policy_log.h"
#include "runtime/services.h"

namespace sluice::cluster {

class policy_keeper {
 public:
  /// Takes the policy to start with. Throws what the parser says of the file.
  policy_keeper(runtime::config const& config, runtime::services& services);

  policy::site const& site() const { return site_; }
  std::string const& text() const { return text_; }
  std::int64_t loaded_s() const { return loaded_s_; }  // CLOCK_REALTIME

  /// Takes one that was checked.
  void use(policy::site site, std::string text, runtime::policy_source const& source);
  /// `text` was applied over the socket: a restart begins with it. False: it could not be kept.
  bool keep_applied(std::string const& text) const;
  /// It came from the parent.
  bool keep_heard(std::string const& text) const;

  /// The policy of `file`, when that was edited since it was read. Throws what the parser says.
  std::optional<std::string> changed_text(std::string const& file) const;
  /// It is in force, and ends what was applied over the socket.
  void follow_file(std::string const& text);

 private:
  std::string starting_text();
  std::string applied_over(std::string const& file_text) const;
  void note(runtime::policy_source const& source) const;

  std::string dir_;
  runtime::services& services_;
  std::string file_text_;
  policy::site site_;
  std::string text_;
  std::int64_t loaded_s_ = 0;
};

}  // namespace sluice::cluster
