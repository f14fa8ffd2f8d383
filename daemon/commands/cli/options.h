// SPDX-License-Identifier: Apache-2.0
// The command line: one struct per verb, filled by main, and the verbs themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/common_options.h"

namespace sluice::cli {

using global_options = common_options;

/// Where limits come from.
struct limit_options {
  std::vector<std::string> limits;  // --limit
  std::string policy;               // --policy FILE
  std::string qos_class;            // --class NAME
  bool monitor = false;
  bool quiet = false;               // no word about limits that cannot do what was meant
  std::vector<std::string> orders;  // --order
  std::vector<std::string> small;   // --small
  std::vector<std::string> costs;   // --cost FILE[@TARGET]

  bool any() const {
    return !limits.empty() || !policy.empty() || monitor || !orders.empty() || !small.empty();
  }
};

struct run_options {
  limit_options limits;
  std::string job;
  std::string report;              // file; `-` standard output
  std::string record;              // file of the trace; `-` standard output
  std::string interval;            // empty: 1s for a record, growing for a report
  std::string order_journal;       // file of the journal; empty: beside the files
  std::vector<std::string> paths;  // --paths=N, the last counts; empty: not asked for
  std::string paths_depth = "6";
  std::optional<bool> summary;
  std::vector<std::string> command;
};

struct stat_options {
  std::string job;
  double interval_s = 0;
};

struct set_options {
  std::string job;
  std::string assignment;  // CHANNEL=RATE, SUPPLY=RATE or class=NAME
  std::string how_long;    // --for
};

struct pause_options {
  std::string job;
  std::string how_long;  // --for
};

struct explain_options {
  limit_options limits;
  std::vector<std::string> words;  // PID, or CALL PATH
  std::string job;                 // --job
};

struct top_options {
  bool batch = false;
  long count = 0;  // of pictures; 0: without end
  double interval_s = 1;
  std::string sort = "waiting";
  std::string filter;
  bool nodes = false;
};

struct order_options {
  std::string job;  // empty: all
  bool watch = false;
  long count = 0;  // of pictures; 0: without end, or one
  double interval_s = 1;
};

struct apply_options {
  std::string file;
  bool dry_run = false;
};

struct version_options {
  long from = 0;  // 0: the one before that in force
  long to = 0;    // 0: the one in force
  bool dry_run = false;
};

// Each returns the exit status; all throw sluice::error.
int run_verb(global_options const& global, run_options const& options);
int stat_verb(global_options const& global, stat_options const& options);
int jobs_verb(global_options const& global);
int set_verb(global_options const& global, set_options const& options);
int pause_verb(global_options const& global, pause_options const& options);
int resume_verb(global_options const& global, pause_options const& options);
int top_verb(global_options const& global, top_options const& options);
int order_verb(global_options const& global, order_options const& options);
int explain_verb(global_options const& global, explain_options const& options);
int doctor_verb(global_options const& global, std::string const& file);
int policy_check(global_options const& global, std::string const& file);
int policy_show(global_options const& global, std::string const& file);
int policy_apply(global_options const& global, apply_options const& options);
int policy_get(global_options const& global);
int policy_log(global_options const& global);
int policy_diff(global_options const& global, version_options const& options);
int policy_rollback(global_options const& global, version_options const& options);

/// A verb that a program installed beside this one does, for it needs libraries that this one must
/// not load.
struct forwarded_verb {
  char const* name;
  char const* program;
  bool names_itself;  // the program has several verbs and wants to hear this one
  char const* help;
};

inline constexpr forwarded_verb forwarded_verbs[] = {
    {"trace", "sluice-trace", false, "look at, convert and make traces of file I/O"},
    {"replay", "sluice-replay", false, "repeat the operations of a trace, or simulate them"},
    {"report", "sluice-report", false, "show what happened: a page, or text"},
    {"calibrate", "sluice-calibrate", true, "measure what requests cost on a file system"},
    {"cost", "sluice-calibrate", true, "show cost files, or compare one with its file system"},
    {"recover", "sluice-recover", false, "write a journal into its files after a crash"},
    {"submit", "sluice-slurm", true, "submit a batch job with a QoS class"},
    {"hook", "sluice-slurm", true, "for Prolog, Epilog and TaskProlog scripts"},
    {"keys", "sluiced", true, "make and admit keys of daemons (sluiced keys)"},
};

int forward_verb(global_options const& global, forwarded_verb const& verb,
                 std::vector<std::string> const& arguments);

}  // namespace sluice::cli
