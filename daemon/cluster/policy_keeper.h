// SPDX-License-Identifier: Apache-2.0
// The policy in force at a controller. It is that of the file, or one that was applied over the
// socket: that one is kept with the hash of the file it replaces, so that a file edited later wins
// again (change_keeper.h has it on disk). A relay has the policy of its parent, with a copy in the
// state directory. A full disk costs the memory, never the control.
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
  /// Takes the policy to start with. `applied`: see over(). Throws what the parser says of the
  /// file.
  policy_keeper(runtime::config const& config, runtime::services& services,
                std::optional<std::string> const& applied);

  policy::site const& site() const { return site_; }
  std::string const& text() const { return text_; }
  std::string const& file_text() const { return file_text_; }
  std::int64_t loaded_s() const { return loaded_s_; }  // CLOCK_REALTIME

  /// Takes one that was checked.
  void use(policy::site site, std::string text, runtime::policy_source const& source);
  /// How `text` is kept when it was applied over the socket, so that a restart begins with it.
  std::string as_applied(std::string const& text) const;
  /// The text to be in force with this one in the file: what was so kept over it, or itself.
  static std::string over(std::string const& file_text, std::optional<std::string> const& applied);
  /// Our file was edited since, or the other controller has another one.
  bool is_over_another(std::optional<std::string> const& applied) const;
  /// It came from the parent. False: it could not be kept.
  bool keep_heard(std::string const& text) const;

  /// The policy of `file`, when that was edited since it was read. Throws what the parser says.
  std::optional<std::string> changed_text(std::string const& file) const;
  /// It is in force, and what was applied over the former one is no more.
  void follow_file(std::string const& text);

 private:
  std::string starting_text(std::optional<std::string> const& applied);
  void note(runtime::policy_source const& source) const;

  std::string dir_;
  runtime::services& services_;
  std::string file_text_;
  policy::site site_;
  std::string text_;
  std::int64_t loaded_s_ = 0;
};

}  // namespace sluice::cluster
