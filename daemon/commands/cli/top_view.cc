// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "policy/resource.h"

namespace sluice::cli {

namespace {

constexpr unsigned narrow = 60;  // below this there are no bars
constexpr unsigned widest_bar = 40;
constexpr unsigned least_cell = 6;

using cells = std::vector<std::string>;

struct table_row {
  cells cell;
  line_style style = line_style::plain;
  std::string job = {}, supply = {};
  bool is_paused = false, is_own = false;
};

// ---- what is shown, in which order ----

using named = std::vector<std::pair<char const*, std::string>>;

/// `user=ann` looks at one field, anything else at all.
bool passes(std::string const& filter, named const& fields) {
  if (filter.empty()) return true;
  for (auto const& [name, value] : fields)
    if (std::string const key = std::string(name) + "="; filter.starts_with(key))
      return value.find(filter.substr(key.size())) != std::string::npos;
  return std::any_of(fields.begin(), fields.end(),
                     [&](auto const& f) { return f.second.find(filter) != std::string::npos; });
}

bool is_shown(stream_row const& s, top_choice const& choice) {
  if (choice.active_only && s.served < 0.005 && s.waiting < 0.005 && s.waiters == 0) return false;
  return passes(
      choice.filter,
      named{{"job", s.job}, {"user", s.user}, {"class", s.qos_class}, {"supply", s.supply}});
}

bool is_shown(node_row const& n, top_choice const& choice) {
  if (choice.active_only && n.served < 0.005) return false;
  return passes(
      choice.filter,
      named{{"node", n.node}, {"role", n.role}, {"state", n.state}, {"supply", n.supply}});
}

/// The larger, the higher in the list.
double weight_of(stream_row const& s, char sort) {
  switch (sort) {
    case 'd':
      return s.demand.value_or(HUGE_VAL);
    case 'g':
      return s.grant.value_or(HUGE_VAL);
    case 's':
      return s.served;
    case 'e':
      return static_cast<double>(s.escaped);
    case 'w':
      return s.blocked + s.waiting;
    default:
      return 0;
  }
}

std::string name_of(stream_row const& s, char sort) {
  return sort == 'u' ? s.user : sort == 'c' ? s.qos_class : s.job;
}

double weight_of(node_row const& n, char sort) {
  switch (sort) {
    case 'g':
      return n.granted;
    case 's':
      return n.served;
    default:
      return 0;
  }
}

std::string name_of(node_row const& n, char) { return n.node; }

template <typename Row>
std::vector<Row> chosen(std::vector<Row> rows, top_choice const& choice) {
  rows.erase(
      std::remove_if(rows.begin(), rows.end(), [&](Row const& r) { return !is_shown(r, choice); }),
      rows.end());
  std::stable_sort(rows.begin(), rows.end(), [&](Row const& a, Row const& b) {
    double const x = weight_of(a, choice.sort), y = weight_of(b, choice.sort);
    if (x != y) return x > y;
    return name_of(a, choice.sort) < name_of(b, choice.sort);
  });
  if (choice.reversed) std::reverse(rows.begin(), rows.end());
  return rows;
}

// ---- rows ----

std::string or_dash(std::string const& text) { return text.empty() ? "-" : text; }

table_row row_of(stream_row const& s) {
  core::unit_kind const unit = policy::unit_of_supply(s.supply);
  table_row row;
  std::string const mark = s.is_paused ? "P" : s.is_overridden ? "*" : "";
  row.cell = {s.job + (mark.empty() ? "" : " " + mark),
              or_dash(s.user),
              or_dash(s.qos_class),
              or_dash(s.supply),
              s.demand ? short_number(*s.demand, unit) : "any",
              s.grant ? short_number(*s.grant, unit) : "any",
              short_number(s.served, unit),
              short_number(s.waiting, unit),
              fmt::format("{:.0f}", s.blocked * 100),
              std::to_string(s.escaped),
              std::to_string(s.nodes),
              s.beyond > 0 ? short_number(s.beyond, unit) : "",
              trend(s.lately)};
  row.job = job_id(s);
  row.supply = s.supply;
  row.is_paused = s.is_paused;
  row.is_own = s.is_own;
  if (s.blocked > 0 || s.waiters > 0) row.style = line_style::waiting;
  if (s.is_paused) row.style = line_style::faint;
  if (s.escaped > 0) row.style = line_style::alarm;
  return row;
}

table_row row_of(node_row const& n) {
  core::unit_kind const unit = policy::unit_of_supply(n.supply);
  table_row row;
  row.cell = {or_dash(n.node),
              or_dash(n.role),
              or_dash(n.state),
              or_dash(n.supply),
              short_number(n.granted, unit),
              short_number(n.served, unit),
              n.age_s < 0.995 ? fmt::format("{:.2f}s", n.age_s) : fmt::format("{:.0f}s", n.age_s),
              std::to_string(n.jobs)};
  if (n.state == "silent") row.style = line_style::waiting;
  if (n.state == "gone") row.style = line_style::alarm;
  return row;
}

struct layout {
  cells title;
  std::size_t texts;  // columns from the left that are text; they give way when it is narrow
  std::size_t sure = ~std::size_t{0};  // after so many columns those come that may be left out
};

layout const of_streams = {{"JOB", "USER", "CLASS", "SUPPLY", "DEMAND", "GRANT", "SERVED", "WAIT",
                            "WAIT%", "ESC", "NODES", "BEYOND", "TREND"},
                           4,
                           11};
layout const of_nodes = {{"NODE", "ROLE", "STATE", "SUPPLY", "GRANT", "SERVED", "AGE", "JOBS"}, 4};

std::vector<std::size_t> widths_of(layout const& l, std::vector<table_row> const& rows,
                                   unsigned columns) {
  std::vector<std::size_t> width;
  for (std::size_t i = 0; i < l.title.size(); ++i) {
    width.push_back(l.title[i].size());
    for (auto const& row : rows) width[i] = std::max(width[i], row.cell[i].size());
  }
  if (columns == 0) return width;
  std::size_t total = width.size() - 1;
  for (auto w : width) total += w;
  for (; total > columns; --total) {
    auto const widest = std::max_element(width.begin(), width.begin() + std::ptrdiff_t(l.texts));
    if (*widest <= least_cell) break;
    --*widest;
  }
  return width;
}

bool is_empty(std::vector<table_row> const& rows, std::size_t column) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](auto const& row) { return row.cell[column].empty(); });
}

