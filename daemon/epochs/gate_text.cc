// SPDX-License-Identifier: Apache-2.0
// The book as text: all of it, and lines of what has changed. gate_log.h has them on a disk.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "epochs/gate_book.h"

namespace sluice::epochs {

using nlohmann::json;

namespace {

std::string hex(std::uint64_t v) { return fmt::format("{:016x}", v); }

std::uint64_t number_of(std::string const& s) {
  std::uint64_t v = 0;
  auto const r = std::from_chars(s.data(), s.data() + s.size(), v, 16);
  if (r.ec != std::errc{} || r.ptr != s.data() + s.size())
    throw sluice_error("\"" + s + "\" is no number");
  return v;
}

core::job_id job_of(std::string const& s) {
  if (s.size() != 32) throw sluice_error("\"" + s + "\" is no job");
  core::job_id id;
  id.high = number_of(s.substr(0, 16));
  id.low = number_of(s.substr(16));
  return id;
}

json job_row(core::job_id job, std::uint64_t boot, json nodes) {
  json out = {{"job", hex(job.high) + hex(job.low)}, {"nodes", std::move(nodes)}};
  if (boot != 0) out["boot"] = hex(boot);
  return out;
}

std::string line_of(json const& j) {
  return j.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

[[noreturn]] void refuse(json::exception const& e) {
  throw sluice_error(fmt::format("the book of epochs: {}", e.what()));
}

}  // namespace

json gate_book::text_of(row const& r) {
  json out = json::array({r.node, hex(r.boot), r.lost, r.is_over});
  if (!r.told.empty()) out.push_back(r.told);
  return out;
}

/// Of a change: a node whose row is gone is named alone.
void gate_book::read_job(json const& j, bool is_change) {
  core::job_id const key = job_of(j.at("job"));
  job_rows& of = jobs_[key];
  if (j.contains("boot")) of.boot = number_of(j["boot"]);
  for (json const& r : j.at("nodes")) {
    auto node = r.at(0).get<std::string>();
    if (is_change) std::erase_if(of.rows, [&](row const& known) { return known.node == node; });
    if (!is_change || r.size() > 1)
      of.rows.push_back(
          {.node = std::move(node),
           .boot = number_of(r.at(1)),
           .lost = r.at(2).get<std::string>(),
           .is_over = r.at(3).get<bool>(),
           .told = r.size() > 4 ? r[4].get<std::set<std::string>>() : std::set<std::string>{}});
  }
  of.may_be_above = is_relay_;
  of.is_leaving = is_relay_ && of.rows.empty();
  if (of.rows.empty() && !is_relay_) jobs_.erase(key);
}

void gate_book::count_rows() {
  rows_ = 0;
  rows_of_.clear();
  for (auto const& [key, of] : jobs_) {
    rows_ += of.rows.size();
    for (row const& r : of.rows) rows_of_[r.node].add(key, r);
  }
}

std::uint64_t gate_book::from_text(std::string const& text) try {
  json const in = json::parse(text);
  gate_book fresh(is_relay_, number_of(in.at("book")), start_);
  for (json const& j : in.at("jobs")) fresh.read_job(j, false);
  fresh.count_rows();
  std::uint64_t const log = in.value("log", std::uint64_t{0});
  number_ = fresh.number_;
  jobs_ = std::move(fresh.jobs_);
  rows_ = fresh.rows_;
  rows_of_ = std::move(fresh.rows_of_);
  kept();
  return log;
} catch (json::exception const& e) {
  refuse(e);
}

void gate_book::replay(std::string const& lines, bool may_be_torn) try {
  for (std::size_t at = 0; at < lines.size();) {
    std::size_t const end = std::min(lines.find('\n', at), lines.size());
    bool const is_last = end + 1 >= lines.size();
    json const in = json::parse(lines.begin() + std::ptrdiff_t(at),
                                lines.begin() + std::ptrdiff_t(end), nullptr, false);
    bool const is_whole = end != lines.size() && in.is_array();
    if (!is_whole && is_last && may_be_torn) break;
    if (!is_whole) throw sluice_error("the book of epochs: a line of changes is damaged");
    for (json const& j : in) read_job(j, true);
    at = end + 1;
  }
  count_rows();
  kept();
} catch (json::exception const& e) {
  refuse(e);
}

std::string gate_book::to_text(std::uint64_t log) const {
  json jobs = json::array();
  for (auto const& [key, of] : jobs_) {
    json nodes = json::array();
    for (row const& r : of.rows) nodes.push_back(text_of(r));
    jobs.push_back(job_row(key, of.boot, std::move(nodes)));
  }
  return line_of({{"book", hex(number_)}, {"log", log}, {"jobs", std::move(jobs)}});
}

std::string gate_book::changes() const {
  json jobs = json::array();
  job_rows const gone;
  for (auto const& [key, nodes] : touched_) {
    auto const at = jobs_.find(key);
    job_rows const& of = at == jobs_.end() ? gone : at->second;
    json rows = json::array();
    for (std::string const& node : nodes) {
      auto const r = std::ranges::find(of.rows, node, &row::node);
      rows.push_back(r == of.rows.end() ? json::array({node}) : text_of(*r));
    }
    jobs.push_back(job_row(key, of.boot, std::move(rows)));
  }
  return line_of(jobs);
}

void gate_book::kept() {
  is_new_ = false;
  touched_.clear();
}

}  // namespace sluice::epochs
