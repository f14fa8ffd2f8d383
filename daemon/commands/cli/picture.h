// SPDX-License-Identifier: Apache-2.0
// A daemon's answer about jobs, supplies and nodes, as values. It comes from another program,
// perhaps of another version: a field that is missing or of another type counts as not given, never
// as an error.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sluice::cli {

struct supply_row {
  std::string supply;
  double capacity = 0, budget = 0, granted = 0, served = 0;
  std::optional<double> demand;  // none: unbounded
  std::string why;               // of a capacity that nobody wrote: a sentence
};

/// A job on one supply. A job without any has one row, whose supply is empty.
struct stream_row {
  std::string job, user, qos_class, supply;
  std::optional<std::uint64_t> uid;
  std::uint64_t nodes = 0, processes = 0, escaped = 0;
  bool is_paused = false;
  bool is_overridden = false;
  std::string state = {};        // as the daemon calls it
  bool is_own = false;           // it runs without a daemon
  std::optional<double> demand;  // none: unbounded
  std::optional<double> grant;   // none: unbounded
  double served = 0;
  double beyond = 0;   // of that: beyond the grant, as nothing holds it
  double waiting = 0;  // tokens asked for and not served
  double blocked = 0;  // share of the time in which a request waited, 0 to 1
  std::uint64_t waiters = 0;
  std::vector<double> lately;  // served at the last looks, oldest first; none: nobody remembers
};

/// `UID@NAME`, as verbs want a job, or the name where no uid is told.
std::string job_id(stream_row const& row);

/// A node on one supply.
struct node_row {
  std::string node, role, state, supply;
  double age_s = 0;
  std::uint64_t jobs = 0;
  double granted = 0, served = 0;
};

struct picture {
  std::uint64_t cycle = 0;
  std::uint64_t jobs = 0;
  std::vector<supply_row> supplies;
  std::vector<stream_row> streams;
  std::vector<node_row> nodes;
};

/// The rows of one job of an answer.
std::vector<stream_row> read_job(nlohmann::json const& job);

/// An answer to `top`, all its pages.
picture read_picture(nlohmann::json const& answer);

}  // namespace sluice::cli
