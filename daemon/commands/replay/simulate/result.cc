// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/simulate/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "policy/limit.h"
#include "policy/supply.h"

namespace sluice::simulation {

namespace {

using nlohmann::json;

constexpr std::size_t most_intervals = 3600;

/// How many intervals of the trace are one of the result.
std::size_t merged(std::size_t intervals) {
  std::size_t n = 1;
  while ((intervals + n - 1) / n > most_intervals) n *= 2;
  return n;
}

/// Six digits are more than anybody reads, and a third of the file.
json rounded(double x) {
  if (!std::isfinite(x)) return nullptr;
  if (x == 0 || std::abs(x) >= 1e15) return x;
  double const unit = std::pow(10, std::floor(std::log10(std::abs(x))) - 5);
  double const rounded = unit < 1 ? std::round(x / unit) / std::round(1 / unit) : std::round(x);
  return rounded;
}

json row(std::string const& job, std::string const& key, std::string const& name, char const* what,
         char const* unit, json values) {
  json r = {{key, name}, {"what", what}, {"unit", unit}, {"values", std::move(values)}};
  if (!job.empty()) r["job"] = job;
  return r;
}

enum class how { sum, mean, most };

json merge(std::vector<cell> const& cells, std::size_t n, how h,
           std::function<double(cell const&)> const& get) {
  json out = json::array();
  for (std::size_t i = 0; i < cells.size(); i += n) {
    std::size_t const end = std::min(i + n, cells.size());
    double total = 0;
    for (std::size_t k = i; k < end; ++k)
      total = h == how::most ? std::max(total, get(cells[k])) : total + get(cells[k]);
    out.push_back(rounded(h == how::mean ? total / static_cast<double>(end - i) : total));
  }
  return out;
}

/// The sum of one value over every n intervals.
template <class Get>
json merge(std::vector<supply_cell> const& cells, std::size_t n, Get const& get) {
  json out = json::array();
  for (std::size_t i = 0; i < cells.size(); i += n) {
    double total = 0;
    for (std::size_t k = i; k < std::min(i + n, cells.size()); ++k) total += get(cells[k]);
    out.push_back(rounded(total));
  }
  return out;
}

struct column {
  char const* what;
  char const* unit;  // null: that of the supply
  how h;
  double cell::*value;
};
constexpr column columns[] = {
    {"offered", nullptr, how::sum, &cell::offered},  {"done", nullptr, how::sum, &cell::done},
    {"delayed", nullptr, how::sum, &cell::delayed},  {"blocked", "s", how::sum, &cell::blocked_s},
    {"waiting", nullptr, how::mean, &cell::waiting}, {"lag", "s", how::most, &cell::lag_s},
    {"grant", nullptr, how::mean, &cell::grant}};

/// What the job would have used in each interval, had it been alone.
json demand(std::vector<cell> const& cells, std::size_t n, double interval_s) {
  json out = json::array();
  for (std::size_t i = 0; i < cells.size(); i += n) {
    double wanted = i > 0 ? cells[i - 1].backlog : 0;
    std::size_t const end = std::min(i + n, cells.size());
    for (std::size_t k = i; k < end; ++k) wanted += cells[k].offered;
    out.push_back(rounded(wanted / (interval_s * static_cast<double>(end - i))));
  }
  return out;
}

/// As JSON names it: a literal.
char const* unit_of(cluster::supply_row const& s) { return core::row_of(s.unit).name.data(); }

void add_supply_rows(json& rows, scene const& s, past const& p, std::size_t n) {
  std::size_t const width = (p.intervals + n - 1) / n;
  for (std::size_t k = 0; k < s.plan.supplies.size(); ++k) {
    auto const& supply = s.plan.supplies[k];
    bool used = false;
    for (std::size_t j = 0; j < p.jobs.size(); ++j) {
      std::vector<cell> const& cells = p.jobs[j].by_supply[k];
      if (cells.empty()) continue;
      used = true;
      std::string const& job = s.jobs.jobs[j].name;
      auto const put = [&](char const* what, char const* unit, json values) {
        rows.push_back(row(job, "supply", supply.name, what, unit, std::move(values)));
      };
      for (column const& c : columns)
        put(c.what, c.unit != nullptr ? c.unit : unit_of(supply),
            merge(cells, n, c.h, [&](cell const& x) { return x.*c.value; }));
      put("served", unit_of(supply),
          merge(cells, n, how::mean, [&](cell const& x) { return x.done / s.jobs.interval_s; }));
      put("demand", unit_of(supply), demand(cells, n, s.jobs.interval_s));
      auto const& terms = s.plan.classes[s.jobs.jobs[j].row].by_supply[k];
      auto const constant = [&](char const* what, policies::rate milli) {
        put(what, unit_of(supply), std::vector<double>(width, static_cast<double>(milli) / 1000));
      };
      if (terms.limit != policies::unbounded) constant("limit", terms.limit);
      if (terms.reservation > 0) constant("reservation", terms.reservation);
    }
    if (!used) continue;
    rows.push_back(row("", "supply", supply.name, "capacity", unit_of(supply),
                       std::vector<double>(width, p.supplies[k].capacity)));
    auto const& all = p.supplies[k].by_interval;
    rows.push_back(row("", "supply", supply.name, "blocked", "s",
                       merge(all, n, [](supply_cell const& c) { return c.blocked_s; })));
    rows.push_back(row("", "supply", supply.name, "unused", unit_of(supply),
                       merge(all, n, [](supply_cell const& c) { return c.unused; })));
  }
}

/// First come, first served: what was done of an operation follows from what was done in all.
class done_by_op {
 public:
  done_by_op(scene const& s, job_load const& j, std::uint32_t supply) : trace_(s.trace) {
    for (op_column const& o : j.ops)
      if (o.supply == supply) ops_.push_back(o.column);
    if (!ops_.empty() && trace_.counts.empty() == false) left_ = total(0);
  }
  std::vector<std::uint32_t> const& ops() const { return ops_; }

