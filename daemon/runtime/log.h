// SPDX-License-Identifier: Apache-2.0
// One line per event on standard error: `level event key=value …`, with the sd-daemon prefix `<N>`
// under systemd. An event is a constant text, and values that vary go into the fields. So a flood
// of one event (of a faulty peer) can be cut short and counted, and lines can be searched.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>

namespace sluice::runtime {

enum class level : std::uint8_t { error, warning, info, debug };

/// Throws a usage error.
level parse_level(std::string_view text);
char const* name_of(level l);

/// key=value; texts with blanks or quotes are quoted when written.
struct field {
  std::string_view key;
  std::string value;

  template <typename T>
  field(std::string_view k, T const& v) : key(k) {
    if constexpr (std::is_same_v<T, bool>)
      value = v ? "yes" : "no";
    else if constexpr (std::is_integral_v<T>)
      value = std::to_string(v);
    else if constexpr (std::is_floating_point_v<T>)
      value = text_of(v);
    else
      value = std::string_view(v);
  }

 private:
  static std::string text_of(double d);
};

using fields = std::initializer_list<field>;

/// Of one thread: the loop's.
class logger {
 public:
  using sink = std::function<void(std::string_view line)>;
  using clock = std::function<std::int64_t()>;

  /// To standard error, with prefixes where systemd reads it.
  explicit logger(level most = level::info);
  /// For tests: lines without newline, time as given.
  logger(level most, sink to, clock now);

  void write(level l, std::string_view event, fields f = {});
  void error(std::string_view event, fields f = {}) { write(level::error, event, f); }
  void warning(std::string_view event, fields f = {}) { write(level::warning, event, f); }
  void info(std::string_view event, fields f = {}) { write(level::info, event, f); }
  void debug(std::string_view event, fields f = {}) { write(level::debug, event, f); }

  void set_level(level most) { most_ = most; }
  bool shows(level l) const { return l <= most_; }
  std::uint64_t count(level l) const { return counts_[static_cast<unsigned>(l)]; }

 private:
  struct flood {
    std::int64_t since_ns = 0;
    std::uint32_t written = 0;
    std::uint64_t left_out = 0;
  };

  bool may_write(level l, std::string_view event, std::int64_t now_ns, std::uint64_t& left_out);

  level most_;
  sink to_;
  clock now_;
  std::map<std::string, flood, std::less<>> floods_;
  std::uint64_t counts_[4] = {};
  bool has_prefix_ = false;
};

}  // namespace sluice::runtime
