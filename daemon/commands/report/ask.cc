// SPDX-License-Identifier: Apache-2.0
#include "commands/report/ask.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "commands/cli/daemon.h"
#include "commands/report/words.h"

namespace sluice::report {

namespace {

using namespace std::string_view_literals;
using nlohmann::json;

constexpr double fine_s = 600;        // so long a daemon keeps single seconds
constexpr std::size_t most_told = 3;  // limits that a job had before
/// What a daemon keeps, and what a result calls it; `per_second`: there it is a rate.
struct kept_row {
  char const *key, *what, *unit;  // unit null: that of the supply
  bool per_second;
};
constexpr kept_row kept[] = {
    {"demand", "demand", nullptr, false},       {"grant", "grant", nullptr, false},
    {"served_sum", "served", nullptr, true},    {"waiting", "waiting", nullptr, false},
    {"delayed_sum", "delayed", nullptr, false}, {"waited_s", "waited", "s", false},
    {"blocked_s", "blocked", "s", false},       {"paused_s", "paused", "s", false},
    {"beyond_sum", "beyond", nullptr, false},   {"limit", "limit", nullptr, false}};

std::string text_in(json const& row, char const* key) {
  auto const at = row.find(key);
  return at != row.end() && at->is_string() ? at->get<std::string>() : std::string();
}

double number_in(json const& row, char const* key, double otherwise) {
  auto const at = row.find(key);
  return at != row.end() && at->is_number() ? at->get<double>() : otherwise;
}

bool is_any_above_zero(json const& values) {
  return std::any_of(values.begin(), values.end(),
                     [](json const& v) { return v.is_number() && v.get<double>() > 0; });
}

/// Values as they lie on a common axis that ends at `end` and has `count` intervals.
json aligned(json const& values, double row_end, double end, double step, std::size_t count) {
  json out = json::array();
  auto const late = static_cast<long>(std::lround((end - row_end) / step));
  long const have = static_cast<long>(values.size());
  for (long i = 0; i < static_cast<long>(count); ++i) {
    long const at = have - static_cast<long>(count) + i + late;
    bool const known = at >= 0 && at < have && values[std::size_t(at)].is_number();
    out.push_back(known ? values[std::size_t(at)] : json(nullptr));
  }
  return out;
}

using owner_sets = std::map<std::string, std::set<std::string>>;  // users, by name of a job

owner_sets owners_in(json const& rows, json const& ops) {
  owner_sets owners;
  for (json const* const all : {&rows, &ops})
    for (json const& row : *all) {
      std::string const job = text_in(row, "job"), user = text_in(row, "user");
      if (!job.empty() && !user.empty()) owners[job].insert(user);
    }
  return owners;
}

bool is_of_user(json const& row, uid_t uid) {
  auto const at = row.find("uid");
  return at != row.end() && at->is_number_unsigned() && at->get<std::uint64_t>() == uid;
}

/// As every verb has it: a plain name means who asks, if he has a job of that name.
void keep_own(json& rows, json& ops, question const& q) {
  auto const is_own = [&](json const& row) { return is_of_user(row, q.uid); };
  auto const has_own = [&](json const& all) { return std::any_of(all.begin(), all.end(), is_own); };
  if (q.job.find('@') != q.job.npos || (!has_own(rows) && !has_own(ops))) return;
  for (json* const all : {&rows, &ops}) {
    json kept = json::array();
    for (json& row : *all)
      if (text_in(row, "job").empty() || is_own(row)) kept.push_back(std::move(row));
    *all = std::move(kept);
  }
}

/// From here on a name means one job: USER@JOB where several users have a job of the name.
void tell_apart(json& rows, owner_sets const& owners) {
  for (json& row : rows) {
    std::string const job = text_in(row, "job"), user = text_in(row, "user");
    auto const at = owners.find(job);
    if (at != owners.end() && at->second.size() > 1 && !user.empty())
      row["job"] = fmt::format("{}@{}", user, job);
  }
}

/// Throws when the name that was asked for means jobs of several users.
void check_is_one(owner_sets const& owners) {
  for (auto const& [job, users] : owners) {
    if (users.size() < 2) continue;
    std::string all;
    for (auto const& user : users)
      all += fmt::format("{}{}@{}", all.empty() ? "" : ", ", user, job);
    throw usage_error(fmt::format("more than one job \"{}\": say which of {}", job, all));
  }
}

/// The rows of an answer on one axis, as rows of a timeline.
class gatherer {
 public:
  /// The axis is that of the job that was asked for: from its first known interval to its last.
  gatherer(json const& rows, json const& ops, double step, question const& q) : step_(step) {
    double begin = HUGE_VAL;
    for (json const* const all : {&rows, &ops})
      for (json const& row : *all) {
        if (!q.job.empty() && text_in(row, "job").empty()) continue;
        double const end = number_in(row, "end_unix_s", 0);
        std::size_t known = known_in(row, "done_sum");
        for (auto const& k : kept) known = std::max(known, known_in(row, k.key));
        if (known == 0) continue;
        end_ = std::max(end_, end);
        begin = std::min(begin, end - step * static_cast<double>(known));
      }
    double const span = std::min(std::max(end_ - begin, 0.0), q.last_s);
    count_ = static_cast<std::size_t>(std::ceil(span / step - 0.01));
  }

