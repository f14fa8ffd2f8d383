// SPDX-License-Identifier: Apache-2.0
// What the fuzzers of traces have in common: any bytes are a trace, or are refused with a sentence
// for the user; a trace that was read is written and read back as it was.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>

#include "base/error.h"
#include "commands/trace/convert.h"
#include "commands/trace/info.h"

namespace sluice::trace {

inline void check_sound(trace const& t) {
  if (!(t.interval_s > 0) || t.columns.empty() || t.counts.empty()) std::abort();
  for (auto const& row : t.counts) {
    if (row.size() != t.columns.size()) std::abort();
    for (double count : row)
      if (!std::isfinite(count) || count < 0) std::abort();
  }
}

inline void check_round(trace const& t, form f) {
  std::stringstream text;
  write(t, text, f);
  trace const again = read(text, "again");
  if (again.counts.size() != t.counts.size()) std::abort();
  double here = 0, there = 0;
  for (auto const& row : t.counts)
    for (double count : row) here += count;
  for (auto const& row : again.counts)
    for (double count : row) there += count;
  if (std::abs(here - there) > 1e-6 * here) std::abort();
}

/// Small ones only: a fuzzer wants many.
inline void check(trace const& t) {
  check_sound(t);
  if (t.counts.size() * t.columns.size() > 20000) return;
  check_round(t, form::wide);
  check_round(t, form::long_rows);
  info_table(t, "x", spark::ascii);
  info_json(t, "x");
}

/// A converter reads files: this one is in memory, and goes with the process.
inline std::string file_with(unsigned char const* data, std::size_t size) {
  static int const fd = memfd_create("input", MFD_CLOEXEC);
  bool const is_written =
      fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == static_cast<ssize_t>(size);
  if (!is_written) std::abort();
  return "/proc/self/fd/" + std::to_string(fd);
}

/// The first byte chooses the options.
inline int fuzz_converter(converter convert, char const* jobs_by, unsigned char const* data,
                          std::size_t size) {
  if (size == 0) return 0;
  convert_options options;
  options.intervals_max = 5000;
  if (data[0] & 1) options.jobs_by = jobs_by;
  if (data[0] & 2) options.below = "/scratch";
  if (data[0] & 4) options.unordered = true;
  if (data[0] & 8) options.interval_s = 60;
  try {
    check(convert({file_with(data + 1, size - 1)}, options));
  } catch (error const& e) {
    if (e.status() != exit_usage) std::abort();
  }
  return 0;
}

}  // namespace sluice::trace
