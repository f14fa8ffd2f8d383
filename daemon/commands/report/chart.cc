// SPDX-License-Identifier: Apache-2.0
#include "commands/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "commands/report/shape.h"
#include "commands/report/words.h"

namespace sluice::report {

namespace {

constexpr std::size_t heat_columns = 240, line_columns = 480;
constexpr int levels = 8;          // of a heatmap
constexpr double row_height = 20;  // of a heatmap and of spans
constexpr double plot_height = 150, strip_height = 8, axis_height = 22;
constexpr std::size_t label_letters = 22;

std::string begin_svg(frame const& f, double height, std::string const& title,
                      std::string const& hover) {
  return fmt::format(
      "<svg class=\"chart\" viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\""
      " data-hover=\"{}\">\n",
      f.width, height, html(title), html(hover, hover.size()));
}

std::string text(double x, double y, char const* cls, std::string const& escaped) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, cls,
                     escaped);
}

/// 1 to `levels`; the root shows what is small beside what is large.
int level_of(double value, double most) {
  if (!(value > 0) || !(most > 0)) return 0;
  return std::clamp(static_cast<int>(std::ceil(std::sqrt(value / most) * levels)), 1, levels);
}

/// Neighbours of one level are one rectangle.
std::string heat_cells(plot const& p, std::vector<double> const& values, double y, double most,
                       int hue) {
  std::string out;
  auto const level = [&](std::size_t i) {
    return std::isnan(values[i]) ? -1 : level_of(values[i], most);
  };
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i + 1;
    while (end < values.size() && level(end) == level(i)) ++end;
    if (level(i) != 0)
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" class=\"{}\"/>",
          p.x(i), y, p.x(end) - p.x(i), row_height - 3,
          level(i) < 0 ? std::string("unknown") : fmt::format("h{} l{}", hue, level(i)));
    i = end;
  }
  return out + "\n";
}

std::string heat_key(plot const& p, double y, double most, std::string const& unit, int hue,
                     bool one_scale) {
  std::string out;
  for (int l = 1; l <= levels; ++l)
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"10\" "
        "class=\"h{} l{}\"/>",
        p.left + (l - 1) * 14.0, y - 9, hue, l);
  std::string const scale = one_scale
                                ? "0 to " + rate_text(most, unit)
                                : std::string("0 to the most of the row, named at its right end");
  return out + text(p.left + levels * 14 + 8, y, "small", scale);
}

struct path_of {
  std::string d;
  void to(char how, double x, double y) { d += fmt::format("{}{:.1f} {:.1f}", how, x, y); }
};

/// Steps, with gaps where nothing is known.
std::string step_line(plot const& p, std::vector<double> const& values, double top) {
  path_of out;
  bool is_open = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      is_open = false;
      continue;
    }
    double const y = p.y(values[i], top);
    out.to(is_open ? 'L' : 'M', p.x(i), y);
    out.to('L', p.x(i + 1), y);
    is_open = true;
  }
  return out.d;
}

/// The area between two rows of values; unknown counts as nothing.
std::string area(plot const& p, std::vector<double> const& low, std::vector<double> const& high,
                 double top) {
  path_of out;
  auto const known = [](double v) { return std::isnan(v) ? 0 : v; };
  for (std::size_t i = 0; i < high.size(); ++i) {
    out.to(i == 0 ? 'M' : 'L', p.x(i), p.y(known(high[i]), top));
    out.to('L', p.x(i + 1), p.y(known(high[i]), top));
  }
  for (std::size_t i = high.size(); i-- > 0;) {
    double const y = p.y(i < low.size() ? known(low[i]) : 0, top);
    out.to('L', p.x(i + 1), y);
    out.to('L', p.x(i), y);
  }
  return out.d + "Z";
}

constexpr char const* stroke_class[] = {"area", "solid", "dashed", "dotted", "dashdot"};

std::string line_key(plot const& p, std::vector<line> const& rows, marks const& when) {
  std::string out;
  double x = p.left;
  auto const put = [&](std::string const& mark, std::string const& label) {
    out += mark + text(x + 30, 12, "small", html(label, label_letters));
    x += 44 + 6.2 * static_cast<double>(std::min(label.size(), label_letters));
  };
  for (line const& row : rows)
    put(row.as == stroke::area
            ? fmt::format("<rect x=\"{:.1f}\" y=\"4\" width=\"26\" height=\"9\" class=\"area\"/>",
                          x)
            : fmt::format("<path d=\"M{:.1f} 8.5h26\" class=\"line {}\"/>", x,
                          stroke_class[static_cast<int>(row.as)]),
        row.label);
  auto const box = [&](char const* cls) {
    return fmt::format("<rect x=\"{:.1f}\" y=\"4\" width=\"26\" height=\"9\" class=\"{}\"/>", x,
                       cls);
  };
  if (!when.blocked.empty()) put(box("strip"), "something waited");
  if (sum_of(when.paused) > 0) put(box("paused"), "paused by hand");
  return out;
}