  void take_job(json const& row) {
    std::string const job = text_in(row, "job"), supply = text_in(row, "supply");
    for (auto const& k : kept) {
      json values = k.per_second ? rates(row, k.key) : on_axis(row, k.key);
      if (k.per_second) add_to(own_[supply], values);
      bool const is_known =
          std::any_of(values.begin(), values.end(), [](json const& v) { return v.is_number(); });
      bool const is_limit = k.what == "limit"sv;
      bool const is_rare = is_limit || k.what == "paused"sv || k.what == "beyond"sv;
      if (is_rare && !is_any_above_zero(values)) continue;
      if (is_limit) tell_limits(row, job, values);
      if (is_known || std::string_view(k.what) == "demand")
        put(job, supply, k.what, k.unit == nullptr ? text_in(row, "unit") : k.unit,
            std::move(values));
    }
    if (!std::exchange(told_[job], true))
      jobs_.push_back(
          {{"job", job}, {"class", text_in(row, "class")}, {"user", text_in(row, "user")}});
  }

  void take_op(json const& row) {
    json values = on_axis(row, "done_sum");
    lines_.push_back({{"job", text_in(row, "job")},
                      {"op", text_in(row, "op")},
                      {"what", text_in(row, "unit") == "s" ? "took" : "done"},
                      {"unit", text_in(row, "unit")},
                      {"values", std::move(values)}});
  }

  /// `others`: what all jobs used beyond those that were taken.
  void take_supply(json const& row, bool with_others) {
    std::string const supply = text_in(row, "supply"), unit = text_in(row, "unit");
    double const capacity = number_in(row, "capacity", 0);
    if (capacity > 0) {
      json const values = rates(row, "served_sum");
      json known = json::array();
      for (json const& v : values) known.push_back(v.is_null() ? json(nullptr) : json(capacity));
      put("", supply, "capacity", unit, std::move(known));
      rule_of(supply, fmt::format("the policy's capacity of {}", rate_text(capacity, unit)));
    }
    if (!with_others) return;
    json rest = rates(row, "served_sum");
    auto const& own = own_[supply];
    for (std::size_t i = 0; i < rest.size(); ++i)
      if (i < own.size() && rest[i].is_number())
        rest[i] = std::max(0.0, rest[i].get<double>() - own[i]);
    put(other_jobs, supply, "served", unit, std::move(rest));
  }

  bool has_jobs() const { return !jobs_.empty(); }

