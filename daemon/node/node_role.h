// SPDX-License-Identifier: Apache-2.0
// What a node supplies to the verbs of its local socket (verbs/role.h).
#pragma once

#include "node/state.h"
#include "verbs/role.h"

namespace sluice::node {

class node_role final : public verbs::role {
 public:
  explicit node_role(state& s) : s_(s) {}

  char const* kind() const override { return "node"; }
  runtime::config const& config() const override { return s_.config; }
  runtime::services& services() const override { return s_.services; }
  std::optional<verbs::parent_view> parent() const override;
  void add_to_hello(nlohmann::json& answer, local::peer const& who,
                    nlohmann::json const& request) const override;

  std::size_t job_count() const override { return s_.jobs.all().size(); }
  verbs::job_name name_of(std::size_t job) const override;
  verbs::job_view look_at(std::size_t job) const override;
  verbs::job_details details_of(std::size_t job) const override;
  void add_to_explain(std::size_t job, nlohmann::json& answer) const override;
  std::uint64_t cycle() const override { return s_.sums.cycles(); }
  std::vector<verbs::supply_view> supplies() const override;
  std::size_t node_count() const override { return 1; }
  std::optional<verbs::node_view> node(std::size_t number) const override;

  verbs::override_book& overrides() override { return s_.overrides; }
  void check_change(std::size_t job, change what) const override;
  std::vector<verbs::settable> settables(std::size_t job) const override;
  void overrides_changed(std::size_t job) override;
  std::string doubt_of_changes() override;

  verbs::policy_view policy() const override;
  void check_apply() const override;
  std::vector<std::string> warnings_of(policy::site const& next) const override;
  std::vector<std::string> use_policy(std::string const& text,
                                      runtime::policy_source const& source) override;

  std::optional<nlohmann::json> ask_above(local::peer const& who, verbs::verb which,
                                          nlohmann::json const& request) override;
  nlohmann::json serve_own(verbs::verb which, local::peer const& who,
                           nlohmann::json const& request) override;

 private:
  job& at(std::size_t number) const { return *s_.jobs.all()[number]; }
  verbs::stream_view view_of(job const& j, stream const& of) const;
  static verbs::stream_view view_of(background::keeper::part const& p);
  std::vector<std::string> deciders() const;
  void add_small(job const& j, nlohmann::json& answer) const;

  state& s_;
  std::string doubt_;  // of the last change, told once
};

}  // namespace sluice::node
