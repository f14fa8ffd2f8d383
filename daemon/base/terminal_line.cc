// SPDX-License-Identifier: Apache-2.0
#include "base/terminal_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/on_stderr.h"

namespace sluice {

terminal_line::terminal_line(bool quiet) : shown_(!quiet && isatty(STDERR_FILENO) == 1) {}

terminal_line::~terminal_line() {
  if (dirty_) say("");
}

void terminal_line::say(std::string const& words) {
  if (!shown_) return;
  on_stderr("\r{}\033[K", words);
  std::fflush(stderr);
  dirty_ = !words.empty();
}

unsigned terminal_line::columns() const {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

std::string terminal_line::bar(double share, std::size_t room) {
  if (room <= 12) return {};
  std::size_t const width = std::min<std::size_t>(30, room - 3);
  auto const full = static_cast<std::size_t>(share * static_cast<double>(width));
  return "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
}

std::string terminal_line::clock(double seconds) {
  auto const whole = static_cast<std::uint64_t>(std::max(0.0, seconds));
  return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                       : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace sluice
