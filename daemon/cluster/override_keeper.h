// SPDX-License-Identifier: Apache-2.0
// The book of overrides of a controller, on disk. It also undoes those of jobs that are gone.
#pragma once

#include <string>
#include <vector>

#include "cluster/absences.h"
#include "cluster/roster.h"
#include "runtime/log.h"
#include "verbs/views/overrides.h"

namespace sluice::cluster {

class override_keeper {
 public:
  /// A file that cannot be read is lost, and the log says so.
  override_keeper(std::string path, runtime::logger& log);

  verbs::override_book& book() { return book_; }
  /// False: the file cannot be written, and the log says so.
  bool keep();
  /// Tries again what keep() could not write.
  void keep_unsaved();
  /// Once a second: what has ended, or was meant for a job that is gone. True: the book has
  /// changed.
  bool take_back(roster const& known, lease::time_ns now, dated_moment today);

 private:
  std::string path_;
  runtime::logger& log_;
  verbs::override_book book_;
  absences absent_;
  bool is_unsaved_ = false;
};

}  // namespace sluice::cluster
