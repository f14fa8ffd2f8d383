// SPDX-License-Identifier: Apache-2.0
// The book of overrides of a controller, on disk. It also undoes those of jobs that are gone.
// What stays true: the loop never waits for the disk, but at its end.
#pragma once

#include <string>
#include <vector>

#include "base/file_writer.h"
#include "cluster/absences.h"
#include "cluster/roster.h"
#include "runtime/log.h"
#include "verbs/kept_answers.h"
#include "verbs/views/overrides.h"

namespace sluice::cluster {

class override_keeper {
 public:
  /// A file that cannot be read is lost, and the log says so.
  override_keeper(std::string path, runtime::logger& log);

  verbs::override_book& book() { return book_; }
  /// What was changed, and who waits until it is written.
  verbs::kept_answers& kept() { return kept_; }
  verbs::kept_answers const& kept() const { return kept_; }
  /// To be polled; then turn() takes back what was written.
  int fd() const { return writer_.fd(); }
  /// Begins what is due.
  void turn(std::int64_t now_ns);
  /// Waits until all is written, or could not be.
  void finish(std::int64_t now_ns);
  /// Once a second: what has ended, or was meant for a job that is gone. True: the book has
  /// changed.
  bool take_back(roster const& known, lease::time_ns now, dated_moment today);

 private:
  void begin(std::int64_t now_ns);
  void tried(std::int64_t now_ns, bool is_written);

  std::string path_;
  runtime::logger& log_;
  verbs::override_book book_;
  verbs::kept_answers kept_;
  absences absent_;
  file_writer writer_;
};

}  // namespace sluice::cluster
