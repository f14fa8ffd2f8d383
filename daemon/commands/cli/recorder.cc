// SPDX-License-Identifier: Apache-2.0
// A day of seconds is kept in memory; when a program runs longer, pairs of rows become one and the
// interval doubles.
#include "commands/cli/recorder.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::cli {

namespace {

constexpr std::size_t most_rows = 86400;

/// Of core::op; -1 where a trace counts no such thing (seek, map).
std::array<int, core::op_count> columns_of_ops() {
  std::array<int, core::op_count> column = {};
  for (unsigned i = 0; i < core::op_count; ++i) {
    auto const op = trace::find_op(core::op_table[i].name);
    column[i] = op ? static_cast<int>(*op) : -1;
  }
  return column;
}

std::string command_text(std::vector<std::string> const& command) {
  return fmt::format("{}", fmt::join(command, " ")).substr(0, 1000);
}

}  // namespace

void recorder::add_to_facts(sample const& s) {
  auto const add = [&](core::op op, auto& to) {
    auto const& sum = s.op[static_cast<unsigned>(op)];
    to.calls += static_cast<double>(sum.calls);
    to.bytes += static_cast<double>(sum.bytes);
  };
  add(core::op::read, read_);
  add(core::op::write, write_);
  for (auto const& op : s.op) {
    calls_ += op.calls;
    errors_ += op.errors;
  }
}

void recorder::take(sample const& s) {
  static auto const column = columns_of_ops();
  std::size_t const at = s.index / samples_per_row_;
  if (at >= most_rows) {
    for (std::size_t i = 0; i < rows_.size(); i += 2) {
      row sum = rows_[i];
      for (unsigned op = 0; i + 1 < rows_.size() && op < sum.size(); ++op)
        sum[op] += rows_[i + 1][op];
      rows_[i / 2] = sum;
    }
    rows_.resize((rows_.size() + 1) / 2);
    samples_per_row_ *= 2;
    return take(s);
  }
  if (at >= rows_.size()) rows_.resize(at + 1);
  for (unsigned i = 0; i < core::op_count && i < s.op.size(); ++i) {
    if (column[i] < 0) continue;
    auto const& op = s.op[i];
    rows_[at][static_cast<unsigned>(column[i])] +=
        static_cast<double>(core::op_table[i].has_bytes ? op.bytes : op.calls);
  }
  add_to_facts(s);
}

trace::trace recorder::result(std::vector<std::string> const& command, double start_unix_s) const {
  trace::trace t;
  t.start_unix_s = start_unix_s;
  t.interval_s = interval_s_ * static_cast<double>(samples_per_row_);
  std::vector<unsigned> ops;
  for (unsigned op = 0; op < trace::op_count; ++op)
    if (std::any_of(rows_.begin(), rows_.end(), [op](row const& r) { return r[op] != 0; }))
      ops.push_back(op);
  t.facts.emplace_back("title", command_text(command));
  t.facts.emplace_back("provenance", "sluice run --record, counted at libc's calls");
  t.facts.emplace_back("synthetic", "no");
  if (ops.empty()) {
    ops.push_back(0);
    t.facts.emplace_back("note", "no call of the program was seen");
  }
  if (calls_ != 0)
    t.facts.emplace_back("note", fmt::format("{} calls, of which {} failed", calls_, errors_));
  if (read_.calls != 0)
    t.facts.emplace_back("read_size", fmt::format("{:.0f}", read_.bytes / read_.calls));
  if (write_.calls != 0)
    t.facts.emplace_back("write_size", fmt::format("{:.0f}", write_.bytes / write_.calls));
  for (unsigned op : ops) t.columns.push_back({"", op});
  for (row const& r : rows_) {
    auto& counts = t.counts.emplace_back();
    for (unsigned op : ops) counts.push_back(r[op]);
  }
  return t;
}

}  // namespace sluice::cli
