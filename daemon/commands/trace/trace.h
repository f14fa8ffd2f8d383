// SPDX-License-Identifier: Apache-2.0
// A trace: how many operations of each kind, or how many bytes, were asked for in each interval,
// per job. traces/README.md describes the files; ops.def lists the operations. What stays true:
// every column has a value for every interval, finite and not negative; a refused file is reported
// as `FILE:LINE: what, what to do`, and nothing in a file makes us take more memory than the limits
// below.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/request.h"

namespace sluice::trace {

inline constexpr std::size_t most_columns = 8192;        // jobs × ops
inline constexpr std::size_t most_intervals = 1u << 22;  // 48 days of seconds, 8 years of minutes
inline constexpr std::size_t most_cells = 1u << 25;      // 256 MiB of counts
inline constexpr std::size_t most_line_bytes = 1u << 20;
inline constexpr std::size_t most_name_bytes = 63;  // of a job
inline constexpr double most_count = 1e18;

struct op_row {
  std::string_view name;  // as Lustre spells it
  core::op as;            // class, unit and the call to make: see libinterpose/ops.def
  std::string_view aliases;
  std::string_view sentence;

  core::op_row const& call() const { return core::op_table[static_cast<unsigned>(as)]; }
  bool counts_bytes() const { return call().has_bytes; }
};

inline constexpr op_row op_table[] = {
#define TRACE_OP(name, as, aliases, sentence) {#name, core::op::as, aliases, sentence},
#include "commands/trace/ops.def"
};
inline constexpr unsigned op_count = sizeof op_table / sizeof *op_table;

/// By name or alias.
std::optional<unsigned> find_op(std::string_view name);

/// `; did you mean "open"?` or the list of names.
std::string op_advice(std::string_view name);

struct column {
  std::string job;  // empty: the trace has no jobs
  unsigned op = 0;  // in op_table
  bool operator==(column const&) const = default;
};

struct trace {
  double start_unix_s = 0;  // of the first interval; 0: unknown
  double interval_s = 0;
  std::vector<column> columns;
  std::vector<std::vector<double>> counts;  // [interval][column]: operations or bytes in it
  /// The header: title, source, licence, provenance, synthetic, note … in order, keys may repeat.
  std::vector<std::pair<std::string, std::string>> facts;

  double duration_s() const { return interval_s * static_cast<double>(counts.size()); }
  /// The first fact of that name, or nothing.
  std::string fact(std::string_view key) const;
  /// Job names in order of appearance; one empty name when the trace has no jobs.
  std::vector<std::string> jobs() const;
};

/// Reads a CSV file, long or wide; "-" is standard input. Throws a usage error.
trace read(std::string const& path);

/// The same from a stream; `name` stands in messages.
trace read(std::istream& from, std::string const& name);

enum class form { wide, long_rows };

void write(trace const& t, std::ostream& to, form f = form::wide);

/// To a temporary file beside `path`, renamed when complete; "-" is standard output.
void write(trace const& t, std::string const& path, form f = form::wide);

/// `60s`, `100ms`; or nothing when it is no length of time that a trace may have.
std::optional<double> parse_interval(std::string_view text);

}  // namespace sluice::trace
