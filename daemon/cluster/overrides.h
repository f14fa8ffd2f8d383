// SPDX-License-Identifier: Apache-2.0
// What people changed by hand while jobs run: a limit, another QoS class, a pause; for ever or
// until a time of day, so that a change made at night ends although the controller was restarted
// since. An owner's own limit only ever lowers; an operator's replaces what the class says.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lease/message.h"

namespace sluice::cluster {

struct job_override {
  struct mark {
    bool set = false;
    bool by_owner = false;
    std::int64_t until_s = 0;  // CLOCK_REALTIME; 0: until somebody changes it
  };
  struct limit_row : mark {
    std::uint32_t supply = 0;  // wire::supply_key
    std::string name;          // metadata@scratch
    lease::rate value = 0;
  };
  std::uint32_t uid = 0;
  std::string job;
  mark qos, pause;
  std::string qos_class;
  std::uint32_t class_key = 0;
  std::vector<limit_row> limits;
  std::uint32_t child = ~std::uint32_t{0};  // who had the job last; a restart forgets it
  lease::time_ns gone_since = 0, unseen_since = 0;

  bool is_empty() const { return !qos.set && !pause.set && limits.empty(); }
  limit_row const* limit_of(std::uint32_t supply) const;
};

/// `unknown`: who would know is silent.
enum class presence : std::uint8_t { here, gone, unknown };

class overrides {
 public:
  job_override const* find(std::uint64_t job) const;
  /// The row of a job, made if there is none. Call changed() when done.
  job_override& edit(std::uint64_t job, std::uint32_t uid, std::string const& name);
  void drop_empty();
  /// Takes back what has ended; one sentence each.
  std::vector<std::string> expire(std::int64_t now_s);
  /// Takes back what was meant for jobs that are gone for minutes, or were not heard of for a day:
  /// the next one of that name is another job. One sentence each.
  std::vector<std::string> retire(
      lease::time_ns now, std::function<presence(std::uint64_t, job_override&)> const& look);
  bool empty() const { return rows_.empty(); }

  std::string to_json() const;
  /// Throws sluice::error when the text is not what to_json writes.
  static overrides from_json(std::string const& text);

 private:
  std::map<std::uint64_t, job_override> rows_;
};

}  // namespace sluice::cluster
