// SPDX-License-Identifier: Apache-2.0
// The comparison as a drawing that is read in print and by the colour-blind: every bar and line has
// its name beside it, and patterns as well as colours.
#pragma once

#include <string>
#include <vector>

namespace sluice::sim {

struct plot_bar {
  std::string name;
  double wasted = 0;  // shares
  double unfair = 0;
  double shortfall = 0;  // about their sum
};

struct plot_panel {
  std::string title;
  std::vector<plot_bar> bars;
};

struct plot_line {
  std::string name;
  std::vector<double> points;  // served / ideal of 50 ms each
};

std::string draw(std::vector<plot_panel> const& panels, std::vector<plot_line> const& lines);

}  // namespace sluice::sim
