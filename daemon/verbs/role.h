// SPDX-License-Identifier: Apache-2.0
// The data that a role of sluiced supplies, so that verbs are written once: its name, its jobs as
// views, the settings of a job, its policy. Jobs are numbered from 0 to job_count() within one
// request.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/job_id.h"
#include "core/unit_kind.h"
#include "local/local.h"
#include "policy/site.h"
#include "runtime/policy_log.h"
#include "runtime/services.h"
#include "verbs/views/overrides.h"
#include "verbs/views/views.h"

namespace sluice::verbs {

enum class verb : std::uint8_t {
#define VERB(symbol, name, where, who, effect, reach) symbol,
#include "verbs/verbs.def"
};

/// Who a job is; enough to say who may see it.
struct job_name {
  std::uint32_t uid = 0;
  std::string name;
  core::job_id key = {};   // of the book of overrides
  bool is_visible = true;  // else it is gone
  bool has_owner = true;   // else nobody has said whose it is yet: for operators only
};

/// A limit of a job that can be set.
struct settable {
  std::string name;      // metadata@scratch, or a channel of its own
  std::string resource;  // metadata; empty: it has only its name
  core::unit_kind unit = core::unit_kind::ops;
  rate now = unbounded;
  std::optional<rate> owner_most;  // what its owner may set at most; none: anything
};

/// The policy in force.
struct policy_view {
  policy::site const* site = nullptr;  // null: none yet
  std::string const* text = nullptr;
  std::uint64_t hash = 0;  // 0: none
};

/// What `hello` says besides what all roles say.
struct parent_view {
  std::string address, name;
  bool is_connected = false;
};

class role {
 public:
  virtual ~role() = default;

  virtual char const* kind() const = 0;  // node, relay, cluster
  virtual runtime::config const& config() const = 0;
  virtual runtime::services& services() const = 0;
  virtual std::optional<parent_view> parent() const = 0;
  /// What only this role says of itself, to who asks for it.
  virtual void add_to_hello(nlohmann::json& answer, local::peer const& who,
                            nlohmann::json const& request) const = 0;

  virtual std::size_t job_count() const = 0;
  virtual job_name name_of(std::size_t job) const = 0;
  virtual job_view look_at(std::size_t job) const = 0;
  virtual job_details details_of(std::size_t job) const = 0;
  /// What only this role says of a job.
  virtual void add_to_explain(std::size_t, nlohmann::json&) const {}
  virtual std::uint64_t cycle() const = 0;
  virtual std::vector<supply_view> supplies() const = 0;
  virtual std::size_t node_count() const = 0;
  /// None: no such node is there any more.
  virtual std::optional<node_view> node(std::size_t number) const = 0;

  virtual override_book& overrides() = 0;
  enum class change : std::uint8_t { limit, qos_class, pause };
  /// Throws why that cannot be changed here.
  virtual void check_change(std::size_t job, change what) const = 0;
  virtual std::vector<settable> settables(std::size_t job) const = 0;
  /// In force at once. The answer waits until it is kept (kept_answers.h).
  virtual void overrides_changed(std::size_t job) = 0;

  virtual policy_view policy() const = 0;
  /// Throws why no policy can be applied here.
  virtual void check_apply() const = 0;
  /// Beside those that policy::warnings() has.
  virtual std::vector<std::string> warnings_of(policy::site const& next) const = 0;
  /// Throws what the parser throws. What the operator should know.
  virtual std::vector<std::string> use_policy(std::string const& text,
                                              runtime::policy_source const& source) = 0;

  /// Why a change made here may not last, for whoever makes one; empty: it does.
  virtual std::string doubt_of_changes() { return {}; }

  /// A question that somebody else answers; none: it is answered here.
  virtual std::optional<nlohmann::json> ask_above(local::peer const& who, verb which,
                                                  nlohmann::json const& request) = 0;
  /// A verb whose row says `node`. Throws where it has no such verb.
  virtual nlohmann::json serve_own(verb which, local::peer const& who,
                                   nlohmann::json const& request) = 0;
};

/// Operators see all jobs, others their own.
bool may_see(local::peer const& who, job_name const& job);

/// The job that NAME, UID@NAME or USER@NAME is, of those that may be seen. Throws a usage error.
std::size_t find_job(role const& r, local::peer const& who, std::string const& name);

}  // namespace sluice::verbs
