// SPDX-License-Identifier: Apache-2.0
#include "commands/report/axis.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "commands/report/words.h"

namespace sluice::report {

namespace {

constexpr double label_width = 150, note_width = 96;

double time_step(double whole_s, unsigned width) {
  static constexpr double steps[] = {0.001, 0.01, 0.1,   0.5,   1,     2,     5,      10,
                                     15,    30,   60,    120,   300,   600,   900,    1800,
                                     3600,  7200, 10800, 21600, 43200, 86400, 172800, 604800};
  double const most = std::max(3.0, width / 110.0);
  for (double step : steps)
    if (whole_s / step <= most) return step;
  return whole_s / most;
}

/// Four digits are what anybody reads under a pointer.
nlohmann::json rounded(double v) {
  if (std::isnan(v)) return nullptr;
  if (v == 0) return 0;
  double const scale = std::pow(10, 3 - std::floor(std::log10(v)));
  double const out = std::isfinite(scale) ? std::round(v * scale) / scale : v;
  if (out == std::floor(out) && out < 1e15) return static_cast<std::int64_t>(out);
  return out;
}

}  // namespace

plot plot_of(frame const& f, std::size_t merge, double top, double height) {
  plot p;
  p.left = label_width;
  p.top = top;
  p.width = f.width - label_width - note_width;
  p.height = height;
  p.right = p.left + p.width;
  p.column = f.intervals == 0
                 ? 0
                 : p.width * static_cast<double>(merge) / static_cast<double>(f.intervals);
  return p;
}

double nice_top(double most, std::string const& unit) {
  if (!(most > 0)) return 1;
  double const base =
      unit == "bytes" ? std::pow(1024, std::floor(std::log(most) / std::log(1024))) : 1;
  double const value = most / base;
  double const ten = std::pow(10, std::floor(std::log10(value)));
  for (double step : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0})
    if (value <= step * ten * 1.0001) return step * ten * base;
  return most;
}

std::string time_axis(frame const& f, plot const& p, double y) {
  double const whole_s = static_cast<double>(f.intervals) * f.interval_s;
  std::string out =
      fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"axis\"/>", p.left, y, p.right);
  if (!(whole_s > 0)) return out;
  double const step = time_step(whole_s, f.width);
  for (int i = 0; i <= 40 && i * step <= whole_s * 1.0001; ++i) {
    double const s = i * step, x = p.left + p.width * s / whole_s;
    std::string const label = step < 1 ? fmt::format("{:.3g} s", s) : clock_text(s);
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}v4\" class=\"axis\"/>"
        "<text x=\"{0:.1f}\" y=\"{2:.1f}\" class=\"tick\">{3}</text>",
        x, y, y + 15, label);
  }
  return out + "\n";
}

std::string value_axis(plot const& p, double top, std::string const& unit) {
  std::string out;
  for (int i = 0; i <= 2; ++i) {
    double const value = top * i / 2, y = p.y(value, top);
    out += fmt::format(
        "<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"grid\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"label\">{}</text>\n",
        p.left, y, p.right, p.left - 8, y + 4, rate_text(value, unit));
  }
  return out;
}

std::string hover_text(frame const& f, plot const& p, std::size_t merge,
                       std::vector<hover_row> const& rows) {
  nlohmann::json out = {{"left", p.left},
                        {"column", p.column},
                        {"right", p.right},
                        {"step", f.interval_s * static_cast<double>(merge)},
                        {"rows", nlohmann::json::array()}};
  for (hover_row const& row : rows) {
    nlohmann::json values = nlohmann::json::array();
    for (double v : row.values) values.push_back(rounded(v));
    out["rows"].push_back(
        {{"label", plain(row.label, 60)}, {"unit", row.unit}, {"values", values}});
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sluice::report
