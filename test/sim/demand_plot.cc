// SPDX-License-Identifier: Apache-2.0
// Bars above: what jobs got less than the ideal, by cause. Lines below: how a job that was idle
// comes to its share, over a logarithm of time. Numbers are printed with a fixed number of digits,
// so the same figures make the same file.
#include "demand_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sluice::sim {
namespace {

constexpr double width = 960, panel_width = 320, row = 19, top = 64, line_height = 240;
constexpr double name_width = 92, bar_width = 176, most = 0.8;
constexpr double left = 62, right = 150, first_s = 0.05, last_s = 120;

std::string text(double x, double y, std::string_view what, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, more, what);
}

std::string box(double x, double y, double w, double h, std::string_view fill) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
      "stroke=\"#000\" stroke-width=\"0.6\"/>\n",
      x, y, std::max(w, 0.0), h, fill);
}

std::string rule(double x1, double y1, double x2, double y2, std::string_view colour) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
      y2, colour);
}

std::string bars(plot_panel const& panel, double x) {
  double const zero = x + name_width, bottom = top + row * static_cast<double>(panel.bars.size());
  double const scale = bar_width / most;
  std::string out = text(zero, top - 10, panel.title, "font-weight=\"bold\"");
  for (int percent = 0; percent <= 80; percent += 20) {
    double const at = zero + percent / 100.0 * scale;
    out += rule(at, top - 4, at, bottom, "#bbb");
    out += text(at, bottom + 14, fmt::format("{} %", percent), "text-anchor=\"middle\"");
  }
  double y = top;
  for (plot_bar const& bar : panel.bars) {
    double const wasted = std::min(bar.wasted, most) * scale;
    double const unfair = std::min(bar.unfair, most - std::min(bar.wasted, most)) * scale;
    out += text(zero - 6, y + 12, bar.name, "text-anchor=\"end\"");
    out += box(zero, y + 2, wasted, row - 6, "#0072b2");
    out += box(zero + wasted, y + 2, unfair, row - 6, "url(#hatch)");
    out += text(zero + wasted + unfair + 4, y + 12, fmt::format("{:.1f}", 100 * bar.shortfall));
    y += row;
  }
  return out;
}

constexpr char const* colours[] = {"#000000", "#d55e00", "#0072b2", "#009e73"};
constexpr char const* dashes[] = {"none", "9 4", "2 3", "12 3 2 3"};

std::string curve(plot_line const& line, std::size_t index, double y0) {
  double const x_scale = (width - left - right) / std::log(last_s / first_s);
  std::string points;
  double next = 0;
  for (std::size_t i = 0; i < line.points.size(); ++i) {
    double const t = 0.05 * static_cast<double>(i + 1);
    double const x = left + x_scale * std::log(t / first_s);
    if (x < next || t > last_s) continue;
    next = x + 2;  // no more points than can be seen
    points += fmt::format("{:.1f},{:.1f} ", x,
                          y0 + line_height * (1 - std::min(line.points[i], 1.1) / 1.1));
  }
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" "
      "stroke-dasharray=\"{}\"/>\n",
      points, colours[index % 4], dashes[index % 4]);
}

std::string legend(plot_line const& line, std::size_t index, double y) {
  return fmt::format(
             "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
             "stroke-width=\"2\" stroke-dasharray=\"{}\"/>\n",
             width - right + 12, y - 4, width - right + 50, y - 4, colours[index % 4],
             dashes[index % 4]) +
         text(width - right + 56, y, line.name);
}

std::string lines_panel(std::vector<plot_line> const& lines, double y0) {
  double const x_scale = (width - left - right) / std::log(last_s / first_s);
  std::string out =
      text(left, y0 - 12, "A job back from idle, three others saturated: served, of its fair share",
           "font-weight=\"bold\"");
  for (int percent : {0, 50, 95, 100}) {
    double const y = y0 + line_height * (1 - percent / 110.0);
    out += rule(left, y, width - right, y, percent == 95 ? "#666" : "#bbb");
    out += text(left - 6, percent == 95 ? y + 9 : y + 2, fmt::format("{} %", percent),
                "text-anchor=\"end\"");
  }
  for (double t : {0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 120.0}) {
    double const x = left + x_scale * std::log(t / first_s);
    out += rule(x, y0, x, y0 + line_height, "#ddd");
    out += text(x, y0 + line_height + 15,
                t < 1 ? fmt::format("{:g} ms", t * 1000) : fmt::format("{:g} s", t),
                "text-anchor=\"middle\"");
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += curve(lines[i], i, y0);
    out += legend(lines[i], i, y0 + 24 + 22 * static_cast<double>(i));
  }
  return out;
}

}  // namespace

std::string draw(std::vector<plot_panel> const& panels, std::vector<plot_line> const& lines) {
  std::size_t rows = 0;
  for (plot_panel const& p : panels) rows = std::max(rows, p.bars.size());
  double const y0 = top + row * static_cast<double>(rows) + 70;
  double const height = y0 + line_height + 34;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
      "height=\"{:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<defs><pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"#fff\"/>"
      "<rect width=\"2.4\" height=\"5\" fill=\"#d55e00\"/></pattern></defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height, width, height);
  out += text(12, 22, "What jobs got less than the ideal, % of the ideal:", "font-weight=\"bold\"");
  out += box(392, 12, 22, 12, "#0072b2") + text(420, 22, "nobody got it (wasted)");
  out += box(582, 12, 22, 12, "url(#hatch)") + text(610, 22, "another job got it (unfair)");
  for (std::size_t i = 0; i < panels.size(); ++i)
    out += bars(panels[i], panel_width * static_cast<double>(i));
  out += lines_panel(lines, y0);
  return out + "</svg>\n";
}

}  // namespace sluice::sim