bool has_room(layout const& l, std::vector<table_row> const& rows, unsigned columns) {
  auto const width = widths_of(l, rows, 0);
  std::size_t const total = std::accumulate(width.begin(), width.end(), width.size() - 1);
  return columns == 0 || total <= columns;
}

void leave_out(layout& l, std::vector<table_row>& rows, std::size_t column) {
  auto const at = static_cast<std::ptrdiff_t>(column);
  l.title.erase(l.title.begin() + at);
  for (auto& row : rows) row.cell.erase(row.cell.begin() + at);
}

/// Columns without a text, and those at the end for which others would have to give way.
void leave_out_idle(layout& l, std::vector<table_row>& rows, unsigned columns) {
  for (std::size_t i = l.title.size(); i-- > l.sure;)
    if (is_empty(rows, i)) leave_out(l, rows, i);
  while (l.title.size() > l.sure && !has_room(l, rows, columns))
    leave_out(l, rows, l.title.size() - 1);
}

std::string join_cells(layout const& l, cells const& cell, std::vector<std::size_t> const& width,
                       unsigned columns) {
  std::string out;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    if (i != 0) out += ' ';
    // What was cut says so.
    std::string const text =
        cell[i].size() <= width[i] ? cell[i] : cell[i].substr(0, width[i] - 1) + "~";
    out +=
        i < l.texts ? fmt::format("{:<{}}", text, width[i]) : fmt::format("{:>{}}", text, width[i]);
  }
  if (columns != 0 && out.size() > columns) out.resize(columns);
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

template <typename Row>
void add_table(top_frame& frame, layout l, std::vector<Row> const& rows, unsigned columns) {
  std::vector<table_row> cells;
  for (auto const& row : rows) cells.push_back(row_of(row));
  leave_out_idle(l, cells, columns);
  auto const width = widths_of(l, cells, columns);
  frame.columns = {join_cells(l, l.title, width, columns), line_style::heading};
  for (auto const& row : cells)
    frame.rows.push_back({join_cells(l, row.cell, width, columns), row.style, row.job, row.supply,
                          row.is_paused, row.is_own});
}

// ---- the head ----

/// `#` is served, `=` granted beyond that, `-` given to nobody.
std::string bar(supply_row const& s, unsigned width) {
  double const whole = std::max({s.capacity, s.granted, s.served});
  if (whole <= 0) return std::string(width, ' ');
  auto const part = [&](double amount) {
    return static_cast<unsigned>(std::lround(std::clamp(amount / whole, 0.0, 1.0) * width));
  };
  unsigned const served = part(s.served), granted = std::max(part(s.granted), served);
  return std::string(served, '#') + std::string(granted - served, '=') +
         std::string(width - granted, '-');
}

line supply_line(supply_row const& s, std::size_t name_width, unsigned columns) {
  core::unit_kind const unit = policy::unit_of_supply(s.supply);
  std::string const numbers =
      fmt::format("served {} granted {} of {}, demand {}", short_number(s.served, unit),
                  short_number(s.granted, unit), rate_words(s.capacity, unit),
                  s.demand ? short_number(*s.demand, unit) : "any");
  std::string text = fmt::format("{:<{}} ", s.supply, name_width);
  auto const taken = unsigned(text.size() + numbers.size()) + 3;
  if (columns == 0 || (columns >= narrow && columns >= taken + least_cell))
    text += fmt::format("[{}] ",
                        bar(s, columns == 0 ? widest_bar : std::min(widest_bar, columns - taken)));
  text += numbers;
  if (columns != 0 && text.size() > columns) text.resize(columns);
  return {text, line_style::supply};
}

