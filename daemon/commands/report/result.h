// SPDX-License-Identifier: Apache-2.0
// A result file of a run, a replay, a simulation or the history of a daemon. The format is in
// README.md. It comes from another program, perhaps of another version: unknown keys are ignored,
// known keys must be right, and a refusal says file, line and place.
// What stays true: whatever the file says, amounts are finite and not negative, and there are no
// more than `most_values` of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::report {

inline constexpr int format_version = 1;
inline constexpr std::size_t most_bytes = std::size_t{512} << 20;  // of a file
inline constexpr std::size_t most_values = 40'000'000;
/// The job of a row that stands for all that are not named.
inline constexpr char other_jobs[] = "other jobs";
inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// What a row of the timeline speaks of.
enum class subject : std::uint8_t { job, op, supply, channel };

/// One thing over time: `what` of `name` (an op, a supply, a channel) for `job`.
struct series {
  std::string job;
  subject about = subject::job;
  std::string name;
  std::string what;            // done, waited, served, … see README.md
  std::string unit;            // ops, bytes, vops, s, ns
  std::vector<double> values;  // one per interval, or fewer; NaN: not known
};

struct timeline {
  std::optional<double> start_unix_s;
  double interval_s = 1;
  std::size_t intervals = 0;  // of the longest row
  std::vector<series> rows;
};

struct channel_sum {
  std::string name, unit, target;
  double rate_per_s = 0;
  double calls = 0, amount = 0, delayed = 0, waited_s = 0;
  double wait_p50_s = 0, wait_p99_s = 0, wait_max_s = 0;
  bool is_only_counted = false;  // nothing was delayed; what would have been:
  double would_delay = 0, would_wait_s = 0;
};

/// How long the calls of an op took, without what they waited; of a sample.
struct time_sum {
  std::string target, op;
  double calls = 0, samples = 0;  // those that the samples stand for
  double took_s = 0, took_p50_s = 0, took_p99_s = 0, took_max_s = 0;
};

/// How much the calls of an op moved, of the same sample.
struct size_sum {
  std::string target, op;
  std::vector<std::pair<double, double>> steps;  // below so many bytes: calls
};

struct call_sum {
  std::string call, op, cls;
  double calls = 0, errors = 0, bytes = 0, delayed = 0, waited_s = 0;
};

struct path_sum {
  std::string path;
  double calls = 0, over = 0;  // so many calls may be too many
  double bytes = 0, waited_s = 0;
  double took_s = 0;  // in the calls, of a sample
};

/// What requests were for. Without a name: what has no role.
struct role_sum {
  std::string role;
  double calls = 0, read = 0, written = 0, delayed = 0, waited_s = 0;
  std::vector<std::pair<std::string, double>> sources;  // how it was known: bytes
};

struct job_row {
  std::string job, qos_class, user;
  double started_s = unknown, ended_s = unknown;  // after the start of the timeline
  std::optional<bool> finished;
};

struct rule_row {
  std::string channel, text, file, unit;
  double line = 0;
  double rate_per_s = unknown;
};

/// What hints to the kernel came to, for a program that works in small pieces.
struct hint_sum {
#define HINT(name) double name = 0;
#include "small.def"
  std::string why_none;  // why nothing came of it
};

/// What came of gathering small writes.
struct gathered_sum {
#define GATHER(name) double name = 0;
#include "small.def"
  std::string why_none;
};

/// What came of answering small reads from memory.
struct buffered_sum {
#define BUFFER(name) double name = 0;
#include "small.def"
  std::string why_none;
};

struct result {
  std::string kind = "run";  // run, replay, simulation, history
  std::string job;
  std::vector<std::string> command;
  std::optional<int> exit_code, exit_signal;
  double elapsed_s = unknown;
  double processes = 0;
  std::vector<channel_sum> channels;
  std::vector<call_sum> calls;
  std::vector<time_sum> times;
  std::vector<size_sum> sizes;
  std::vector<path_sum> paths;
  std::vector<role_sum> roles;
  std::vector<std::pair<std::string, double>> passthrough;  // why, calls
  std::optional<hint_sum> hints;
  std::optional<gathered_sum> gathered;
  std::optional<buffered_sum> buffered;
  timeline time;
  std::vector<job_row> jobs;
  std::vector<rule_row> rules;
  std::vector<std::pair<std::string, std::string>> facts;
  std::string file;  // where it was read
};

/// Throws a usage error `name:line: …`.
result parse_result(std::string_view text, std::string const& name);

/// `-`: standard input.
result read_result(std::string const& path);

}  // namespace sluice::report
