// SPDX-License-Identifier: Apache-2.0
// One line on the terminal that says how far something long has come. Elsewhere nothing is printed.
#pragma once

#include <string>

namespace sluice {

class terminal_line {
 public:
  /// Shown on standard error, when that is a terminal and nobody asked for quiet.
  explicit terminal_line(bool quiet);
  /// Wipes it.
  ~terminal_line();
  terminal_line(terminal_line const&) = delete;
  terminal_line& operator=(terminal_line const&) = delete;

  bool is_shown() const { return shown_; }
  /// In place of what it said; no wider than columns().
  void say(std::string const& words);
  unsigned columns() const;

  /// `[####....]`, no wider than a third of a line; nothing when `room` is too small for it.
  static std::string bar(double share, std::size_t room);
  /// `0:07`, `12:34`, `1:02:03`.
  static std::string clock(double seconds);

 private:
  bool shown_;
  bool dirty_ = false;
};

}  // namespace sluice
