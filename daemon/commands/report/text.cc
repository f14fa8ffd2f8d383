// SPDX-License-Identifier: Apache-2.0
#include "commands/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "commands/report/digest.h"
#include "commands/report/sentences.h"
#include "commands/report/shape.h"
#include "commands/report/tables.h"
#include "commands/report/words.h"

namespace sluice::report {

namespace {

constexpr std::size_t most_ops = 12, most_jobs = 20, most_paths = 12;

/// Letters on the screen: bytes that begin one.
std::size_t letters(std::string const& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string padded(std::string const& text, std::size_t width, bool right) {
  std::size_t const used = letters(text);
  std::string const blanks(width > used ? width - used : 0, ' ');
  return right ? blanks + text : text + blanks;
}

/// A sentence on lines of at most `columns`.
std::string folded(std::string const& sentence, unsigned columns) {
  std::string out, row;
  std::size_t begin = 0;
  while (begin < sentence.size()) {
    std::size_t const end = std::min(sentence.find(' ', begin), sentence.size());
    std::string const word = sentence.substr(begin, end - begin);
    if (!row.empty() && letters(row) + letters(word) + 3 > columns) {
      out += (out.empty() ? "- " : "  ") + row + "\n";
      row.clear();
    }
    row += (row.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return out + (out.empty() ? "- " : "  ") + row + "\n";
}

/// Nine steps of one letter.
std::string sparks(std::vector<double> const& values, std::size_t width) {
  static constexpr char const* steps[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  auto const columns = columns_of(values, merged(values.size(), width));
  double const most = most_of(columns);
  std::string out;
  for (double v : columns) {
    double const part = most > 0 && v > 0 ? v / most : 0;
    out += std::isnan(v) ? "." : steps[static_cast<std::size_t>(std::ceil(part * 8))];
  }
  return out;
}

std::string ops_table(digest const& d, unsigned columns) {
  if (d.ops.empty()) return {};
  std::string out =
      fmt::format("\n  {:<14}{:>9} {:>10} {:>10}\n", "call", "done", "most", "waited");
  std::size_t const width = columns > 60 ? columns - 52 : 8;
  std::size_t shown = 0;
  for (op_use const& o : d.ops) {
    if (shown++ == most_ops) {
      out += fmt::format("  and {} more\n", d.ops.size() - most_ops);
      break;
    }
    out += "  " + padded(plain(o.op, 13), 14, false) +
           padded(amount_text(o.total, o.unit), 9, true) + " " +
           padded(o.rate.empty() ? "-" : rate_text(most_of(o.rate), o.unit), 10, true) + " " +
           padded(o.waited_s > 0 ? seconds_text(o.waited_s) : "-", 10, true) + "  " +
           sparks(o.rate, width) + "\n";
  }
  return out;
}

std::string gates_table(digest const& d) {
  std::string out;
  for (gate const& g : d.gates) {
    out += "\n  " + plain(g.name, 60) + "\n";
    if (!g.rule.empty()) out += "    rule " + plain(g.rule, 200) + "\n";
    out += fmt::format("    served {}, time with waiting {}, all threads {}\n",
                       amount_text(g.served, g.unit),
                       g.blocked_s > 0 ? seconds_text(g.blocked_s) : "-",
                       g.waited_s > 0 ? seconds_text(g.waited_s) : "-");
    // Of what the rows say, not of the gate's sum: that may have been counted by somebody else.
    double all = 0;
    for (gate_use const& u : d.uses)
      if (u.gate == g.name) all += u.served;
    std::size_t shown = 0;
    for (gate_use const& u : d.uses)
      if (u.gate == g.name && shown++ < most_jobs)
        out += "    " + padded(plain(u.job, 24), 25, false) +
               padded(amount_text(u.served, u.unit), 10, true) + " " +
               padded(share_text(u.served, all), 6, true) + "  waited " +
               seconds_text(u.blocked_s) + "\n";
    if (shown > most_jobs) out += fmt::format("    and {} more jobs\n", shown - most_jobs);
  }
  return out;
}

std::string times_table(result const& r) {
  if (r.times.empty()) return {};
  std::vector<time_sum const*> times;
  for (time_sum const& t : r.times) times.push_back(&t);
  std::stable_sort(times.begin(), times.end(),
                   [](auto const* a, auto const* b) { return a->took_s > b->took_s; });
  std::string out = fmt::format("\n  {:<14}{:>9} {:>9} {:>9} {:>9} {:>9}\n", "in the call",
                                "in all", "p50", "p99", "longest", "timed");
  for (std::size_t i = 0; i < std::min(times.size(), most_ops); ++i) {
    time_sum const& t = *times[i];
    out += "  " + padded(plain(t.op, 13), 14, false);
    for (double s : {t.took_s, t.took_p50_s, t.took_p99_s, t.took_max_s})
      out += padded(seconds_text(s), 9, true) + " ";
    out += padded(count_text(t.samples), 9, true) +
           (t.target.empty() ? "" : "  " + plain(t.target, 200)) + "\n";
  }
  if (times.size() > most_ops) out += fmt::format("  and {} more\n", times.size() - most_ops);
  return out;
}

std::string paths_table(result const& r) {
  if (r.paths.empty()) return {};
  std::string out = fmt::format("\n  {:>9} {:>9} {:>9} {:>9}  {}\n", "calls", "bytes", "waited",
                                "in calls", "path");
  std::size_t shown = 0;
  for (path_sum const& p : r.paths) {
    if (shown++ == most_paths) break;
    out += "  " + padded(count_text(p.calls), 9, true) + " " +
           padded(p.bytes > 0 ? amount_text(p.bytes, "bytes") : "-", 9, true) + " " +
           padded(p.waited_s > 0 ? seconds_text(p.waited_s) : "-", 9, true) + " " +
           padded(p.took_s > 0 ? seconds_text(p.took_s) : "-", 9, true) + "  " + plain(p.path) +
           (p.over > 0 ? fmt::format(" (perhaps {} fewer)", count_text(p.over)) : "") + "\n";
  }
  if (r.paths.size() > most_paths)
    out += fmt::format("  and {} more\n", r.paths.size() - most_paths);
  return out;
}

std::string roles_table(result const& r) {
  std::string out;
  for (role_sum const& s : r.roles) {
    if (s.calls == 0) continue;
    if (out.empty())
      out = fmt::format("\n  {:<28} {:>9} {:>9} {:>9} {:>9}  {}\n", "role", "calls", "read",
                        "written", "waited", "known by");
    auto const bytes = [](double n) {
      return padded(n > 0 ? amount_text(n, "bytes") : "-", 9, true) + " ";
    };
    out += "  " + padded(s.role.empty() ? "no role" : plain(s.role, 28), 29, false) +
           padded(count_text(s.calls), 9, true) + " " + bytes(s.read) + bytes(s.written) +
           padded(s.waited_s > 0 ? seconds_text(s.waited_s) : "-", 9, true) + "  " +
           plain(sources_text(s.sources)) + "\n";
  }
  return out;
}

nlohmann::ordered_json number(double v) {
  return std::isnan(v) ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(v);
}

nlohmann::ordered_json roles_json(result const& r) {
  auto out = nlohmann::ordered_json::array();
  for (role_sum const& s : r.roles) {
    auto sources = nlohmann::ordered_json::object();
    for (auto const& [source, bytes] : s.sources) sources[source] = bytes;
    out.push_back({{"role", s.role},
                   {"calls", s.calls},
                   {"read", s.read},
                   {"written", s.written},
                   {"delayed", s.delayed},
                   {"waited_s", s.waited_s},
                   {"sources", sources}});
  }
  return out;
}

nlohmann::ordered_json jobs_json(digest const& d) {
  auto out = nlohmann::ordered_json::array();
  for (job_use const& j : d.jobs)
    out.push_back({{"job", j.job},
                   {"class", j.qos_class},
                   {"done", j.done},
                   {"bytes", j.bytes},
                   {"offered", j.offered},
                   {"failed", j.failed},
                   {"waited_s", j.waited_s},
                   {"blocked_s", j.blocked_s},
                   {"paused_s", j.paused_s},
                   {"lag_s", j.lag_s},
                   {"ended_s", number(j.ended_s)}});
  return out;
}

nlohmann::ordered_json summary(result const& r, digest const& d) {
  using json = nlohmann::ordered_json;
  json out = {{"version", 1},
              {"file", r.file},
              {"kind", r.kind},
              {"job", r.job},
              {"duration_s", d.duration_s},
              {"sentences", sentences_of(r, d)}};
  out["gates"] = json::array();
  for (gate const& g : d.gates)
    out["gates"].push_back({{"name", g.name},
                            {"unit", g.unit},
                            {"rule", g.rule},
                            {"served", g.served},
                            {"calls", g.calls},
                            {"delayed", g.delayed},
                            {"waited_s", g.waited_s},
                            {"would_delay", g.is_only_counted ? json(g.would_delay) : json()},
                            {"beyond", g.beyond},
                            {"would_wait_s", g.is_only_counted ? json(g.would_wait_s) : json()},
                            {"blocked_s", g.blocked_s},
                            {"capacity", number(g.capacity_amount)},
                            {"unused_while_waited", g.idle_amount}});
  out["uses"] = json::array();
  for (gate_use const& u : d.uses)
    out["uses"].push_back({{"job", u.job},
                           {"gate", u.gate},
                           {"unit", u.unit},
                           {"served", u.served},
                           {"waited_s", number(u.waited_s)},
                           {"blocked_s", number(u.blocked_s)}});
  out["ops"] = json::array();
  for (op_use const& o : d.ops)
    out["ops"].push_back({{"op", o.op},
                          {"unit", o.unit},
                          {"done", o.total},
                          {"delayed", o.delayed},
                          {"waited_s", o.waited_s}});
  out["jobs"] = jobs_json(d);
  out["paths"] = json::array();
  for (path_sum const& p : r.paths)
    out["paths"].push_back({{"path", p.path},
                            {"calls", p.calls},
                            {"over", p.over},
                            {"bytes", p.bytes},
                            {"waited_s", p.waited_s},
                            {"took_s", p.took_s}});
  out["roles"] = roles_json(r);
  out["times"] = json::array();
  for (time_sum const& t : r.times)
    out["times"].push_back({{"op", t.op},
                            {"target", t.target},
                            {"estimated_calls", t.calls},
                            {"samples", t.samples},
                            {"took_s", t.took_s},
                            {"took_p50_s", t.took_p50_s},
                            {"took_p99_s", t.took_p99_s},
                            {"took_max_s", t.took_max_s}});
  return out;
}

}  // namespace

std::string text_of(std::vector<result> const& results, unsigned columns) {
  std::string out;
  std::vector<digest> digests;
  for (result const& r : results) digests.push_back(digest_of(r));
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results.size() > 1)
      out += fmt::format("{}{}\n", i == 0 ? "" : "\n", plain(results[i].file));
    for (auto const& line : sentences_of(results[i], digests[i]))
      out += folded(plain(line, 2000), columns);
    out += ops_table(digests[i], columns) + times_table(results[i]) + gates_table(digests[i]) +
           roles_table(results[i]) + paths_table(results[i]);
  }
  if (results.size() < 2) return out;
  std::vector<digest const*> all;
  for (digest const& d : digests) all.push_back(&d);
  out += "\n" + padded("", 34, false);
  for (result const& r : results) out += padded(plain(r.file, 17), 18, true);
  out += "\n";
  for (compared const& c : compare(all)) {
    out += padded(plain(c.what, 33), 34, false);
    for (double v : c.values) out += padded(amount_text(v, c.unit), 18, true);
    out += "\n";
  }
  return out;
}

std::string summary_of(std::vector<result> const& results) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (result const& r : results) out.push_back(summary(r, digest_of(r)));
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::report