/// Where a part of the interval is so, a rectangle; neighbours are one.
std::string stretches(plot const& p, std::vector<double> const& parts, double y, double height,
                      char const* cls) {
  std::string out;
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t end = i + 1;
    auto const is_so = [&](std::size_t at) { return parts[at] > 0.01; };
    while (end < parts.size() && is_so(end) == is_so(i)) ++end;
    if (is_so(i))
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" class=\"{}\"/>",
          p.x(i), y, p.x(end) - p.x(i), height, cls);
    i = end;
  }
  return out;
}

std::vector<line> in_columns(std::vector<line> rows, std::size_t merge) {
  for (line& row : rows) row.values = columns_of(row.values, merge);
  return rows;
}

}  // namespace

std::string heatmap(frame const& f, std::vector<heat_row> const& rows, int hue, bool one_scale,
                    std::string const& title) {
  std::size_t const merge = merged(f.intervals, heat_columns);
  plot const p = plot_of(f, merge, 0, 1);
  double const height = static_cast<double>(rows.size()) * row_height + axis_height + 20;
  double most = 0;
  std::vector<hover_row> hover;
  for (heat_row const& row : rows) most = std::max(most, most_of(columns_of(row.values, merge)));
  std::string body;
  double y = 0;
  for (heat_row const& row : rows) {
    auto const values = columns_of(row.values, merge);
    body += text(p.left - 8, y + 13, "label", html(row.label, label_letters)) +
            heat_cells(p, values, y, one_scale ? most : most_of(values), hue) +
            text(p.left + p.width + 8, y + 13, "note", html(row.note, label_letters));
    hover.push_back({row.label, row.unit, values});
    y += row_height;
  }
  return begin_svg(f, height, title, hover_text(f, p, merge, hover)) + body + time_axis(f, p, y) +
         heat_key(p, height - 2, most, rows.empty() ? "ops" : rows[0].unit, hue, one_scale) +
         "</svg>\n";
}

std::string lines(frame const& f, std::string const& unit, std::vector<line> const& all,
                  marks const& all_marks, std::string const& title, double top) {
  std::size_t const merge = merged(f.intervals, line_columns);
  auto const rows = in_columns(all, merge);
  marks const when = {columns_of(all_marks.blocked, merge), columns_of(all_marks.paused, merge)};
  std::vector<hover_row> hover;
  for (line const& row : rows) {
    top = std::max(top, std::min(most_of(row.values), row.cut));
    hover.push_back({row.label, unit, row.values});
  }
  if (!when.blocked.empty()) hover.push_back({"time with waiting", "part", when.blocked});
  if (sum_of(when.paused) > 0) hover.push_back({"paused by hand", "part", when.paused});
  top = nice_top(top, unit);
  plot const p = plot_of(f, merge, 20, plot_height);
  std::string body = line_key(p, all, when) + stretches(p, when.paused, p.top, p.height, "paused") +
                     value_axis(p, top, unit);
  for (line const& row : rows)
    if (row.as == stroke::area)
      body += fmt::format("<path d=\"{}\" class=\"area\"/>\n", area(p, {}, row.values, top));
  for (line const& row : rows)
    if (row.as != stroke::area)
      body += fmt::format("<path d=\"{}\" class=\"line {}\"/>\n", step_line(p, row.values, top),
                          stroke_class[static_cast<int>(row.as)]);
  double const floor = p.top + p.height;
  body += stretches(p, when.blocked, floor + 2, strip_height - 2, "strip") +
          time_axis(f, p, floor + strip_height);
  return begin_svg(f, floor + strip_height + axis_height, title, hover_text(f, p, merge, hover)) +
         body + "</svg>\n";
}

