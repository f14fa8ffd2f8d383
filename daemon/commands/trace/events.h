// SPDX-License-Identifier: Apache-2.0
// The common part of the converters of single calls: events in order of time become a trace with
// its facts.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "commands/trace/convert_options.h"
#include "commands/trace/grid.h"
#include "commands/trace/lines.h"

namespace sluice::trace {

class events {
 public:
  /// `tool`: what made the files, for the provenance.
  events(convert_options const& options, std::string tool);

  /// Lines of one file follow; `from` tells where.
  void begin(lines const& from);

  /// Checks that time does not go back by more than `slack_s`.
  void arrive(double when_s, double slack_s = usual_slack_s);
  static constexpr double usual_slack_s = 1;  // threads and processors cross, clocks are set

  /// The job of what comes next: `by` and its value when --jobs-by asks for it.
  void set_job(std::string_view by, std::string_view value);

  void count(double when_s, unsigned op, double amount = 1);
  /// A read or write of so many bytes.
  void transfer(double when_s, std::string_view op, double bytes);
  /// From a stretch of time.
  void spread(double from_s, double to_s, unsigned op, double amount);
  /// A call that is not counted, by its name.
  void skip(std::string_view name);

  trace take(bool is_unix);

 private:
  void refuse_if(char const* why) const;

  convert_options const& options_;
  std::string tool_;
  timeline line_;
  lines const* from_ = nullptr;
  std::string job_;
  double latest_s_ = 0;
  bool any_ = false;
  struct {
    double calls = 0, bytes = 0;
  } read_, write_;
  std::set<std::string, std::less<>> skipped_;
  std::string sources_;
};

/// The name of a file as that of a job: without folders and suffix, cut to what a name may be.
std::string job_of_file(std::string_view path);

}  // namespace sluice::trace
