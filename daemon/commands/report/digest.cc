// SPDX-License-Identifier: Apache-2.0
#include "commands/report/digest.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "commands/report/shape.h"

namespace sluice::report {

namespace {

/// Rows by a key, in the order in which the keys came.
template <typename Row>
class collection {
 public:
  explicit collection(std::vector<Row>& rows) : rows_(rows) {}
  template <typename Make>
  Row& at(std::string const& key, Make const& make) {
    auto const [at, is_new] = index_.try_emplace(key, rows_.size());
    if (is_new) make(rows_.emplace_back());
    return rows_[at->second];
  }

 private:
  std::vector<Row>& rows_;
  std::map<std::string, std::size_t> index_;
};

std::string key_of(std::string const& a, std::string const& b) { return a + '\n' + b; }

bool is_of_gate(series const& row) {
  return row.about == subject::supply || row.about == subject::channel;
}

/// No more than the interval in each: what all threads waited, as time in which something did.
std::vector<double> at_most(std::vector<double> values, double most) {
  for (double& v : values)
    if (v > most) v = most;
  return values;
}

void raise(std::vector<double>& most, std::vector<double> const& values) {
  if (most.size() < values.size()) most.resize(values.size(), unknown);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isnan(values[i]) && !(most[i] >= values[i])) most[i] = values[i];
}

class builder {
 public:
  explicit builder(result const& r)
      : r_(r), ops_(out_.ops), uses_(out_.uses), gates_(out_.gates), jobs_(out_.jobs) {}

  digest build() {
    double const recorded = static_cast<double>(r_.time.intervals) * r_.time.interval_s;
    out_.duration_s = std::isnan(r_.elapsed_s) ? recorded : r_.elapsed_s;
    for (auto const& j : r_.jobs) take(j);
    for (auto const& row : r_.time.rows) take(row);
    for (auto const& c : r_.channels) take(c);
    take_calls();
    for (auto const& rule : r_.rules) take(rule);
    finish_uses();
    finish_jobs();
    finish_gates();
    sort();
    out_.is_known = is_known();
    return std::move(out_);
  }

 private:
  job_use& job(std::string const& name) {
    return jobs_.at(name, [&](job_use& j) { j.job = name; });
  }
  gate& gate_of(std::string const& name, std::string const& unit) {
    gate& g = gates_.at(name, [&](gate& made) { made.name = name; });
    if (g.unit.empty()) g.unit = unit;
    return g;
  }
  op_use& op(std::string const& name, std::string const& unit) {
    return ops_.at(key_of(name, unit), [&](op_use& o) { o.op = name, o.unit = unit; });
  }

  void take(job_row const& row) {
    job_use& j = job(row.job);
    j.qos_class = row.qos_class;
    j.user = row.user;
    j.started_s = row.started_s;
    j.ended_s = row.ended_s;
    j.finished = row.finished;
  }

  void take(series const& row) {
    if (is_of_gate(row))
      take_gate(row);
    else if (row.about == subject::op)
      take_op(row);
    else if (row.what == "lag")
      take_lag(row);
    else if (row.what == "blocked")
      job(row.job).blocked_s += sum_of(row.values);
  }

  void take_lag(series const& row) {
    job(row.job).lag_s = std::max(job(row.job).lag_s, most_of(row.values));
  }

  void take_op(series const& row) {
    double const sum = sum_of(row.values);
    bool const bytes = row.unit == "bytes";
    if (row.what == "done") {
      if (sum == 0) return;
      op_use& o = op(row.name, bytes ? "bytes" : "ops");
      o.total += sum;
      add_to(o.rate, rates_of(row, r_.time));
      (bytes ? job(row.job).bytes : job(row.job).done) += sum;
    } else if (row.what == "offered" && !bytes) {
      job(row.job).offered += sum;
    } else if (row.what == "failed") {
      job(row.job).failed += sum;
    } else if (row.what == "lag") {
      take_lag(row);
    } else if (row.what == "took") {
      took_.push_back(&row);
    } else if (row.what == "waited" || row.what == "delayed") {
      waits_.push_back(&row);
    }
  }

