// SPDX-License-Identifier: Apache-2.0
#include "commands/report/page.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "commands/report/chart.h"
#include "commands/report/digest.h"
#include "commands/report/sentences.h"
#include "commands/report/shape.h"
#include "commands/report/tables.h"
#include "commands/report/words.h"

namespace sluice::report {

namespace {

constexpr std::size_t most_heat_rows = 24, most_uses = 24;
constexpr unsigned width_alone = 960, width_beside = 660;

struct sheet {
  result const& of;
  digest what;
  frame time;
};

std::string figure(std::string const& drawing, std::string const& caption) {
  return "<figure>" + drawing +
         (caption.empty() ? "" : "<figcaption>" + caption + "</figcaption>") + "</figure>\n";
}

std::string head(sheet const& s) {
  std::string out =
      fmt::format("<h1>{}</h1>\n<p class=\"soft\">{}", html(title_of(s.of)), html(s.of.file));
  if (s.of.time.start_unix_s) out += ", began " + date_text(*s.of.time.start_unix_s);
  if (!s.of.command.empty()) {
    std::string words;
    for (auto const& word : s.of.command) words += (words.empty() ? "" : " ") + word;
    out += ", <code>" + html(words) + "</code>";
  }
  out += "</p>\n<div class=\"said\" id=\"said\">\n";
  for (auto const& line : sentences_of(s.of, s.what))
    out += fmt::format("<p>{}</p>\n", html(line, 1000));
  return out + "</div>\n";
}

std::string heat_of_ops(sheet const& s) {
  std::vector<heat_row> use, wait, took;
  for (op_use const& o : s.what.ops) {
    if (!o.rate.empty() && use.size() < most_heat_rows)
      use.push_back({o.label(), o.unit, "to " + rate_text(most_of(o.rate), o.unit), o.rate});
    if (sum_of(o.waited) > 0 && wait.size() < most_heat_rows)
      wait.push_back({o.op, "threads", seconds_text(o.waited_s), o.waited});
    if (sum_of(o.took) > 0 && took.size() < most_heat_rows)
      took.push_back({o.op, "threads", seconds_text(o.took_s), o.took});
  }
  std::string out;
  if (!use.empty())
    out += figure(
        heatmap(s.time, use, 0, false, "operations over time"),
        "Operations over time, all jobs. A stronger colour is more; every row has its own scale, "
        "whose end is at the right.");
  if (!wait.empty())
    out += figure(heatmap(s.time, wait, 1, true, "waiting over time"),
                  "Waiting over time: how many threads waited on average; the sum of their waiting "
                  "is at the right.");
  if (!took.empty())
    out += figure(heatmap(s.time, took, 0, true, "time in the calls"),
                  "Time in the calls themselves: how many threads were in one on average, by a "
                  "sample of the calls; the sum of their time is at the right.");
  return out;
}

std::string heat_of_jobs(sheet const& s) {
  std::string out;
  for (gate const& g : s.what.gates) {
    std::vector<heat_row> rows;
    for (gate_use const& u : s.what.uses)
      if (u.gate == g.name && sum_of(u.blocked) > 0 && rows.size() < most_heat_rows)
        rows.push_back({u.job, "part", seconds_text(u.blocked_s), u.blocked});
    if (rows.empty()) continue;
    out += figure(heatmap(s.time, rows, 1, true, "who waited for " + g.name),
                  fmt::format("Who waited for {}: the part of the time in which a request of the "
                              "job waited; the total time is at the right.",
                              html(gate_words(g.name))));
  }
  return out;
}

/// What one gate gave to whom, as areas on each other.
std::string who_used(sheet const& s, gate const& g) {
  std::vector<line> rows;
  line others = {"others", stroke::area, {}};
  std::string legend;
  double sum = 0, others_sum = 0;
  for (gate_use const& u : s.what.uses)
    if (u.gate == g.name) sum += u.served;
  std::size_t left_out = 0;
  for (gate_use const& u : s.what.uses) {
    if (u.gate != g.name || u.rate.empty()) continue;
    if (rows.size() < stack_colours) {
      legend += fmt::format("<tr><td>{}{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                            swatch(rows.size()), html(u.job), amount_text(u.served, u.unit),
                            share_text(u.served, sum), seconds_text(u.blocked_s));
      rows.push_back({u.job, stroke::area, u.rate});
    } else {
      add_to(others.values, u.rate);
      others_sum += u.served;
      ++left_out;
    }
  }
  if (rows.empty()) return {};
  if (left_out > 0) {
    legend += fmt::format("<tr><td>{}{} others</td><td>{}</td><td>{}</td><td>-</td></tr>\n",
                          swatch(stack_colours), left_out, amount_text(others_sum, g.unit),
                          share_text(others_sum, sum));
    rows.push_back(others);
  }
  return fmt::format("<h3>{}</h3>\n", html(g.name)) +
         figure(stack(s.time, g.unit, rows, g.capacity, "who used " + g.name),
                g.capacity.empty() ? "Served, stacked by job."
                                   : "Served, stacked by job; the line is the capacity.") +
         "<div class=\"scroll\"><table><thead><tr><th>job</th><th>served</th><th>share</th>"
         "<th>time with waiting</th></tr></thead><tbody>\n" +
         legend + "</tbody></table></div>\n";
}

std::string section_who(sheet const& s) {
  std::string out;
  for (gate const& g : s.what.gates) out += who_used(s, g);
  return out;
}

bool is_known(std::vector<double> const& values) {
  return std::any_of(values.begin(), values.end(), [](double v) { return !std::isnan(v); });
}

/// A demand far above all that was used would press the other lines flat: it is cut off, and its
/// label says how far it goes.
line demand_line(gate_use const& u) {
  constexpr double far = 3, shown = 1.5;
  double const used = std::max(most_of(u.rate), most_of(u.grant)), most = most_of(u.demand);
  line out = {"demand", stroke::dashed, u.demand};
  if (!(used > 0) || !(most > far * used)) return out;
  out.cut = shown * used;
  out.label = "demand, up to " + rate_text(most, u.unit);
  return out;
}

std::string section_uses(sheet const& s) {
  std::string out;
  std::size_t drawn = 0, left_out = 0;
  for (gate_use const& u : s.what.uses) {
    if (u.rate.empty() && u.demand.empty() && u.grant.empty()) continue;
    if (drawn++ >= most_uses) {
      ++left_out;
      continue;
    }
    std::vector<line> rows;
    if (!u.rate.empty()) rows.push_back({"served", stroke::area, u.rate});
    if (!u.grant.empty()) rows.push_back({"grant", stroke::solid, u.grant});
    if (is_known(u.demand)) rows.push_back(demand_line(u));
    if (is_known(u.limit)) rows.push_back({"limit", stroke::dotted, u.limit});
    std::string const name = u.job.empty() ? u.gate : u.job + " at " + u.gate;
    out += fmt::format("<h3>{}</h3>\n", html(name)) +
           figure(lines(s.time, u.unit, rows, {u.blocked, u.paused}, name), "");
  }
  if (drawn > 0)
    out +=
        "<p class=\"soft\">Demand has a gap where a job wanted more than its grant. Demand far "
        "above the use is cut off.</p>\n";
  if (left_out > 0)
    out += fmt::format("<p class=\"soft\">{} more are left out: those that used least.</p>\n",
                       left_out);
  return out;
}

/// Rows of a job as a whole: lag and what time an operation took.
std::string section_lag(sheet const& s) {
  std::string out;
  for (char const* what : {"lag", "p99"}) {
    std::vector<heat_row> rows;
    bool const is_lag = std::string_view(what) == "lag";
    for (series const& r : s.of.time.rows) {
      if (r.what != what || !(most_of(r.values) > 0) || rows.size() >= most_heat_rows) continue;
      auto values = r.values;
      if (!is_lag && r.unit == "ns")
        for (double& v : values) v /= 1e9;
      values.resize(s.of.time.intervals, unknown);
      std::string const label = r.name.empty() ? r.job : r.job + " " + r.name;
      rows.push_back({label, "time", seconds_text(most_of(values)), values});
    }
    if (rows.empty()) continue;
    out += figure(heatmap(s.time, rows, 1, true, what),
                  is_lag ? "Lag: how long after its time the latest operation began."
                         : "The time that 99 of 100 operations took at most.");
  }
  return out;
}

std::string section_jobs(sheet const& s) {
  std::vector<job_row> rows;
  for (job_row const& j : s.of.jobs)
    if (!std::isnan(j.started_s) || !std::isnan(j.ended_s)) rows.push_back(j);
  if (rows.size() < 2 || s.time.intervals == 0) return job_table(s.what);
  return figure(spans(s.time, rows, "when each job ran"), "When each job ran.") + job_table(s.what);
}

struct section {
  char const* title;
  std::string (*of)(sheet const&);
};

std::string of_what(sheet const& s, std::string (*table)(digest const&)) { return table(s.what); }

constexpr section sections[] = {
    {"Operations over time", heat_of_ops},
    {"Who waited, and when", heat_of_jobs},
    {"For which rule", [](sheet const& s) { return of_what(s, gate_table); }},
    {"Waiting by call", [](sheet const& s) { return of_what(s, op_table_of); }},
    {"How long the calls themselves took", [](sheet const& s) { return time_table(s.of); }},
    {"How much they read and wrote", [](sheet const& s) { return size_table(s.of); }},
    {"Who used the capacity", section_who},
    {"Served, demand, grant and limit", section_uses},
    {"Lag and latency", section_lag},
    {"Jobs", section_jobs},
    {"What the requests were for", [](sheet const& s) { return role_table(s.of); }},
    {"Paths that were used most", [](sheet const& s) { return path_table(s.of); }},
    {"Where it comes from", [](sheet const& s) { return fact_table(s.of); }},
};

std::string beside(std::vector<sheet> const& sheets,
                   std::function<std::string(sheet const&)> const& part) {
  if (sheets.size() == 1) return part(sheets[0]);
  std::string out = "<div class=\"beside\">\n";
  for (sheet const& s : sheets) {
    std::string const inside = part(s);
    out += fmt::format("<div><p class=\"soft\">{}</p>{}</div>\n", html(s.of.file),
                       inside.empty() ? "<p class=\"soft\">nothing recorded</p>" : inside);
  }
  return out + "</div>\n";
}

std::vector<sheet> sheets_of(std::vector<result> const& results) {
  std::vector<sheet> out;
  double longest_s = 0;
  for (result const& r : results)
    longest_s = std::max(longest_s, static_cast<double>(r.time.intervals) * r.time.interval_s);
  for (result const& r : results) {
    frame const f = {r.time.interval_s,
                     static_cast<std::size_t>(std::ceil(longest_s / r.time.interval_s - 1e-9)),
                     results.size() == 1 ? width_alone : width_beside};
    out.push_back({r, digest_of(r), f});
  }
  return out;
}

}  // namespace

std::string make_nonce() {
  unsigned char bytes[16] = {};
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) throw sluice_error("getrandom failed");
  std::string out;
  for (unsigned char b : bytes) out += fmt::format("{:02x}", b);
  return out;
}

