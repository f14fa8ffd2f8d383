// SPDX-License-Identifier: Apache-2.0
// The file of what people change at a controller: overrides of jobs, and a policy that was applied
// over the socket. Its directory is the controller's own, or one that a standby has, too.
// The file bears a term, the number of the reign in which it was written: who begins to rule takes
// a higher one than he has ever seen, and none below the seconds since 1970, so that terms go on
// where the file was lost. A write may hang in a file server until its writer rules no
// more, and another one may have taken the same number meanwhile. So a writer replaces only his
// own, or what he had read when his reign began, where he can still see that. What comes all the
// same bears a lower term than the file had, or an equal one and another name. So who has seen
// the file before knows that it is late.
// Everything here may wait for a disk or a server.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "verbs/views/overrides.h"

namespace sluice::cluster {

/// What the file has.
struct kept_changes {
  static constexpr std::int64_t no_file = -1, earlier_version = 0;
  /// A larger one is damage. Nobody begins so many reigns.
  static constexpr std::int64_t last_term = std::numeric_limits<std::int64_t>::max() / 2;
  std::int64_t term = no_file;
  std::string writer;                  // the controller's name
  std::string text;                    // all of it: override_book::to_text() with the others
  std::optional<std::string> applied;  // policy_keeper::over() knows what it says
  bool operator==(kept_changes const&) const = default;
};

struct found_changes {
  kept_changes kept;
  struct lost_file {
    std::string why, kept_as;
  };
  std::vector<lost_file> lost;
  std::string trouble;  // not empty: nothing was read, and this is why
};

class change_files {
 public:
  enum class written { yes, no, overtaken };  // no: as far as we know
  /// `writer`: the controller's name, if others write in the directory, too.
  explicit change_files(std::string dir, std::string writer = {})
      : dir_(std::move(dir)), writer_(std::move(writer)) {}

  std::string const& dir() const { return dir_; }
  bool is_shared() const { return !writer_.empty(); }
  static verbs::override_book book_of(kept_changes const& kept);  // throws sluice_error
  bool is_empty() const;  // nothing is there, of an earlier version neither
  /// `may_set_aside`: a file that is of no use is out of the way then, and as if it was not there.
  /// In a shared directory that is for one alone, and never because its server fails.
  found_changes read(bool may_set_aside) const;
  /// To be written.
  kept_changes file_of(verbs::override_book const& book, std::optional<std::string> applied,
                       std::int64_t term) const;
  /// Durably. `over`: the text that was there when its reign began. Overtaken: nothing was written,
  /// because another one has written in the shared directory since.
  written write(kept_changes const& kept, std::string const& over) const;

 private:
  descriptor open_directory() const;
  std::optional<std::string> text_of(char const* name, found_changes& found) const;
  bool may_replace(kept_changes const& kept, std::string const& over) const;

  std::string dir_, writer_;
};

}  // namespace sluice::cluster