  /// Adds to `out` (one per op) what `amount` consists of.
  void take(double amount, std::vector<double>& out) {
    while (amount > 0 && at_ < trace_.counts.size()) {
      double const all = total(at_);
      double const now = std::min(amount, left_);
      if (all > 0)
        for (std::size_t i = 0; i < ops_.size(); ++i)
          out[i] += now * trace_.counts[at_][ops_[i]] / all;
      amount -= now;
      left_ -= now;
      if (left_ > all * 1e-12) return;
      if (++at_ < trace_.counts.size()) left_ = total(at_);
    }
  }

 private:
  double total(std::size_t interval) const {
    double sum = 0;
    for (std::uint32_t c : ops_) sum += trace_.counts[interval][c];
    return sum;
  }

  trace::trace const& trace_;
  std::vector<std::uint32_t> ops_;
  std::size_t at_ = 0;
  double left_ = 0;
};

void add_op_rows(json& rows, scene const& s, past const& p, std::size_t j, std::uint32_t supply,
                 std::size_t n) {
  job_load const& job = s.jobs.jobs[j];
  done_by_op by_op(s, job, supply);
  std::size_t const ops = by_op.ops().size();
  std::vector<json> offered(ops, json::array()), done(ops, json::array());
  for (std::size_t i = 0; i < p.intervals; i += n) {
    std::vector<double> in(ops), out(ops);
    for (std::size_t k = i; k < std::min(i + n, p.intervals); ++k) {
      if (k < s.trace.counts.size())
        for (std::size_t o = 0; o < ops; ++o) in[o] += s.trace.counts[k][by_op.ops()[o]];
      if (supply != no_supply) by_op.take(p.jobs[j].by_supply[supply][k].done, out);
    }
    for (std::size_t o = 0; o < ops; ++o) {
      offered[o].push_back(rounded(in[o]));
      done[o].push_back(rounded(supply == no_supply ? in[o] : out[o]));
    }
  }
  for (std::size_t o = 0; o < ops; ++o) {
    trace::op_row const& op = trace::op_table[s.trace.columns[by_op.ops()[o]].op];
    char const* const unit = op.counts_bytes() ? "bytes" : "ops";
    std::string const name(op.name);
    rows.push_back(row(job.name, "op", name, "offered", unit, std::move(offered[o])));
    rows.push_back(row(job.name, "op", name, "done", unit, std::move(done[o])));
  }
}

json jobs_json(scene const& s, past const& p) {
  json out = json::array();
  for (std::size_t j = 0; j < p.jobs.size(); ++j) {
    json r = {{"job", s.jobs.jobs[j].name},
              {"started_s", p.jobs[j].started_s},
              {"finished", p.jobs[j].finished}};
    if (!s.jobs.jobs[j].qos_class.empty()) r["class"] = s.jobs.jobs[j].qos_class;
    if (p.jobs[j].finished) r["ended_s"] = p.jobs[j].ended_s;
    out.push_back(std::move(r));
  }
  return out;
}

/// `file:line:column` of something in the policy.
json rule(std::string const& channel, std::string const& text, std::string const& origin,
          policy::rate const& r) {
  json out = {{"channel", channel},
              {"text", text},
              {"rate_per_s", policy::per_second(r.unit, r.rate_q40)},
              {"unit", core::row_of(r.unit).name}};
  std::size_t const colon = origin.find(':');
  out["file"] = origin.substr(0, colon);
  if (colon != std::string::npos)
    if (int const line = std::atoi(origin.c_str() + colon + 1); line > 0) out["line"] = line;
  return out;
}

json rules_json(scene const& s) {
  json out = json::array();
  for (auto const& supply : policy::supplies(s.site)) {
    if (supply.target != s.target) continue;
    auto const& capacity = s.site.capacity.at(supply.target).at(supply.resource);
    out.push_back(rule(supply.name(),
                       fmt::format("capacity of {}: {}", supply.name(),
                                   policy::rate_text(capacity.unit, capacity.rate_q40)),
                       s.policy_file, capacity));
    for (auto const& c : s.site.classes)
      if (auto const share = policy::share_of(s.site, c.name, supply); share && share->limit)
        out.push_back(
            rule(supply.name(),
                 fmt::format("limit of class {}: {}", c.name,
                             policy::rate_text(share->limit->unit, share->limit->rate_q40)),
                 share->origin, *share->limit));
  }
  return out;
}

std::string amount_text(double x) {
  static constexpr char const* suffix[] = {"", "k", "M", "G", "T", "P"};
  unsigned i = 0;
  for (; x >= 1000 && i + 1 < std::size(suffix); ++i) x /= 1000;
  return fmt::format("{:.4g}{}", x, suffix[i]);
}

std::string time_text(double s) {
  if (s < 1) return fmt::format("{:.3g} s", s);
  if (s < 7200) return fmt::format("{:.5g} s", s);
  if (s < 2 * 86400) return fmt::format("{:.4g} h", s / 3600);
  return fmt::format("{:.4g} d", s / 86400);
}

std::string job_line(scene const& s, past const& p, std::size_t j, std::size_t k) {
  cell sum;
  double longest_s = 0, most_waiting = 0;
  for (cell const& c : p.jobs[j].by_supply[k]) {
    sum.offered += c.offered;
    sum.done += c.done;
    sum.delayed += c.delayed;
    sum.blocked_s += c.blocked_s;
    longest_s = std::max(longest_s, c.lag_s);
    most_waiting = std::max(most_waiting, c.backlog);
  }
  job_load const& job = s.jobs.jobs[j];
  double const last_s = static_cast<double>(job.end) * s.jobs.interval_s;
  return fmt::format("  {:<14.14} {:<10.10} {:<17} {:>8} {:>8} {:>8} {:>9} {:>9} {:>8}  {}\n",
                     job.name, job.qos_class.empty() ? "-" : job.qos_class, s.plan.supplies[k].name,
                     amount_text(sum.offered), amount_text(sum.done), amount_text(sum.delayed),
                     time_text(sum.blocked_s), time_text(longest_s), amount_text(most_waiting),
                     p.jobs[j].finished ? "+" + time_text(std::max(0.0, p.jobs[j].ended_s - last_s))
                                        : "not finished");
}

}  // namespace

json result_of(scene const& s, past const& p) {
  std::size_t const n = merged(p.intervals);
  json rows = json::array();
  add_supply_rows(rows, s, p, n);
  for (std::size_t j = 0; j < p.jobs.size(); ++j) {
    for (std::uint32_t k = 0; k < s.plan.supplies.size(); ++k)
      if (!p.jobs[j].by_supply[k].empty()) add_op_rows(rows, s, p, j, k, n);
    add_op_rows(rows, s, p, j, no_supply, n);
  }
  json facts = json::array();
  for (auto const& [key, value] : s.trace.facts) facts.push_back({key, value});
  facts.push_back({"trace", s.trace_file});
  facts.push_back({"policy", s.policy_file});
  facts.push_back({"algorithm", s.plan.algorithm});
  facts.push_back({"what this is", "a simulation: no I/O was done"});
  if (!s.site.channels.empty())
    facts.push_back({"left out", "channels of the policy: they are not simulated"});
  json start = nullptr;
  if (s.trace.start_unix_s > 0) start = s.trace.start_unix_s;
  return {{"version", 1},
          {"kind", "simulation"},
          {"elapsed_s", static_cast<double>(p.intervals) * s.jobs.interval_s},
          {"timeline",
           {{"start_unix_s", start},
            {"interval_s", s.jobs.interval_s * static_cast<double>(n)},
            {"rows", std::move(rows)}}},
          {"jobs", jobs_json(s, p)},
          {"rules", rules_json(s)},
          {"facts", std::move(facts)}};
}

std::string table_of(scene const& s, past const& p) {
  double const all_s = static_cast<double>(p.intervals) * s.jobs.interval_s;
  std::string out = fmt::format(
      "{} under {} ({}): {} of virtual time, {} decisions, computed in {:.2f} s\n", s.trace_file,
      s.policy_file, s.plan.algorithm, time_text(all_s), p.decisions, s.took_s);
  out += fmt::format("  {:<14} {:<10} {:<17} {:>8} {:>8} {:>8} {:>9} {:>9} {:>8}  {}\n", "job",
                     "class", "supply", "offered", "done", "delayed", "waiting", "latest", "queue",
                     "ended");
  for (std::size_t j = 0; j < p.jobs.size(); ++j)
    for (std::size_t k = 0; k < s.plan.supplies.size(); ++k)
      if (!p.jobs[j].by_supply[k].empty()) out += job_line(s, p, j, k);
  for (std::size_t k = 0; k < s.plan.supplies.size(); ++k) {
    supply_past const& u = p.supplies[k];
    if (u.done == 0) continue;
    supply_cell all;
    for (supply_cell const& c : u.by_interval) {
      all.blocked_s += c.blocked_s;
      all.unused += c.unused;
    }
    out += fmt::format("  {}: {:.1f} % of the capacity used; full for {}; something waited for {}",
                       s.plan.supplies[k].name, 100 * u.done / (u.capacity * all_s),
                       time_text(u.busy_s), time_text(all.blocked_s));
    if (all.blocked_s > 0)
      out += fmt::format(", {:.2f} % of the capacity of that time stayed unused",
                         100 * all.unused / (u.capacity * all.blocked_s));
    if (all.blocked_s > 1.01 * u.queued_s + 0.1)
      out += fmt::format("; below the limits of classes {} waited", time_text(u.queued_s));
    if (u.over_s > 0) out += fmt::format("; above it for {}", time_text(u.over_s));
    out += "\n";
  }
  return out;
}

}  // namespace sluice::simulation
