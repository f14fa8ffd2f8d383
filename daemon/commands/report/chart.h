// SPDX-License-Identifier: Apache-2.0
// Drawings as SVG text. Colours are classes of the page's style sheet, so that a drawing fits
// light, dark and paper; things that differ by colour differ by pattern, dash or label too. Names
// are escaped here, numbers are finite.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "commands/report/axis.h"
#include "commands/report/result.h"

namespace sluice::report {

struct heat_row {
  std::string label, unit;
  std::string note;            // at the right end
  std::vector<double> values;  // a rate per interval
};

/// One row per thing, darker means more, each row by its own scale or all by one. `hue`: 0 of use,
/// 1 of waiting.
std::string heatmap(frame const& f, std::vector<heat_row> const& rows, int hue, bool one_scale,
                    std::string const& title);

enum class stroke : std::uint8_t { area, solid, dashed, dotted, dash_dot };

struct line {
  std::string label;
  stroke as = stroke::solid;
  std::vector<double> values;
  double cut = std::numeric_limits<double>::infinity();  // drawn no higher; the values are told
};

/// What was so in a part of each interval (0 to 1); each may be empty.
struct marks {
  std::vector<double> blocked;  // something waited: a hatched strip below the lines
  std::vector<double> paused;   // somebody had paused the job: a band behind them
};

/// Lines over time.
std::string lines(frame const& f, std::string const& unit, std::vector<line> const& rows,
                  marks const& when, std::string const& title, double top = 0);

/// Areas on each other, the first at the bottom, and a line above them (may be empty).
std::string stack(frame const& f, std::string const& unit, std::vector<line> const& rows,
                  std::vector<double> const& capacity, std::string const& title);

/// From when to when each job ran.
std::string spans(frame const& f, std::vector<job_row> const& jobs, std::string const& title);

/// A bar for a table: `part` of 0 to 1.
std::string bar(double part, int hue);

/// A square as the areas of stack() have it.
std::string swatch(std::size_t number);

/// What the drawings refer to; once per page.
std::string chart_definitions();

inline constexpr std::size_t stack_colours = 7;

}  // namespace sluice::report