std::string stack(frame const& f, std::string const& unit, std::vector<line> const& all,
                  std::vector<double> const& capacity, std::string const& title) {
  std::size_t const merge = merged(f.intervals, line_columns);
  auto const rows = in_columns(all, merge);
  auto const above = columns_of(capacity, merge);
  std::vector<hover_row> hover;
  std::vector<std::vector<double>> edges = {{}};
  double top = most_of(above);
  for (line const& row : rows) {
    hover.push_back({row.label, unit, row.values});
    edges.push_back(edges.back());
    add_to(edges.back(), row.values);
    top = std::max(top, most_of(edges.back()));
  }
  if (!above.empty()) hover.push_back({"capacity", unit, above});
  top = nice_top(top, unit);
  plot const p = plot_of(f, merge, 8, plot_height + 40);
  std::string body = value_axis(p, top, unit);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string const d = area(p, edges[i], edges[i + 1], top);
    std::size_t const colour = std::min(i, stack_colours);
    body += fmt::format("<path d=\"{0}\" class=\"s{1}\"/><path d=\"{0}\" fill=\"url(#p{1})\"/>\n",
                        d, colour);
  }
  if (!above.empty())
    body += fmt::format("<path d=\"{}\" class=\"line dashdot\"/>\n", step_line(p, above, top)) +
            text(p.left + p.width + 6, p.y(above.back() > 0 ? above.back() : top, top) + 4, "note",
                 "capacity");
  double const floor = p.top + p.height;
  body += time_axis(f, p, floor);
  return begin_svg(f, floor + axis_height, title, hover_text(f, p, merge, hover)) + body +
         "</svg>\n";
}

std::string spans(frame const& f, std::vector<job_row> const& jobs, std::string const& title) {
  plot const p = plot_of(f, 1, 0, 1);
  std::string body;
  double y = 0;
  double const whole_s = static_cast<double>(f.intervals) * f.interval_s;
  auto const x = [&](double s) { return p.left + p.width * std::clamp(s / whole_s, 0.0, 1.0); };
  for (job_row const& j : jobs) {
    double const from = std::isnan(j.started_s) ? 0 : j.started_s;
    double const to = std::isnan(j.ended_s) ? whole_s : j.ended_s;
    bool const ended = j.finished.value_or(!std::isnan(j.ended_s));
    body += text(p.left - 8, y + 13, "label", html(j.job, label_letters)) +
            fmt::format(
                "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" "
                "class=\"{}\"/>\n",
                x(from), y + 2, std::max(1.0, x(to) - x(from)), row_height - 7,
                ended ? "span" : "span open") +
            text(p.left + p.width + 8, y + 13, "note",
                 ended ? html(seconds_text(to - from)) : "not finished");
    y += row_height;
  }
  return begin_svg(f, y + axis_height, title, "") + body + time_axis(f, p, y) + "</svg>\n";
}

std::string bar(double part, int hue) {
  double const width = std::isnan(part) ? 0 : std::clamp(part, 0.0, 1.0) * 100;
  return fmt::format(
      "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" "
      "aria-hidden=\"true\"><rect width=\"100\" height=\"8\" class=\"rail\"/>"
      "<rect width=\"{:.1f}\" height=\"8\" class=\"h{} l6\"/></svg>",
      width, hue);
}

std::string swatch(std::size_t number) {
  std::size_t const n = std::min(number, stack_colours);
  return fmt::format(
      "<svg class=\"swatch\" viewBox=\"0 0 16 12\" aria-hidden=\"true\">"
      "<rect width=\"16\" height=\"12\" class=\"s{0}\"/>"
      "<rect width=\"16\" height=\"12\" fill=\"url(#p{0})\"/></svg>",
      n);
}

std::string chart_definitions() {
  static constexpr char const* marks[stack_colours + 1] = {"",
                                                           "M0 8L8 0M-2 2L2 -2M6 10L10 6",
                                                           "M0 4H8",
                                                           "M0 0L8 8M-2 6L2 10M6 -2L10 2",
                                                           "M4 0V8",
                                                           "M2 2h1.6v1.6h-1.6zM6 6h1.6v1.6h-1.6z",
                                                           "M0 4H8M4 0V8",
                                                           "M0 8L8 0M0 0L8 8"};
  std::string out = "<svg class=\"definitions\" aria-hidden=\"true\"><defs>\n";
  for (std::size_t i = 0; i <= stack_colours; ++i)
    out += fmt::format(
        "<pattern id=\"p{}\" width=\"8\" height=\"8\" "
        "patternUnits=\"userSpaceOnUse\"><path d=\"{}\" class=\"mark\"/></pattern>\n",
        i, marks[i]);
  out +=
      "<pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
      "<path d=\"M0 5L5 0\" class=\"hatch\"/></pattern>\n";
  return out + "</defs></svg>\n";
}

}  // namespace sluice::report