  json result(std::string const& job) && {
    json rules = json::array();
    for (auto const& [supply, text] : rules_)
      rules.push_back({{"channel", supply}, {"text", text}});
    return {{"version", 1},
            {"kind", "history"},
            {"job", job},
            {"jobs", std::move(jobs_)},
            {"rules", std::move(rules)},
            {"timeline",
             {{"start_unix_s", std::max(0.0, end_ - step_ * static_cast<double>(count_))},
              {"interval_s", step_},
              {"rows", std::move(lines_)}}}};
  }

 private:
  static json const& values_in(json const& row, char const* key) {
    static json const none = json::array();
    auto const at = row.find(key);
    return at != row.end() && at->is_array() ? *at : none;
  }

  /// So many of the last values begin with one that is known.
  static std::size_t known_in(json const& row, char const* key) {
    json const& values = values_in(row, key);
    auto const first =
        std::find_if(values.begin(), values.end(), [](json const& v) { return v.is_number(); });
    return static_cast<std::size_t>(values.end() - first);
  }

  json on_axis(json const& row, char const* key) const {
    return aligned(values_in(row, key), number_in(row, "end_unix_s", end_), end_, step_, count_);
  }

  /// A daemon says amounts, of these a timeline wants rates.
  json rates(json const& row, char const* key) const {
    json values = on_axis(row, key);
    for (json& v : values)
      if (v.is_number()) v = v.get<double>() / step_;
    return values;
  }

  void put(std::string const& job, std::string const& supply, char const* what,
           std::string const& unit, json values) {
    json line = {{"supply", supply}, {"what", what}, {"unit", unit}, {"values", std::move(values)}};
    if (!job.empty()) line["job"] = job;
    lines_.push_back(std::move(line));
  }

  /// A limit that changed is told with those before it: what waited may have waited for one of
  /// them.
  void tell_limits(json const& row, std::string const& job, json const& values) {
    std::string const supply = text_in(row, "supply"), unit = text_in(row, "unit");
    json const& raw = values_in(row, "limit");
    double const last = raw.back().is_number() ? raw.back().get<double>() : 0;
    if (last > 0) rule_of(supply, fmt::format("{} has a limit of {}", job, rate_text(last, unit)));
    std::set<double> others;
    for (json const& v : values)
      if (v.is_number() && v.get<double>() > 0 && v.get<double>() != last)
        others.insert(v.get<double>());
    if (others.size() > most_told)
      rule_of(supply, fmt::format("{} had {} other limits", job, others.size()));
    else
      for (double const was : others)
        rule_of(supply, fmt::format("{} had a limit of {}", job, rate_text(was, unit)));
  }

  void rule_of(std::string const& supply, std::string const& words) {
    std::string& text = rules_[supply];
    if (text.find(words) == text.npos) text += (text.empty() ? "" : "; ") + words;
  }

  static void add_to(std::vector<double>& sums, json const& values) {
    sums.resize(std::max(sums.size(), values.size()), 0);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i].is_number()) sums[i] += values[i].get<double>();
  }

  double step_, end_ = 0;
  std::size_t count_ = 0;
  json jobs_ = json::array(), lines_ = json::array();
  std::map<std::string, std::vector<double>> own_;  // served, by supply
  std::map<std::string, std::string> rules_;
  std::map<std::string, bool> told_;
};

}  // namespace

json result_of_history(json const& answer, json const& op_answer, question const& q) {
  auto const rows_of = [](json const& of) {
    auto const found = of.find("rows");
    return found != of.end() && found->is_array() ? *found : json::array();
  };
  json rows = rows_of(answer);
  json ops = json::array();
  for (json const& row : rows_of(op_answer))  // a daemon that has none answers with the others
    if (!text_in(row, "op").empty() && !text_in(row, "job").empty()) ops.push_back(row);
  if (!q.job.empty()) keep_own(rows, ops, q);
  owner_sets const owners = owners_in(rows, ops);
  if (!q.job.empty()) check_is_one(owners);
  tell_apart(rows, owners);
  tell_apart(ops, owners);
  gatherer all(rows, ops, std::max(0.001, number_in(answer, "interval_s", 10)), q);
  for (json const& row : rows)
    if (!text_in(row, "job").empty()) all.take_job(row);
  if (all.has_jobs())
    for (json const& row : rows)
      if (text_in(row, "job").empty() && text_in(row, "class").empty())
        all.take_supply(row, !q.job.empty());
  for (json const& row : ops) all.take_op(row);
  return std::move(all).result(q.job);
}