  void take_gate(series const& row) {
    if (row.what == "lag") return take_lag(row);
    gate& g = gate_of(row.name, row.unit == "s" ? "" : row.unit);
    auto const rates = rates_of(row, r_.time);
    if (row.what == "capacity") return add_to(g.capacity, rates);
    if (row.what == "unused") return add_to(g.unused, row.values);
    if (row.what == "blocked" && row.job.empty()) {
      g.says_blocked = true;
      return add_to(g.blocked, at_most(rates, 1));
    }
    gate_use& u = uses_.at(key_of(row.job, row.name), [&](gate_use& made) {
      made.job = row.job;
      made.gate = row.name;
    });
    if (row.what == "served") add_to(u.rate, rates);
    if (row.what == "done") add_to(done_[key_of(row.job, row.name)], rates);
    if (row.what == "demand") add_to(u.demand, rates);
    if (row.what == "grant") add_to(u.grant, rates);
    if (row.what == "limit") add_to(u.limit, rates);
    if (row.what == "waiting") add_to(u.waiting, rates);
    if (row.what == "delayed") g.delayed += sum_of(row.values);
    if (row.what == "beyond") g.beyond += sum_of(row.values);
    if (row.what == "blocked") u.blocked = at_most(rates, 1);
    if (row.what == "paused") u.paused = at_most(rates, 1);
    if (row.what == "waited") {
      u.waited_s = sum_of(row.values);
      add_to(estimates_[key_of(row.job, row.name)], at_most(rates, 1));
    }
  }

  void take(channel_sum const& c) {
    gate& g = gate_of(c.name, c.unit);
    g.unit = c.unit;
    g.served = c.amount;
    g.calls = c.calls;
    g.delayed = c.delayed;
    g.waited_s = c.waited_s;
    g.p50_s = c.wait_p50_s;
    g.p99_s = c.wait_p99_s;
    g.most_s = c.wait_max_s;
    g.is_only_counted = c.is_only_counted;
    g.would_delay = c.would_delay;
    g.would_wait_s = c.would_wait_s;
    has_sums_ = true;
  }

  /// Rows of waiting beside those of the same op, then what only the sums of calls know.
  void take_calls() {
    for (series const* row : waits_) {
      op_use& o = op_named(row->name);
      if (row->what == "delayed") {
        o.delayed += sum_of(row->values);
        continue;
      }
      o.waited_s += sum_of(row->values);
      add_to(o.waited, rates_of(*row, r_.time));
      job(row->job).waited_s += sum_of(row->values);
    }
    for (series const* row : took_) {
      op_use& o = op_named(row->name);
      o.took_s += sum_of(row->values);
      add_to(o.took, rates_of(*row, r_.time));
    }
    bool const only_sums = out_.ops.empty();
    bool const no_waits = waits_.empty();
    for (call_sum const& c : r_.calls) {
      if (only_sums || is_new_op(c.op)) op(c.op, "ops").total += c.calls;
      if (!no_waits) continue;
      op_use& o = op_named(c.op);
      o.waited_s += c.waited_s;
      o.delayed += c.delayed;
      job(r_.job).waited_s += c.waited_s;
    }
    if (only_sums)
      for (call_sum const& c : r_.calls) job(r_.job).done += c.calls, job(r_.job).bytes += c.bytes;
  }

  bool is_new_op(std::string const& name) {
    return std::none_of(out_.ops.begin(), out_.ops.end(), [&](op_use const& o) {
      return o.op == name && (!o.rate.empty() || !o.waited.empty());
    });
  }
  op_use& op_named(std::string const& name) {
    for (op_use& o : out_.ops)
      if (o.op == name) return o;
    return op(name, "ops");
  }

  void take(rule_row const& rule) {
    gate& g = gate_of(rule.channel, rule.unit);
    if (!g.rule.empty()) return;
    g.rule = rule.text;
    if (!rule.file.empty()) {
      g.rule += (g.rule.empty() ? "" : ", ") + rule.file;
      if (rule.line > 0) g.rule += " line " + std::to_string(static_cast<long>(rule.line));
    }
  }

