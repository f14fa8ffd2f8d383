// SPDX-License-Identifier: Apache-2.0
// The processes in the jobs of this node, and those that escape. The census of the process slots
// goes on a little in each step; the walk through /proc runs beside the loop.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "node/census.h"
#include "node/census_rounds.h"
#include "node/clock.h"
#include "node/escape_worker.h"
#include "node/foreign_turns.h"
#include "node/job_table.h"
#include "node/loop_time.h"

namespace sluice::node {

class job_watch {
 public:
  job_watch(job_table& jobs, loop_times& times, escape_worker::starter start, runtime::logger& log);

  /// Goes on counting. Sets processes and life of jobs; true: one is not in use.
  bool count_heads(bool is_fast, std::int64_t now_ns);
  /// All are to be counted soon, those that are being counted once more after that.
  void recount() { rounds_.want(); }
  /// Begins a walk when one is due, takes the report of one that has ended.
  void look_for_escapes(site_state const& site, std::int64_t now_ns);
  /// Somebody joined a job: he is looked after sooner than those who are known.
  void came(std::int64_t now_ns) { came_ns_ = now_ns; }
  /// Somebody has come since it was counted: then it is used until it is counted in its turn.
  bool counts_anew(job& j);
  void forget(job const& j);
  bool is_walking() const { return !escapes_.is_idle(); }

 private:
  struct counted {
    head_count heads;
    std::uint32_t came = 0;  // processes that had ever joined when the walk began
    std::int64_t walked_ns = 0;
    bool is_asked = false;     // the walk that is under way looks for its foreign processes
    foreign_claims dead = {};  // of these, as the last walk that looked has it
  };

  /// How far the round of an owner has come.
  struct turn {
    std::string after = {};   // folder of the last job that was counted
    std::string folder = {};  // of the one that is being counted; empty: none
    census::walk walk = {};
    std::uint32_t came = 0;  // to it, when that began
    bool is_any_unused = false;
  };

  bool is_as_counted(job const& j, std::int64_t now_ns) const;
  bool count(job& j, turn& t, unsigned& budget, std::int64_t now_ns);
  void begin_walk(site_state const& site, std::int64_t now_ns);
  void choose_asked();
  void use(watch_report report);
  void find_escaped(job& j, std::vector<suspect> const& suspects);

  job_table& jobs_;
  loop_times& times_;
  census heads_;
  census_rounds rounds_;
  std::map<uid_t, turn> turns_;              // of rounds that are under way, by owner
  std::map<std::string, counted> attached_;  // by folder
  foreign_turns foreign_turns_;
  escape_worker escapes_;
  std::int64_t walked_ns_, came_ns_ = 0;
};

}  // namespace sluice::node
