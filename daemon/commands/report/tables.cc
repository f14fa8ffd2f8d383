// SPDX-License-Identifier: Apache-2.0
#include "commands/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "commands/report/chart.h"
#include "commands/report/sentences.h"
#include "commands/report/words.h"

namespace sluice::report {

namespace {

constexpr std::size_t listed_rows = 200;
constexpr std::size_t shown_rows = 12;  // the rest is folded

/// A cell that holds words, beside cells that hold numbers.
std::string row_of(std::vector<std::string> const& cells, std::size_t words = 0) {
  std::string out = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i)
    out += (i != 0 && i == words ? "<td class=\"left\">" : "<td>") + cells[i] + "</td>";
  return out + "</tr>\n";
}

std::string table(std::vector<std::string> const& heads, std::vector<std::string> const& rows) {
  if (rows.empty()) return {};
  std::string top;
  for (auto const& head : heads) {
    bool const is_words = head == "rule" || head == "where";
    top += (is_words ? "<th class=\"left\">" : "<th>") + html(head) + "</th>";
  }
  auto const part = [&](std::size_t from, std::size_t to) {
    std::string out = "<div class=\"scroll\"><table><thead><tr>" + top + "</tr></thead><tbody>\n";
    for (std::size_t i = from; i < to; ++i) out += rows[i];
    return out + "</tbody></table></div>\n";
  };
  std::size_t const shown = std::min(rows.size(), shown_rows);
  std::size_t const most = std::min(rows.size(), listed_rows);
  std::string out = part(0, shown);
  if (most > shown)
    out += fmt::format("<details><summary>{} more</summary>\n{}</details>\n", most - shown,
                       part(shown, most));
  if (rows.size() > most)
    out += fmt::format("<p class=\"soft\">and {} more in the file</p>\n", rows.size() - most);
  return out;
}

std::string if_any(double value, std::string const& text) { return value > 0 ? text : "-"; }

std::string delayed_text(gate const& g) {
  if (!(g.calls > 0)) return "-";
  return g.is_only_counted ? "would be " + share_text(g.would_delay, g.calls)
                           : share_text(g.delayed, g.calls);
}
std::string waited_text(gate const& g) {
  return g.is_only_counted ? if_any(g.would_wait_s, "would be " + seconds_text(g.would_wait_s))
                           : if_any(g.waited_s, seconds_text(g.waited_s));
}

/// From the half to the whole of a power of two.
std::string size_text(double below) {
  return below < 2 ? "0" : fmt::format("from {}", amount_text(below / 2, "bytes"));
}

}  // namespace

std::string gate_table(digest const& d) {
  std::vector<std::string> rows;
  for (gate const& g : d.gates)
    rows.push_back(
        row_of({html(g.name), g.rule.empty() ? "-" : html(g.rule), amount_text(g.served, g.unit),
                delayed_text(g), if_any(g.blocked_s, seconds_text(g.blocked_s)), waited_text(g),
                if_any(g.p99_s, seconds_text(g.p99_s)),
                if_any(g.waited_capacity, share_text(g.idle_amount, g.waited_capacity))},
               1));
  return table({"waited for", "rule", "served", "calls delayed", "time with waiting", "all threads",
                "p99 wait", "unused while waited"},
               rows);
}

std::string op_table_of(digest const& d) {
  double most = 0, all = 0;
  std::vector<op_use const*> ops;
  for (op_use const& o : d.ops) {
    ops.push_back(&o);
    most = std::max(most, o.waited_s);
    all += o.waited_s;
  }
  std::stable_sort(ops.begin(), ops.end(),
                   [](auto const* a, auto const* b) { return a->waited_s > b->waited_s; });
  std::vector<std::string> rows;
  for (op_use const* o : ops)
    rows.push_back(row_of({html(o->label()), amount_text(o->total, o->unit),
                           if_any(o->delayed, count_text(o->delayed)),
                           if_any(o->waited_s, seconds_text(o->waited_s)),
                           if_any(o->waited_s, share_text(o->waited_s, all)),
                           most > 0 ? bar(o->waited_s / most, 1) : ""}));
  return table({"call", "done", "delayed", "waited, all threads", "share", ""}, rows);
}

std::string time_table(result const& r) {
  std::vector<time_sum const*> times;
  double most_s = 0;
  for (time_sum const& t : r.times) {
    times.push_back(&t);
    most_s = std::max(most_s, t.took_s);
  }
  std::stable_sort(times.begin(), times.end(),
                   [](auto const* a, auto const* b) { return a->took_s > b->took_s; });
  std::vector<std::string> rows;
  for (time_sum const* t : times)
    rows.push_back(row_of(
        {html(t->op), html(t->target.empty() ? "-" : t->target), seconds_text(t->took_s),
         seconds_text(t->took_p50_s), seconds_text(t->took_p99_s), seconds_text(t->took_max_s),
         count_text(t->samples), most_s > 0 ? bar(t->took_s / most_s, 0) : ""},
        1));
  return table({"call", "where", "in all, all threads", "half of them below", "99 % below",
                "longest", "timed", ""},
               rows);
}

std::string size_table(result const& r) {
  std::vector<std::string> rows;
  for (size_sum const& s : r.sizes) {
    double all = 0, most = 0;
    for (auto const& [below, calls] : s.steps) all += calls, most = std::max(most, calls);
    for (auto const& [below, calls] : s.steps)
      rows.push_back(row_of({html(s.op), html(s.target.empty() ? "-" : s.target), size_text(below),
                             share_text(calls, all), most > 0 ? bar(calls / most, 0) : ""},
                            1));
  }
  return table({"call", "where", "bytes", "share of the calls", ""}, rows);
}

