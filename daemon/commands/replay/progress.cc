// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::replay {

namespace {

constexpr double between_s = 0.2;  // two looks at the line
constexpr double rate_over_s = 1;

std::string rate_text(double x) {
  if (x >= 1e6) return fmt::format("{:.2f} M/s", x / 1e6);
  if (x >= 1e4) return fmt::format("{:.0f} k/s", x / 1e3);
  return fmt::format("{:.0f} /s", x);
}

std::string lag_text(double s) {
  return s < 1 ? fmt::format("{:.1f} ms", s * 1e3) : fmt::format("{:.1f} s", s);
}

}  // namespace

std::string progress_line(progress_facts const& f, unsigned columns) {
  double const share = f.length_s > 0 ? std::clamp(f.now_s / f.length_s, 0.0, 1.0) : 1;
  std::string const tail = fmt::format(
      " {:>3.0f}% {}/{}  {} sent, {}  lag {}", share * 100, terminal_line::clock(f.now_s),
      terminal_line::clock(f.length_s), f.sent, rate_text(f.sent_per_s), lag_text(f.lag_s));
  std::size_t const room = columns > tail.size() ? columns - tail.size() : 0;
  std::string const line = terminal_line::bar(share, room) + tail;
  return line.substr(0, columns > 1 ? columns - 1 : 0);
}

void progress::show(double now_s, double length_s, std::uint64_t sent, double lag_s) {
  if (!is_shown() || now_s - last_s_ < between_s) return;
  double const now_rate = static_cast<double>(sent - last_sent_) / (now_s - last_s_);
  double const weight = std::min(1.0, (now_s - last_s_) / rate_over_s);
  rate_ += weight * (now_rate - rate_);
  last_s_ = now_s;
  last_sent_ = sent;
  line_.say(progress_line({now_s, length_s, rate_, sent, lag_s}, line_.columns()));
}

}  // namespace sluice::replay
