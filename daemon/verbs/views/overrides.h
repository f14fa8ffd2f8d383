// SPDX-License-Identifier: Apache-2.0
// Changes that people made by hand while jobs run: a limit, another QoS class, a pause; for good or
// for a time. That time is counted on CLOCK_BOOTTIME, whatever sets the time of day meanwhile; once
// the machine was restarted, the time of day is all that is left of it. One book for all roles,
// kept as one file. What stays true: the owner of a job can only lower its limits, and cannot undo
// a change of an operator.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/job_id.h"
#include "verbs/views/views.h"

namespace sluice::verbs {

struct override_mark {
  bool by_owner = false;    // else by an operator
  double until_s = 0;       // CLOCK_REALTIME; 0: until somebody changes it
  double until_boot_s = 0;  // CLOCK_BOOTTIME, which decides; 0: the machine was restarted since
};

/// For so long from now on.
override_mark ends_after(override_mark mark, double for_s, dated_moment now);

struct limit_override : override_mark {
  std::string channel;  // metadata@scratch, or a channel of the job's own
  rate value = 0;
};

struct class_override : override_mark {
  std::string qos_class;
};

/// All of one job.
struct job_overrides {
  std::uint32_t uid = 0;
  std::string job;
  std::vector<limit_override> limits;  // one per channel
  std::optional<class_override> qos;
  std::optional<override_mark> pause;

  bool is_empty() const { return limits.empty() && !qos && !pause; }
  limit_override const* limit_of(std::string const& channel) const;
};

class override_book {
 public:
  using job_key = core::job_id;  // wire::job_key of uid and name

  job_overrides const* find(job_key job) const;

  // Each throws a usage error when an operator's word stands against the owner's.
  void set_limit(job_key job, std::uint32_t uid, std::string const& name, limit_override item);
  void set_class(job_key job, std::uint32_t uid, std::string const& name, class_override item);
  void pause(job_key job, std::uint32_t uid, std::string const& name, override_mark const& mark);
  /// The job follows its class again there. False: nobody had set it. Throws a usage error when an
  /// operator set it and an owner withdraws.
  bool withdraw_limit(job_key job, std::string const& channel, bool by_owner);
  bool withdraw_class(job_key job);
  /// False: it was not paused.
  bool resume(job_key job, bool by_owner);

  /// False: there was nothing of it.
  bool forget(job_key job) { return jobs_.erase(job) != 0; }
  /// Forgets those for which it is true; a sentence each.
  std::vector<std::string> forget_if(
      std::function<bool(job_key, job_overrides const&)> const& over);
  /// Takes back what has ended; a sentence each.
  std::vector<std::string> expire(dated_moment now);
  /// The clock was set: ends have another time of day. True: some had one that was wrong by a
  /// second or more.
  bool follow_clock(dated_moment now);
  bool is_empty() const { return jobs_.empty(); }

  /// `boot`: boot_id().
  std::string to_text(std::string const& boot) const;
  /// `more`: what else the file has, an object. from_text() passes over that.
  std::string to_text(std::string const& boot, nlohmann::json more) const;
  /// `key_of`: see job_key. Throws sluice_error when the text is not what to_text() writes.
  static override_book from_text(
      std::string const& text,
      std::function<job_key(std::uint32_t uid, std::string const& name)> const& key_of,
      std::string const& boot);

 private:
  void check_owner(job_key job, std::string const& channel, override_mark const& fresh) const;
  job_overrides& edit(job_key job, std::uint32_t uid, std::string const& name);

  std::map<job_key, job_overrides> jobs_;
};

}  // namespace sluice::verbs
