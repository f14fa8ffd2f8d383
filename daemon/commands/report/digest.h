// SPDX-License-Identifier: Apache-2.0
// The facts that a reader wants first, worked out of a result: which job used the capacity, which
// waited, for which rule, when. A gate is the place where calls wait: a supply of a policy or a
// channel of a job.
#pragma once

#include <string>
#include <vector>

#include "commands/report/result.h"

namespace sluice::report {

/// An op over time, all jobs together.
struct op_use {
  std::string op, unit;
  double total = 0;
  double waited_s = 0, delayed = 0, took_s = 0;
  std::vector<double> rate;    // per second, by interval
  std::vector<double> waited;  // seconds of waiting per second
  std::vector<double> took;    // seconds in the calls per second, by their sample

  /// Calls and bytes of an op are rows of their own.
  std::string label() const { return unit == "bytes" ? op + " (bytes)" : op; }
};

/// A job at a gate.
struct gate_use {
  std::string job, gate, unit;
  double served = 0;           // amount over all
  double waited_s = unknown;   // all threads added
  double blocked_s = unknown;  // in which something waited
  // By interval; may be empty.
  std::vector<double> rate, demand, grant, limit, waiting, blocked, paused;
};

/// A gate, all jobs together.
struct gate {
  std::string name, unit;
  double served = 0, calls = 0, delayed = 0;
  double waited_s = 0;               // all threads added
  double blocked_s = 0;              // in which something waited
  double capacity_amount = unknown;  // what it could have served; of what was recorded
  double waited_capacity = 0;        // of it that of the time in which something waited
  double idle_amount = 0;            // of that left unused
  double p50_s = 0, p99_s = 0, most_s = 0;
  double beyond = 0;  // of `served`: beyond what was granted, as nothing held it
  bool is_only_counted = false;
  double would_delay = 0, would_wait_s = 0;       // calls, time; had it not only counted
  std::string rule;                               // in words, and where it is written; may be empty
  std::vector<double> capacity, blocked, unused;  // the last as amounts; empty: worked out
  bool says_blocked = false;                      // of all jobs together
};

struct job_use {
  std::string job, qos_class, user;
  double done = 0, bytes = 0, offered = 0, failed = 0;
  double waited_s = 0, blocked_s = 0, paused_s = 0, lag_s = 0;
  std::vector<double> paused;  // part of each interval; may be empty
  double started_s = unknown, ended_s = unknown;
  std::optional<bool> finished;
};

struct digest {
  bool is_known = true;  // false: no interval says anything yet
  double duration_s = 0;
  std::vector<op_use> ops;     // most first
  std::vector<gate_use> uses;  // most first
  std::vector<gate> gates;     // most waited first
  std::vector<job_use> jobs;   // most used first
};

digest digest_of(result const& r);

/// `metadata@scratch` -> `metadata tokens of scratch`; others are limits by name.
std::string gate_words(std::string const& gate);

}  // namespace sluice::report
