// SPDX-License-Identifier: Apache-2.0
// Positions in a drawing: the plot inside its labels, axes with round numbers, and the values that
// the script shows under the pointer.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::report {

/// The time axis that all drawings of a result share.
struct frame {
  double interval_s = 1;
  std::size_t intervals = 0;
  unsigned width = 960;  // of the drawing, in its own units
};

struct plot {
  double left = 0, top = 0, width = 0, height = 0;
  double column = 0;  // width of one
  double right = 0;   // no column reaches beyond
  double x(std::size_t i) const {
    double const at = left + column * static_cast<double>(i);
    return at < right ? at : right;
  }
  double y(double value, double most) const {
    double const part = most > 0 ? value / most : 0;
    return top + height * (1 - (part > 1 ? 1 : part));
  }
};

/// `merge` intervals are one column.
plot plot_of(frame const& f, std::size_t merge, double top, double height);

/// A round number at or above `most`; never 0.
double nice_top(double most, std::string const& unit);

std::string time_axis(frame const& f, plot const& p, double y);
std::string value_axis(plot const& p, double top, std::string const& unit);

struct hover_row {
  std::string label, unit;
  std::vector<double> values;
};
/// JSON for the page's script.
std::string hover_text(frame const& f, plot const& p, std::size_t merge,
                       std::vector<hover_row> const& rows);

}  // namespace sluice::report
