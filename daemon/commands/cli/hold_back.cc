// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/hold_back.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "base/quantity.h"
#include "commands/cli/daemon.h"
#include "local/local.h"

namespace sluice::cli {

namespace {

using json = nlohmann::ordered_json;

/// RUN/jobs/FOLDER/segment.
std::string socket_of_segment(std::string const& segment_path) {
  std::filesystem::path const run =
      std::filesystem::path(segment_path).parent_path().parent_path().parent_path();
  return run / local::socket_name;
}

/// `holding 83 %, saturation 12 %`, of the time in which the job did I/O; the longest first.
std::string times_by_sign(json const& seconds) {
  std::vector<std::pair<double, std::string>> parts;
  double sum = 0;
  for (auto const& [sign, s] : seconds.items()) {
    parts.emplace_back(s.get<double>(), sign);
    sum += s.get<double>();
  }
  std::sort(parts.rbegin(), parts.rend());
  std::string out;
  for (auto const& [s, sign] : parts)
    if (s > 0)
      out += fmt::format("{}{} {:.3g} %", out.empty() ? "" : ", ", printable(sign), s / sum * 100);
  return out.empty() ? "no I/O yet" : out;
}

std::string limits_in_force(json const& limits) {
  std::string out;
  for (auto const& l : limits)
    if (auto const& rate = l["rate_per_s"]; !rate.is_null())
      out +=
          fmt::format("{}{} {}", out.empty() ? "" : ", ", printable(l["name"].get<std::string>()),
                      size_words(rate.get<std::uint64_t>()) + "/s");
  return out;
}

}  // namespace

hold_back::hold_back(foreign<abi::segment>& s, std::string const& segment_path,
                     std::vector<policy::background_terms> const& terms)
    : segment_(s), path_(segment_path) {
  for (auto const& t : terms)
    if (auto k = background::keeper::of(s, t)) keepers_.push_back(*std::move(k));
  if (is_any()) lock_ = descriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

std::int64_t hold_back::look(std::int64_t now_ns) {
  if (!is_any()) return std::numeric_limits<std::int64_t>::max();
  if (now_ns < due_ns_) return due_ns_;
  due_ns_ = now_ns + background::look_every_ns;
  // One writer of limits at a time; who pauses the job is done soon.
  if (!lock_ || flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) return due_ns_;
  bool is_news = false, is_busy = false;
  for (auto& k : keepers_) {
    is_news =
        k.look(segment_, policies::unbounded, now_ns, segment::writer_of(segment_)) || is_news;
    is_busy = is_busy || k.is_busy(now_ns);
  }
  flock(lock_.get(), LOCK_UN);
  teller_.look(path_, keepers_, is_news, now_ns);
  if (!is_busy) due_ns_ = now_ns + background::idle_every_ns;
  return due_ns_;
}

void hold_back::finish(std::int64_t now_ns) {
  if (is_any()) background::teller().look(path_, keepers_, true, now_ns);
}

void put_background(json& report, std::string const& segment_path, std::int64_t owner) {
  if (owner != std::int64_t{geteuid()}) return;
  if (json rows = background::told(segment_path); !rows.is_null())
    report["background"] = std::move(rows);
}

void put_background_of_daemon(json& report, std::string const& segment_path,
                              std::string const& job) {
  try {
    json const answer = json(
        local::ask(socket_of_segment(segment_path), {{"verb", "explain"}, {"job", job}}, hello_ms));
    if (auto const at = answer.find("background"); at != answer.end() && at->is_array())
      report["background"] = *at;
  } catch (std::exception const&) {
    // It is gone, or of another version: then there is nothing to tell.
  }
}

std::string background_lines(json const& report) {
  auto const rows = report.find("background");
  if (rows == report.end()) return {};
  std::string out;
  for (auto const& r : *rows) try {
      out += fmt::format(
          "  background work, {} on {}: {}\n", printable(r.at("algorithm").get<std::string>()),
          printable(r.at("supply").get<std::string>()), times_by_sign(r.at("seconds")));
      if (report.contains("exit")) continue;
      std::string const limits = limits_in_force(r.at("limits"));
      out += fmt::format("  now {}{}{}\n", printable(r.at("why").get<std::string>()),
                         limits.empty() ? "" : ": ", limits);
    } catch (json::exception const&) {
      continue;  // another version told it
    }
  return out;
}

}  // namespace sluice::cli