line why_line(supply_row const& s, std::size_t name_width, unsigned columns) {
  std::string text = std::string(name_width + 1, ' ') + s.why;
  if (columns != 0 && text.size() > columns) text.resize(columns);
  return {text, line_style::supply};
}

std::string nodes_in_words(picture const& p) {
  std::vector<std::string> names, silent;
  for (auto const& n : p.nodes) {
    names.push_back(n.node);
    if (n.state != "live") silent.push_back(n.node);
  }
  auto const different = [](std::vector<std::string>& v) {
    std::sort(v.begin(), v.end());
    return std::unique(v.begin(), v.end()) - v.begin();
  };
  if (names.empty()) return {};
  auto const silent_count = different(silent);
  auto const count = different(names);
  return fmt::format(", {} node{}{}", count, count == 1 ? "" : "s",
                     silent_count == 0 ? "" : fmt::format(" ({} silent)", silent_count));
}

std::string order_in_words(top_choice const& choice) {
  for (auto const& k : top_keys())
    if (k.key == choice.sort && k.order != nullptr)
      return fmt::format("by {}{}", k.order, choice.reversed ? ", reversed" : "");
  return {};
}

line title_line(picture const& p, top_choice const& choice, top_source const& source,
                unsigned columns) {
  // What matters most comes first: a narrow screen cuts the rest.
  std::string text = fmt::format("sluice top {}  {}", source.clock, source.daemon);
  if (!source.note.empty()) text += "  [" + source.note + "]";
  if (!choice.filter.empty()) text += "  /" + choice.filter;
  if (choice.active_only) text += "  active only";
  text += fmt::format("  {}  {} job{}{}", order_in_words(choice), p.jobs, p.jobs == 1 ? "" : "s",
                      nodes_in_words(p));
  if (p.cycle != 0) text += fmt::format("  cycle {}", p.cycle);
  if (columns != 0 && text.size() > columns) text.resize(columns);
  return {text, source.note.empty() ? line_style::title : line_style::alarm};
}

}  // namespace

std::string trend(std::vector<double> const& lately) {
  constexpr std::string_view shades = " .:-=+*#";
  if (lately.empty()) return {};
  double const most = *std::max_element(lately.begin(), lately.end());
  std::string out(most_lately - std::min(most_lately, lately.size()), ' ');
  for (double v : lately) {
    double const part = most > 0 && v > 0 ? v / most : 0;
    out += shades[static_cast<std::size_t>(std::ceil(part * double(shades.size() - 1)))];
  }
  return "|" + out + "|";
}

top_frame draw(picture const& p, top_choice const& choice, top_source const& source,
               unsigned columns) {
  top_frame frame;
  frame.head.push_back(title_line(p, choice, source, columns));
  std::size_t name_width = 0;
  for (auto const& s : p.supplies) name_width = std::max(name_width, s.supply.size());
  for (auto const& s : p.supplies) {
    frame.head.push_back(supply_line(s, name_width, columns));
    if (!s.why.empty()) frame.head.push_back(why_line(s, name_width, columns));
  }
  if (choice.nodes)
    add_table(frame, of_nodes, chosen(p.nodes, choice), columns);
  else
    add_table(frame, of_streams, chosen(p.streams, choice), columns);
  return frame;
}

std::vector<top_key> const& top_keys() {
  static std::vector<top_key> const keys = {
      {'w', "waiting", "by the amount that waits"},
      {'s', "served", "by the amount served"},
      {'g', "grant", "by grant"},
      {'d', "demand", "by demand (any: no bound is known)"},
      {'e', "escaped", "by unmetered processes"},
      {'j', "job", "by name"},
      {'u', "user", "by user"},
      {'c', "class", "by QoS class"},
      {'r', nullptr, "in reverse order"},
      {'\r', nullptr, "explain the job of the row"},
      {'t', nullptr, "calls of the job of the row, and how long they took"},
      {'p', nullptr, "pause or resume the job of the row"},
      {'n', nullptr, "nodes, or jobs again"},
      {'o', nullptr, "only active rows, or all again"},
      {'/', nullptr, "filter: a text, or job= user= class= supply= node=; Esc ends it"},
      {'+', nullptr, "less often"},
      {'-', nullptr, "more often"},
      {' ', nullptr, "freeze the screen, or go on"},
      {'?', nullptr, "this help"},
      {'q', nullptr, "quit"},
  };
  return keys;
}

char sort_key(std::string const& order) {
  std::vector<std::string> known;
  for (auto const& k : top_keys()) {
    if (k.order == nullptr) continue;
    if (order == k.order || order == std::string(1, k.key)) return k.key;
    known.emplace_back(k.order);
  }
  throw usage_error(fmt::format("top: no order \"{}\"{}", order, did_you_mean(order, known)));
}

}  // namespace sluice::cli
