// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/duration.h"

namespace sluice::replay {

namespace {

using json = nlohmann::json;

std::string job_name(replay_result const& o, unsigned stream) {
  return o.made.jobs[o.made.streams[stream].job];
}

std::string_view op_name(replay_result const& o, unsigned stream) {
  return trace::op_table[o.made.streams[stream].op].name;
}

bool is_bytes(replay_result const& o, unsigned stream) {
  return trace::op_table[o.made.streams[stream].op].counts_bytes();
}

/// The schedule of each thread again, without sending.
void count_again(replay_result const& o, unsigned stream, double end_s, std::vector<double>& sums) {
  struct stream const& of = o.made.streams[stream];
  auto const& s = o.asked.sending;
  for (unsigned i = 0; i < of.threads; ++i)
    for (schedule again(of.wanted, {i, of.threads}, {s.kind, of.phase, mix_seed(s.seed, stream)});
         again.next_s() < end_s; again.advance())
      if (again.next_s() >= 0)
        ++sums[std::min(sums.size() - 1,
                        static_cast<std::size_t>(again.next_s() / o.times.interval_s()))];
}

/// A row of the timeline.
json row(replay_result const& o, unsigned stream, char const* what, char const* unit, json values) {
  return {{"job", job_name(o, stream)},
          {"op", op_name(o, stream)},
          {"what", what},
          {"unit", unit},
          {"values", std::move(values)}};
}

/// Whole numbers as such: shorter, and what they are.
json number(double x) {
  if (std::floor(x) == x && std::abs(x) < 9e15) return static_cast<std::int64_t>(x);
  return x;
}

json numbers(std::vector<double> const& values) {
  json out = json::array();
  for (double x : values) out.push_back(number(x));
  return out;
}

void add_rows(replay_result const& o, unsigned stream, json& rows) {
  char const* const unit = is_bytes(o, stream) ? "bytes" : "ops";
  double const size = o.made.streams[stream].unit;
  auto const& seen = o.times.of(stream);
  rows.push_back(row(o, stream, "offered", unit, numbers(offered(o, stream))));
  struct amount {
    char const* what;
    std::uint64_t interval_sum::*field;
  };
  for (amount const& a :
       {amount{"submitted", &interval_sum::submitted}, amount{"done", &interval_sum::done},
        amount{"failed", &interval_sum::failed}, amount{"delayed", &interval_sum::delayed}}) {
    json values = json::array();
    for (interval_sum const& i : seen)
      values.push_back(number(static_cast<double>(i.*a.field) * size));
    rows.push_back(row(o, stream, a.what, unit, std::move(values)));
  }
  json lag = json::array(), p50 = json::array(), p99 = json::array();
  for (interval_sum const& i : seen) {
    lag.push_back(number(static_cast<double>(i.lag_ns_max) / 1e9));
    core::histogram_counts const took = i.histogram();
    bool const any = took.total() != 0;
    p50.push_back(any ? json(took.percentile(0.5)) : json());
    p99.push_back(any ? json(took.percentile(0.99)) : json());
  }
  rows.push_back(row(o, stream, "lag", "s", std::move(lag)));
  rows.push_back(row(o, stream, "p50", "ns", std::move(p50)));
  rows.push_back(row(o, stream, "p99", "ns", std::move(p99)));
}

/// The last error of any thread that sent this; 0: none.
int error_of(replay_result const& o, unsigned stream) {
  for (unsigned w = 0; w < o.made.workers.size(); ++w) {
    auto const& shares = o.made.workers[w].shares;
    for (unsigned i = 0; i < shares.size(); ++i)
      if (shares[i].stream == stream)
        if (int const e = o.book.worker(w).last_error[i].load(); e != 0) return e;
  }
  return 0;
}

double sum_offered(replay_result const& o, unsigned stream) {
  auto const values = offered(o, stream);
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Of what was sent in the replay proper.
struct summary {
  double offered, submitted, done, failed, delayed, lag_s_mean, lag_s_max;
  std::uint64_t p50_ns, p99_ns;
};

summary summary_of(replay_result const& o, unsigned stream) {
  stream_total const& t = o.times.total(stream);
  double const size = o.made.streams[stream].unit;
  auto const sent = static_cast<double>(std::max<std::uint64_t>(1, t.submitted));
  return {sum_offered(o, stream),
          static_cast<double>(t.submitted) * size,
          static_cast<double>(t.done) * size,
          static_cast<double>(t.failed) * size,
          static_cast<double>(t.delayed) * size,
          t.lag_ns_sum / sent / 1e9,
          static_cast<double>(t.lag_ns_max) / 1e9,
          t.took.percentile(0.5),
          t.took.percentile(0.99)};
}

json totals_json(replay_result const& o) {
  json rows = json::array();
  for (unsigned i = 0; i < o.made.streams.size(); ++i) {
    summary const s = summary_of(o, i);
    json row = {{"job", job_name(o, i)},
                {"op", op_name(o, i)},
                {"unit", is_bytes(o, i) ? "bytes" : "ops"},
                {"offered", number(s.offered)},
                {"submitted", number(s.submitted)},
                {"done", number(s.done)},
                {"failed", number(s.failed)},
                {"delayed", number(s.delayed)},
                {"lag_mean_s", s.lag_s_mean},
                {"lag_max_s", s.lag_s_max},
                {"p50_ns", s.p50_ns},
                {"p99_ns", s.p99_ns}};
    if (int const e = error_of(o, i); e != 0) row["last_error"] = std::strerror(e);
    rows.push_back(std::move(row));
  }
  return rows;
}

struct job_end {
  double started_s = 0, ended_s = 0;
  bool finished = true;
  std::uint64_t helpers = 0;
};

job_end end_of(replay_result const& o, unsigned job) {
  job_end end;
  std::int64_t first = INT64_MAX, last = 0;
  for (unsigned w = 0; w < o.made.workers.size(); ++w) {
    if (o.made.workers[w].job != job) continue;
    worker_page const& page = o.book.worker(w);
    first = std::min(first, page.first_ns.load());
    last = std::max(last, page.last_ns.load());
    end.helpers += page.helpers.load();
    if (page.next_ns.load() != INT64_MAX || !page.ended.load()) end.finished = false;
  }
  end.started_s = first == INT64_MAX ? 0 : std::max(0.0, static_cast<double>(first) / 1e9);
  double const last_s = end.finished ? static_cast<double>(last) / 1e9 : o.elapsed_s;
  end.ended_s = std::max(end.started_s, last_s);
  return end;
}

json jobs_json(replay_result const& o) {
  json rows = json::array();
  for (unsigned job = 0; job < o.made.jobs.size(); ++job) {
    job_end const end = end_of(o, job);
    json row = {{"job", o.made.jobs[job]},
                {"started_s", end.started_s},
                {"ended_s", end.ended_s},
                {"finished", end.finished},
                {"helper_calls", end.helpers}};
    if (auto const& c = o.asked.class_of(o.made.jobs[job]); !c.empty()) row["class"] = c;
    rows.push_back(std::move(row));
  }
  return rows;
}

json facts_json(replay_result const& o) {
  json facts = json::array();
  for (auto const& [key, value] : o.facts) facts.push_back({key, value});
  auto const& l = o.asked.load;
  facts.push_back({"replayed", o.asked.trace});
  facts.push_back({"time scale", fmt::format("{}", l.time_scale)});
  facts.push_back({"rate scale", fmt::format("{}", l.rate_scale)});
  if (l.loops != 1) facts.push_back({"loops", fmt::format("{}", l.loops)});
  facts.push_back({"threads", fmt::format("{} in {} processes of {} jobs", o.made.workers.size(),
                                          o.made.shape().processes, o.made.jobs.size())});
  facts.push_back({"loop", o.asked.sending.closed_loop ? "closed" : "open"});
  facts.push_back({"late after", duration_text(o.asked.sending.late_ns)});
  facts.push_back({"seed", fmt::format("{}", o.asked.sending.seed)});
  return facts;
}

std::string count_text(double x, bool bytes) {
  if (!bytes) return fmt::format("{:.0f}", x);
  char const* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  unsigned i = 0;
  for (; x >= 1024 && i + 1 < std::size(units); ++i) x /= 1024;
  return fmt::format("{:.4g} {}", x, units[i]);
}

std::string time_text(double s) {
  if (s <= 0) return "0";
  if (s < 1e-6) return fmt::format("{:.0f} ns", s * 1e9);
  if (s < 1e-3) return fmt::format("{:.3g} us", s * 1e6);
  if (s < 1) return fmt::format("{:.3g} ms", s * 1e3);
  return fmt::format("{:.2f} s", s);
}

}  // namespace

std::vector<double> offered(replay_result const& o, unsigned stream) {
  struct stream const& of = o.made.streams[stream];
  double const width_s = o.times.interval_s();
  if (o.asked.sending.closed_loop) {
    std::vector<double> sent;
    for (auto const& i : o.times.of(stream))
      sent.push_back(static_cast<double>(i.submitted) * of.unit);
    return sent;
  }
  double const end_s = o.is_stopped ? std::min(o.made.length_s, o.elapsed_s) : o.made.length_s;
  std::vector<double> sums(static_cast<std::size_t>(std::max(1.0, std::ceil(end_s / width_s))));
  if (o.asked.sending.kind == arrivals::poisson) {
    count_again(o, stream, end_s, sums);
  } else {
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] =
          static_cast<double>(count_even(of.wanted, of.phase, static_cast<double>(i) * width_s,
                                         std::min(end_s, static_cast<double>(i + 1) * width_s)));
  }
  for (double& x : sums) x *= of.unit;
  return sums;
}

json result_json(replay_result const& o) {
  json result = {{"version", 1},
                 {"kind", "replay"},
                 {"command", o.asked.argv},
                 {"elapsed_s", o.elapsed_s},
                 {"finished", !o.is_stopped},
                 {"processes", {{"attached", o.made.shape().processes}, {"running", 0}}}};
  result["jobs"] = jobs_json(o);
  result["totals"] = totals_json(o);
  json rows = json::array();
  for (unsigned i = 0; i < o.made.streams.size(); ++i) add_rows(o, i, rows);
  result["timeline"] = {{"start_unix_s", o.start_unix_s},
                        {"interval_s", o.times.interval_s()},
                        {"rows", std::move(rows)}};
  result["facts"] = facts_json(o);
  return result;
}

std::string result_table(replay_result const& o) {
  std::string out =
      fmt::format("{:<16} {:<9} {:>10} {:>10} {:>10} {:>7} {:>8} {:>9} {:>9} {:>9}\n", "job", "op",
                  "offered", "sent", "done", "failed", "delayed", "lag max", "p50", "p99");
  std::string notes;
  for (unsigned i = 0; i < o.made.streams.size(); ++i) {
    summary const s = summary_of(o, i);
    bool const bytes = is_bytes(o, i);
    out += fmt::format("{:<16} {:<9} {:>10} {:>10} {:>10} {:>7} {:>8} {:>9} {:>9} {:>9}\n",
                       job_name(o, i), op_name(o, i), count_text(s.offered, bytes),
                       count_text(s.submitted, bytes), count_text(s.done, bytes),
                       count_text(s.failed, bytes), count_text(s.delayed, bytes),
                       time_text(s.lag_s_max), time_text(static_cast<double>(s.p50_ns) / 1e9),
                       time_text(static_cast<double>(s.p99_ns) / 1e9));
    if (int const e = error_of(o, i); e != 0)
      notes += fmt::format("{} {}: {} failed; the last one: {}\n", job_name(o, i), op_name(o, i),
                           count_text(s.failed, bytes), std::strerror(e));
  }
  for (unsigned job = 0; job < o.made.jobs.size(); ++job) {
    job_end const end = end_of(o, job);
    out += fmt::format("{}: {} {:.2f} s of a load of {:.2f} s", o.made.jobs[job],
                       end.finished ? "all sent after" : "stopped after", end.ended_s,
                       o.made.length_s);
    if (end.helpers != 0)
      out += fmt::format("; {} calls of the replay's own were needed", end.helpers);
    out += "\n";
  }
  return out + notes;
}

}  // namespace sluice::replay
