// SPDX-License-Identifier: Apache-2.0
#include "node/backgrounds.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "node/enforcer.h"
#include "node/follow_classes.h"

namespace sluice::node {

namespace {

using runtime::metric;

/// What the job may have of the supply now.
rate share_of_job(job const& j, site_state const& site, std::string const& supply) {
  stream const* const s = stream_on(j, site, supply);
  return s != nullptr ? s->share : policies::unbounded;
}

std::string word_of(policies::tail_sign s) { return std::string(policies::name_of(s)); }

}  // namespace

void backgrounds::use() {
  for (auto const& [key, e] : of_job_) keep_sums(e);
  of_job_.clear();
  due_ns_ = never_ns;
  is_any_ = std::any_of(
      site_.site().classes.begin(), site_.site().classes.end(),
      [&](auto const& c) { return !policy::backgrounds_of(site_.site(), c.name).empty(); });
}

backgrounds::entry backgrounds::bind(job const& j) const {
  entry e{class_in_force(j, overrides_.find(j.key)), {}};
  if (!site_.site().control.enforce) return e;
  for (auto const& terms : policy::backgrounds_of(site_.site(), e.qos_class))
    if (auto k = background::keeper::of(j.memory(), terms)) e.keepers.push_back(*std::move(k));
  return e;
}

void backgrounds::keep_sums(entry const& e) {
  if (e.keepers.empty()) return;
  seconds& sums = past_[e.qos_class];
  for (auto const& k : e.keepers)
    for (unsigned i = 0; i < sums.size(); ++i)
      sums[i] += static_cast<double>(k.spent_ns()[i]) / 1e9;
}

void backgrounds::look(job& j, entry& e, std::int64_t now_ns) {
  for (auto& k : e.keepers) {
    k.look(j.memory(), share_of_job(j, site_, k.terms().supply), now_ns, j.map.writer());
    if (k.is_busy(now_ns)) due_ns_ = std::min(due_ns_, k.due_ns());
  }
}

void backgrounds::look(std::int64_t now_ns) {
  if (!is_any_) return;
  // The limits of what is not kept any more end by themselves.
  follow_classes(
      of_job_, jobs_, overrides_, [&](job const& j) { return bind(j); },
      [&](entry const& e) { keep_sums(e); });
  due_ns_ = never_ns;
  for (auto const& j : jobs_.all()) {
    auto const at = of_job_.find(j->key);
    if (at == of_job_.end() || j->is_broken()) continue;
    // Limits that nobody renews end within a second: of a job whose owner wants it so.
    time_.spend(j->owner, [&] { look(*j, at->second, now_ns); });
  }
}

nlohmann::json backgrounds::rows(job const& j) const {
  auto const at = of_job_.find(j.key);
  if (at == of_job_.end() || at->second.keepers.empty()) return nullptr;
  nlohmann::json out = nlohmann::json::array();
  for (auto const& k : at->second.keepers) out.push_back(nlohmann::json(k.row()));
  return out;
}

std::vector<background::keeper::part> backgrounds::parts(job const& j) const {
  std::vector<background::keeper::part> out;
  auto const at = of_job_.find(j.key);
  if (at == of_job_.end()) return out;
  for (auto const& k : at->second.keepers)
    for (auto const& p : k.parts())
      if (!p.channel.empty()) out.push_back(p);
  return out;
}

/// A gauge of a limit is there while there is one.
void backgrounds::publish(runtime::metric_table& m) {
  std::map<std::string, seconds> sums = past_;
  std::map<std::array<std::string, 3>, double> limits;  // class, role, target
  for (auto const& [key, e] : of_job_)
    for (auto const& k : e.keepers) {
      seconds& of_class = sums.try_emplace(e.qos_class, seconds{}).first->second;
      for (unsigned i = 0; i < of_class.size(); ++i)
        of_class[i] += static_cast<double>(k.spent_ns()[i]) / 1e9;
      for (auto const& p : k.parts()) {
        if (p.channel.empty() || p.limit == policies::unbounded) continue;
        auto const colon = p.channel.find(':'), target = p.channel.find('@');
        limits[{e.qos_class, p.channel.substr(colon + 1, target - colon - 1),
                p.channel.substr(target + 1)}] += tokens(p.limit);
      }
    }
  for (auto const& [qos_class, of_class] : sums)
    for (unsigned i = 0; i < of_class.size(); ++i)
      m.set(metric::background_seconds_total,
            {qos_class, word_of(static_cast<policies::tail_sign>(i))}, of_class[i]);
  for (auto const& labels : shown_)
    if (!limits.contains(labels))
      m.remove(metric::background_limit_bytes_per_second, {labels[0], labels[1], labels[2]});
  shown_.clear();
  for (auto const& [labels, value] : limits) {
    m.set(metric::background_limit_bytes_per_second, {labels[0], labels[1], labels[2]}, value);
    shown_.insert(labels);
  }
}

}  // namespace sluice::node
