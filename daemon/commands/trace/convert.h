// SPDX-License-Identifier: Apache-2.0
// Converts files of other tools to a trace. formats.def lists the formats; each has one file.
// What stays true: nothing is executed or opened because a file says so, memory is bounded by the
// limits of trace.h, and errors are reported with file and line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/trace/convert_options.h"
#include "commands/trace/trace.h"

namespace sluice::trace {

using converter = trace (*)(files const& from, convert_options const& options);

struct format_row {
  std::string_view name;
  converter convert;
  std::string_view jobs_by;  // what may name jobs, apart from `file`
  std::string_view sentence;
};

trace from_csv(files const& from, convert_options const& options);
trace from_lustre(files const& from, convert_options const& options);
trace from_strace(files const& from, convert_options const& options);
trace from_iolog(files const& from, convert_options const& options);
trace from_darshan(files const& from, convert_options const& options);
trace from_jsonl(files const& from, convert_options const& options);

inline constexpr format_row format_table[] = {
#define FORMAT(name, jobs_by, sentence) {#name, from_##name, jobs_by, sentence},
#include "commands/trace/formats.def"
};

/// The format with this name. Throws a usage error.
format_row const& format_named(std::string const& name);

/// From the first bytes of the file. Throws a usage error.
format_row const& detect_format(std::string const& path);
/// The same from these bytes; null: none of ours.
format_row const* detect_in(std::string_view begin);

trace convert(format_row const& format, files const& from, convert_options const& options);

/// The bytes of a trace as fio's iolog of version 3, in requests of this size.
void write_iolog(trace const& t, std::string const& path, double request_bytes);

}  // namespace sluice::trace