  void finish_uses() {
    for (gate_use& u : out_.uses) {
      gate& g = gate_of(u.gate, "");
      if (u.blocked.empty()) u.blocked = estimates_[key_of(u.job, u.gate)];
      u.unit = g.unit.empty() ? "ops" : g.unit;
      if (u.rate.empty()) u.rate = done_[key_of(u.job, u.gate)];
      u.served = sum_of(u.rate) * r_.time.interval_s;
      if (std::isnan(u.blocked_s) && !u.blocked.empty())
        u.blocked_s = sum_of(u.blocked) * r_.time.interval_s;
      if (!has_sums_) g.served += u.served;
      if (!has_sums_ && !std::isnan(u.waited_s)) g.waited_s += u.waited_s;
      if (!g.says_blocked) raise(g.blocked, u.blocked);
      if (u.job == other_jobs) continue;
      job_use& j = job(u.job);
      if (!std::isnan(u.blocked_s)) j.blocked_s = std::max(j.blocked_s, u.blocked_s);
      raise(j.paused, u.paused);
      if (waits_.empty() && r_.calls.empty() && !std::isnan(u.waited_s)) j.waited_s += u.waited_s;
    }
  }

  void finish_jobs() {
    for (job_use& j : out_.jobs) j.paused_s = sum_of(j.paused) * r_.time.interval_s;
  }

  void finish_gates() {
    for (gate& g : out_.gates) {
      if (g.unit.empty()) g.unit = "ops";
      g.blocked_s = sum_of(g.blocked) * r_.time.interval_s;
      if (g.capacity.empty()) continue;
      g.capacity_amount = sum_of(g.capacity) * r_.time.interval_s;
      std::vector<double> all;
      for (gate_use const& u : out_.uses)
        if (u.gate == g.name) add_to(all, u.rate);
      double idle = 0;
      for (std::size_t i = 0; i < std::min(g.capacity.size(), g.blocked.size()); ++i) {
        double const could = g.capacity[i] * g.blocked[i];  // per second
        if (std::isnan(could)) continue;
        g.waited_capacity += could * r_.time.interval_s;
        if (i < all.size() && could > all[i]) idle += (could - all[i]) * r_.time.interval_s;
      }
      g.idle_amount = g.unused.empty() ? idle : sum_of(g.unused);
    }
  }

  bool is_known() const {
    if (!r_.calls.empty() || !r_.channels.empty()) return true;
    for (series const& row : r_.time.rows)
      for (double v : row.values)
        if (!std::isnan(v) && row.what != "limit" && row.what != "capacity") return true;
    return r_.kind != "history" && r_.kind != "replay";
  }

  void sort() {
    auto const by = [](auto& rows, auto const& less) {
      std::stable_sort(rows.begin(), rows.end(), less);
    };
    by(out_.ops, [](op_use const& a, op_use const& b) {
      return a.unit != b.unit ? a.unit > b.unit : a.total > b.total;
    });
    by(out_.uses, [](gate_use const& a, gate_use const& b) {
      return a.gate != b.gate ? a.gate < b.gate : a.served > b.served;
    });
    by(out_.gates, [](gate const& a, gate const& b) {
      return std::max(a.waited_s, a.blocked_s) > std::max(b.waited_s, b.blocked_s);
    });
    by(out_.jobs, [](job_use const& a, job_use const& b) { return a.done > b.done; });
  }

  result const& r_;
  digest out_;
  collection<op_use> ops_;
  collection<gate_use> uses_;
  collection<gate> gates_;
  collection<job_use> jobs_;
  std::vector<series const*> waits_, took_;
  // Where only the waiting of all threads is known: at most the interval of it.
  std::map<std::string, std::vector<double>> estimates_;
  std::map<std::string, std::vector<double>> done_;  // at gates, where nobody says what was served
  bool has_sums_ = false;
};

}  // namespace

digest digest_of(result const& r) { return builder(r).build(); }

std::string gate_words(std::string const& gate) {
  auto const at = gate.find('@');
  if (at == gate.npos) return "limit " + gate;
  return gate.substr(0, at) + " tokens of " + gate.substr(at + 1);
}

}  // namespace sluice::report