namespace {

/// What the node wrote down when a job of the scheduler ended; empty: nothing.
std::string result_file(std::string const& socket, std::string const& asked) {
  namespace fs = std::filesystem;
  std::string const job = asked.substr(asked.rfind('@') + 1);  // no @: all of it
  if (job.empty() || job[0] == '.' || job.find('/') != job.npos) return {};
  fs::path const path = fs::path(socket).parent_path() / "results" / (job + ".json");
  std::error_code failed;
  return fs::is_regular_file(path, failed) ? path.string() : std::string();
}

/// Of USER@JOB; empty: not said.
std::string owner_in(std::string const& asked) {
  auto const at = asked.rfind('@');
  return at == asked.npos ? std::string() : asked.substr(0, at);
}

/// Files have the name of the job alone; a user that nobody said is any.
bool is_kept_for(std::string const& user, result const& kept) {
  if (user.empty() || kept.jobs.empty() || kept.jobs[0].user.empty()) return true;
  return kept.jobs[0].user == user;
}

/// The sums that the node wrote at the end of a job, with what the daemon remembers of its course.
result both(result sums, result course) {
  double const shift = sums.time.start_unix_s.value_or(0) - course.time.start_unix_s.value_or(0);
  for (job_row& row : sums.jobs) {
    row.started_s += shift;
    row.ended_s += shift;
  }
  sums.time = std::move(course.time);
  sums.rules.insert(sums.rules.end(), course.rules.begin(), course.rules.end());
  sums.facts.insert(sums.facts.end(), course.facts.begin(), course.facts.end());
  return sums;
}

cli::daemon_at daemon_for(std::string const& run_dir) {
  cli::global_options global;
  global.run_dir = run_dir;
  return cli::need_daemon(global);
}

}  // namespace

result ask_history(question const& q) {
  auto const daemon = daemon_for(q.run_dir);
  json request = {{"verb", "history"}, {"interval", q.last_s <= fine_s ? 1 : 10}};
  if (!q.job.empty()) request["job"] = q.job;
  json const answer = cli::ask_all(daemon, request, "rows");
  std::string const by = text_in(answer, "answered_by");  // a login node's daemon asked another
  std::string const who = by.empty() ? daemon.role + " " + daemon.name : by;
  request["ops"] = true;
  bool const has_ops = by.empty() && daemon.role == "node";
  json const ops = has_ops ? cli::ask_all(daemon, request, "rows") : json::object();
  json whole = result_of_history(answer, ops, q);
  auto const file = result_file(daemon.socket, q.job);
  bool const is_known = !whole["jobs"].empty() || q.job.empty();
  if (!is_known && !file.empty()) {
    result kept = read_result(file);
    if (is_kept_for(owner_in(q.job), kept)) return kept;
  }
  if (!is_known)
    throw usage_error(
        fmt::format("job {}: {} remembers no such job of yours in the last hour", q.job, who));
  whole["facts"] = json::array({json::array({"history of", who})});
  result course =
      parse_result(whole.dump(-1, ' ', false, json::error_handler_t::replace), "history of " + who);
  if (file.empty() || access(file.c_str(), R_OK) != 0) return course;
  result sums = read_result(file);
  if (!is_kept_for(course.jobs.at(0).user, sums)) return course;
  return both(std::move(sums), std::move(course));
}

std::string ask_dashboard(std::string const& run_dir) {
  json const answer = cli::ask(daemon_for(run_dir), {{"verb", "dashboard"}});
  std::string const url = text_in(answer, "url");
  if (url.empty()) throw sluice_error("the daemon serves no dashboard");
  return url;
}

}  // namespace sluice::report
