// SPDX-License-Identifier: Apache-2.0
// The files of what people change at a controller: overrides of jobs, and a policy that was applied
// over the socket. Their directory is the controller's own, or one that a standby has, too.
// Everything here may wait for a disk or a server.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "verbs/views/overrides.h"

namespace sluice::cluster {

struct change_texts {
  std::optional<std::string> overrides;  // override_book::to_text()
  std::optional<std::string> applied;    // policy_keeper::over() knows what it says
  bool operator==(change_texts const&) const = default;
};

struct found_changes {
  change_texts texts;
  verbs::override_book book;  // of texts.overrides
  struct lost_file {
    std::string why, kept_as;
  };
  std::vector<lost_file> lost;
  std::string trouble;  // not empty: nothing was read, and this is why
};

class change_files {
 public:
  /// `writer`: the controller's name, if others write in the directory, too.
  explicit change_files(std::string dir, std::string writer = {})
      : dir_(std::move(dir)), writer_(std::move(writer)) {}

  std::string const& dir() const { return dir_; }
  bool is_shared() const { return !writer_.empty(); }
  static verbs::override_book book_of(change_texts const& texts);  // throws sluice_error
  bool is_empty() const;                                           // none of the files is there
  /// `may_set_aside`: overrides that are of no use are out of the way then, and as if they were not
  /// there. In a shared directory that is for one alone, and never because its server fails.
  found_changes read(bool may_set_aside) const;
  /// Durably. Without `with_applied` that file stays as it is. False: something is not written.
  bool write(change_texts const& texts, bool with_applied) const;

 private:
  descriptor open_directory() const;
  std::optional<std::string> text_of(char const* name, found_changes& found) const;

  std::string dir_, writer_;
};

}  // namespace sluice::cluster
