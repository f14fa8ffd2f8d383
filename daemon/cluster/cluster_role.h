// SPDX-License-Identifier: Apache-2.0
// What a controller supplies to the verbs of its local socket (verbs/role.h).
#pragma once

#include "cluster/controller.h"
#include "verbs/role.h"

namespace sluice::cluster {

class cluster_role final : public verbs::role {
 public:
  explicit cluster_role(controller& c) : c_(c) {}

  char const* kind() const override { return c_.parent() != nullptr ? "relay" : "cluster"; }
  runtime::config const& config() const override { return c_.config(); }
  runtime::services& services() const override { return c_.services(); }
  std::optional<verbs::parent_view> parent() const override;
  void add_to_hello(nlohmann::json& answer, local::peer const& who,
                    nlohmann::json const& request) const override;

  std::size_t job_count() const override { return known().jobs.size(); }
  verbs::job_name name_of(std::size_t job) const override;
  verbs::job_view look_at(std::size_t job) const override;
  verbs::job_details details_of(std::size_t job) const override;
  std::uint64_t cycle() const override { return c_.decisions().cycle(); }
  std::vector<verbs::supply_view> supplies() const override;
  std::size_t node_count() const override { return known().children.size(); }
  std::optional<verbs::node_view> node(std::size_t number) const override;

  verbs::override_book& overrides() override { return c_.overrides(); }
  void check_change(std::size_t job, change what) const override;
  std::vector<verbs::settable> settables(std::size_t job) const override;
  void overrides_changed(std::size_t job) override;

  verbs::policy_view policy() const override;
  void check_apply() const override;
  std::vector<std::string> warnings_of(policy::site const& next) const override;
  std::string doubt_of_changes() override;
  std::vector<std::string> use_policy(std::string const& text,
                                      runtime::policy_source const& source) override;

  std::optional<nlohmann::json> ask_above(local::peer const&, verbs::verb,
                                          nlohmann::json const&) override;
  nlohmann::json serve_own(verbs::verb which, local::peer const& who,
                           nlohmann::json const& request) override;

 private:
  std::vector<std::string> unheard() const;
  roster const& known() const { return c_.decisions().who(); }
  job const& at(std::size_t number) const { return known().jobs[number]; }
  verbs::stream_view view_of(std::uint32_t job, std::uint32_t supply) const;
  job_total const& total_of(std::size_t job) const;
  void check_open() const;

  controller& c_;
  // Processes by job on all children, as of a cycle: a page of rows asks for each.
  mutable std::vector<job_total> totals_;
  mutable std::uint64_t totals_cycle_ = 0;
};

}  // namespace sluice::cluster