std::string page_around(std::string const& body, std::string const& title, bool many,
                        std::string const& nonce) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'nonce-{0}'; script-src 'nonce-{0}'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>sluice: {1}</title>\n<style nonce=\"{0}\">{2}</style>\n</head>\n<body{3}>\n",
      nonce, html(title), page_style, many ? " class=\"many\"" : "");
  out += chart_definitions() + body;
  out += fmt::format("<script nonce=\"{}\">{}</script>\n</body>\n</html>\n", nonce, page_script);
  return out;
}

std::string page_of(std::vector<result> const& results, std::string const& nonce) {
  auto const sheets = sheets_of(results);
  std::string titles, out;
  for (sheet const& s : sheets) titles += (titles.empty() ? "" : ", ") + title_of(s.of);
  if (sheets.size() > 1) {
    std::vector<digest const*> digests;
    for (sheet const& s : sheets) digests.push_back(&s.what);
    out += "<h1>Side by side</h1>\n" + comparison(results, digests);
  }
  out += beside(sheets, head);
  for (section const& part : sections) {
    bool const is_empty = std::all_of(sheets.begin(), sheets.end(),
                                      [&](sheet const& s) { return part.of(s).empty(); });
    if (!is_empty)
      out += fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", part.title,
                         beside(sheets, part.of));
  }
  out += "<footer><p>Made by sluice report.</p></footer>\n";
  return page_around(out, titles, sheets.size() > 1, nonce);
}

}  // namespace sluice::report