std::string job_table(digest const& d) {
  std::vector<std::string> rows;
  for (job_use const& j : d.jobs) {
    if (j.job.empty()) continue;
    std::string const end = j.finished == false     ? "not finished"
                            : std::isnan(j.ended_s) ? "-"
                                                    : clock_text(j.ended_s);
    rows.push_back(row_of({html(j.job), html(j.qos_class.empty() ? "-" : j.qos_class),
                           html(j.user.empty() ? "-" : j.user), if_any(j.done, count_text(j.done)),
                           if_any(j.bytes, amount_text(j.bytes, "bytes")),
                           if_any(j.waited_s, seconds_text(j.waited_s)),
                           if_any(j.blocked_s, seconds_text(j.blocked_s)),
                           if_any(j.lag_s, seconds_text(j.lag_s)), end}));
  }
  return table({"job", "class", "user", "operations", "bytes", "waited, all threads",
                "time with waiting", "most lag", "ended at"},
               rows);
}

std::string path_calls_text(path_sum const& p) {
  std::string const calls = count_text(p.calls);
  return p.over > 0 ? fmt::format("{}, perhaps {} fewer", calls, count_text(p.over)) : calls;
}

std::string path_table(result const& r) {
  std::vector<std::string> rows;
  for (path_sum const& p : r.paths)
    rows.push_back(row_of(
        {"<code>" + html(p.path) + "</code>", path_calls_text(p),
         if_any(p.bytes, amount_text(p.bytes, "bytes")),
         if_any(p.waited_s, seconds_text(p.waited_s)), if_any(p.took_s, seconds_text(p.took_s)),
         p.calls > 0 ? if_any(p.took_s, seconds_text(p.took_s / p.calls)) : "-"}));
  return table({"path", "calls", "bytes", "waited", "in the calls", "a call"}, rows);
}

std::string role_table(result const& r) {
  std::vector<std::string> rows;
  for (role_sum const& s : r.roles)
    if (s.calls > 0)
      rows.push_back(
          row_of({html(s.role.empty() ? "no role" : s.role), count_text(s.calls),
                  if_any(s.read, amount_text(s.read, "bytes")),
                  if_any(s.written, amount_text(s.written, "bytes")),
                  if_any(s.delayed, count_text(s.delayed)),
                  if_any(s.waited_s, seconds_text(s.waited_s)), html(sources_text(s.sources))}));
  return table({"role", "calls", "read", "written", "delayed", "waited, all threads", "known by"},
               rows);
}

std::string fact_table(result const& r) {
  std::vector<std::string> rows;
  for (auto const& [what, value] : r.facts)
    rows.push_back(fmt::format("<tr><td>{}</td><td class=\"left\">{}</td></tr>\n", html(what),
                               html(value, 2000)));
  return table({"", ""}, rows);
}

std::vector<compared> compare(std::vector<digest const*> const& digests) {
  std::vector<compared> out;
  auto const add = [&](std::string const& what, std::string const& unit, auto const& value) {
    compared row = {what, unit, {}};
    bool any = false;
    for (digest const* d : digests) {
      row.values.push_back(value(*d));
      any = any || row.values.back() > 0;
    }
    if (any) out.push_back(std::move(row));
  };
  auto const sum = [](digest const& d, double job_use::*field) {
    double total = 0;
    for (job_use const& j : d.jobs) total += j.*field;
    return total;
  };
  add("duration", "s", [](digest const& d) { return d.duration_s; });
  add("operations", "ops", [&](digest const& d) { return sum(d, &job_use::done); });
  add("bytes", "bytes", [&](digest const& d) { return sum(d, &job_use::bytes); });
  add("waited, all threads", "s", [&](digest const& d) { return sum(d, &job_use::waited_s); });
  std::map<std::string, std::string> gates, ends;
  for (digest const* d : digests) {
    for (gate const& g : d->gates) gates[g.name] = g.unit;
    for (job_use const& j : d->jobs)
      if (!std::isnan(j.ended_s)) ends[j.job];
  }
  for (auto const& known : gates) {
    std::string const &name = known.first, &unit = known.second;
    auto const of = [&](digest const& d, double gate::*field) {
      for (gate const& g : d.gates)
        if (g.name == name) return g.*field;
      return unknown;
    };
    add(name + " served", unit, [&](digest const& d) { return of(d, &gate::served); });
    add(name + " time with waiting", "s", [&](digest const& d) { return of(d, &gate::blocked_s); });
    add(name + " unused while waited", unit,
        [&](digest const& d) { return of(d, &gate::idle_amount); });
  }
  for (auto const& known : ends)
    add(known.first + " ended at", "s", [&](digest const& d) {
      for (job_use const& j : d.jobs)
        if (j.job == known.first) return j.ended_s;
      return unknown;
    });
  return out;
}

std::string comparison(std::vector<result> const& results,
                       std::vector<digest const*> const& digests) {
  std::vector<std::string> heads = {""}, rows;
  for (result const& r : results) heads.push_back(r.file);
  for (compared const& c : compare(digests)) {
    std::vector<std::string> cells = {html(c.what)};
    for (std::size_t i = 0; i < c.values.size(); ++i) {
      std::string cell = amount_text(c.values[i], c.unit);
      if (i > 0 && c.values[0] > 0 && !std::isnan(c.values[i]))
        cell += fmt::format(" <span class=\"soft\">({:.3g} x)</span>", c.values[i] / c.values[0]);
      cells.push_back(std::move(cell));
    }
    rows.push_back(row_of(cells));
  }
  return table(heads, rows);
}

}  // namespace sluice::report
