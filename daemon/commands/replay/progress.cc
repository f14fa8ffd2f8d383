// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sluice::replay {

namespace {

constexpr double between_s = 0.2;  // two looks at the line
constexpr double rate_over_s = 1;

std::string clock_text(double s) {
  auto const whole = static_cast<std::uint64_t>(std::max(0.0, s));
  return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                       : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string rate_text(double x) {
  if (x >= 1e6) return fmt::format("{:.2f} M/s", x / 1e6);
  if (x >= 1e4) return fmt::format("{:.0f} k/s", x / 1e3);
  return fmt::format("{:.0f} /s", x);
}

std::string lag_text(double s) {
  return s < 1 ? fmt::format("{:.1f} ms", s * 1e3) : fmt::format("{:.1f} s", s);
}

unsigned terminal_columns() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace

std::string progress_line(progress_facts const& f, unsigned columns) {
  double const share = f.length_s > 0 ? std::clamp(f.now_s / f.length_s, 0.0, 1.0) : 1;
  std::string const tail =
      fmt::format(" {:>3.0f}% {}/{}  {} sent, {}  lag {}", share * 100, clock_text(f.now_s),
                  clock_text(f.length_s), f.sent, rate_text(f.sent_per_s), lag_text(f.lag_s));
  std::string line;
  if (columns > tail.size() + 12) {
    std::size_t const width = std::min<std::size_t>(30, columns - tail.size() - 3);
    auto const full = static_cast<std::size_t>(share * static_cast<double>(width));
    line = "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
  }
  return (line + tail).substr(0, columns > 1 ? columns - 1 : 0);
}

progress::progress(bool quiet) : shown_(!quiet && isatty(STDERR_FILENO) == 1) {}

progress::~progress() {
  if (dirty_) draw("");
}

void progress::draw(std::string const& line) {
  fmt::print(stderr, "\r{}\033[K", line);
  std::fflush(stderr);
  dirty_ = !line.empty();
}

void progress::say(std::string const& words) {
  if (shown_) draw(words);
}

void progress::show(double now_s, double length_s, std::uint64_t sent, double lag_s) {
  if (!shown_ || now_s - last_s_ < between_s) return;
  double const now_rate = static_cast<double>(sent - last_sent_) / (now_s - last_s_);
  double const weight = std::min(1.0, (now_s - last_s_) / rate_over_s);
  rate_ += weight * (now_rate - rate_);
  last_s_ = now_s;
  last_sent_ = sent;
  draw(progress_line({now_s, length_s, rate_, sent, lag_s}, terminal_columns()));
}

}  // namespace sluice::replay
