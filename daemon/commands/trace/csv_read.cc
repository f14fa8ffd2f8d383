// SPDX-License-Identifier: Apache-2.0
// The CSV form: `# key: value` lines, a line of column names, rows in order of time. Long rows say
// one count, wide ones a count per operation; rows of the same time, job and operation are added.
// What stays true: a row is checked before it is used, and a file that says how many intervals it
// has is refused when it was cut.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "commands/trace/grid.h"
#include "commands/trace/lines.h"
#include "commands/trace/trace.h"

namespace sluice::trace {

namespace {

constexpr double unix_from_s = 1e8;  // as large a time counts from 1970, not from the start
constexpr double off_grid = 0.1;     // of an interval that a time may be beside its place
constexpr std::size_t most_facts = 1000;

enum class role { time, op_name, count, job, label, amount };

struct cell_role {
  role is = role::label;
  unsigned op = 0;
};

struct pending {
  std::string job;
  unsigned op;
  double amount;
};

class csv_reader {
 public:
  csv_reader(std::istream& from, std::string const& name) : lines_(from, name) {}

  trace all() {
    for (std::string_view line; lines_.next(line);) {
      if (lines_.number() == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
      if (trimmed(line).empty()) continue;
      if (line.starts_with('#'))
        header(trimmed(line.substr(1)));
      else if (roles_.empty())
        name_columns(line);
      else
        row(line);
    }
    return finish();
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    lines_.fail(fmt::format(text, std::forward<Args>(args)...));
  }

  void header(std::string_view text) {
    auto const colon = text.find(':');
    std::string_view const key = trimmed(text.substr(0, colon));
    bool const is_key = colon != text.npos && !key.empty() &&
                        key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_-") == key.npos;
    std::string_view const value = is_key ? trimmed(text.substr(colon + 1)) : text;
    if (!is_key || !known_header(key, value)) keep_fact(is_key ? key : "note", value);
  }

  bool known_header(std::string_view key, std::string_view value) {
    if (key == "interval") {
      auto const interval = parse_interval(value);
      if (!interval) fail("the interval is {}; write a time like 60s, 1s or 100ms", shown(value));
      if (!roles_.empty()) fail("the interval stands after the columns; write it above them");
      interval_s_ = *interval;
    } else if (key == "intervals") {
      if (!to_number(value, promised_) || promised_ < 0 || promised_ != std::floor(promised_))
        fail("the number of intervals is {}; leave the line out", shown(value));
    } else if (key == "start_unix_s") {
      if (!to_number(value, start_unix_s_) || std::abs(start_unix_s_) > 1e11)
        fail("the start is {}; write seconds since 1970", shown(value));
    } else if (key == "counts") {
      if (value != "per interval" && value != "per second")
        fail("counts are {}; write per interval or per second", shown(value));
      per_second_ = value == "per second";
    } else {
      return key == "units";
    }
    return true;
  }

  void keep_fact(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    if (facts_.size() == most_facts) fail("more than {} comment lines; shorten them", most_facts);
    facts_.emplace_back(key == "license" ? "licence" : key, value);
  }

  void name_columns(std::string_view line) {
    split(line);
    bool times = false, ops = false, counts = false, amounts = false, job = false;
    for (auto const& name : cells_) {
      if (std::count(cells_.begin(), cells_.end(), name) > 1)
        fail("the column {} is there twice; remove one", shown(name));
      cell_role const r = role_of(name);
      if ((r.is == role::time && times) || (r.is == role::job && job))
        fail("{} is a second column for the same; remove one", shown(name));
      times |= r.is == role::time;
      ops |= r.is == role::op_name;
      counts |= r.is == role::count;
      job |= r.is == role::job;
      amounts |= r.is == role::amount;
      roles_.push_back(r);
    }
    if (!times)
      fail(
          "no column of times; the first line names columns: time_s,op,count[,job] or "
          "time_s,open,close,…[,job]");
    if (ops != counts) fail("op and count go together: time_s,op,count[,job]");
    if (ops == amounts)
      fail("{}", ops ? "either op and count, or one column per operation, not both"
                     : "no operation is counted; write time_s,op,count or time_s,open,close,…");
    is_long_ = ops;
  }

  cell_role role_of(std::string_view name) const {
    if (name == "time_s" || name == "time" || name == "unix_s") return {role::time};
    if (name == "op") return {role::op_name};
    if (name == "count") return {role::count};
    if (name == "job") return {role::job};
    if (name == "mdt" || name == "node" || name == "uid") return {role::label};
    auto const op = find_op(name);
    if (!op) fail("unknown column {}{}", shown(name), op_advice(name));
    return {role::amount, *op};
  }

  void split(std::string_view line) {
    if (!split_cells(line, cells_)) fail("a quote is not closed, or text follows it");
    if (cells_.size() > most_columns) fail("more than {} cells", most_columns);
  }

  double number(std::string_view cell, char const* what) const {
    double value = 0;
    if (!to_number(cell, value)) fail("the {} is {}; write a number", what, shown(cell));
    return value;
  }

  double amount(std::string_view cell, std::string_view of) const {
    double const value = number(cell, "count");
    if (value < 0) fail("{} is {}: a count is never negative", of, cell);
    if (value > most_count) fail("{} is {}: more than {:g}", of, cell, most_count);
    return value;
  }

  void row(std::string_view line) {
    split(line);
    if (cells_.size() != roles_.size())
      fail("{} cells where the columns are {}; was the line cut?", cells_.size(), roles_.size());
    double when = 0, count = 0;
    std::optional<unsigned> op;
    std::string_view job;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      auto const cell = cells_[i];
      if (roles_[i].is == role::time) when = number(cell, "time");
      if (roles_[i].is == role::count) count = amount(cell, "count");
      if (roles_[i].is == role::job) job = cell;
      if (roles_[i].is == role::op_name && !(op = find_op(cell)))
        fail("unknown operation {}{}", shown(cell), op_advice(cell));
    }
    if (char const* why = refuse_name(job)) fail("the job {} {}; rename it", shown(job), why);
    move_to(when);
    if (is_long_) add(job, *op, count);
    for (std::size_t i = 0; !is_long_ && i < cells_.size(); ++i)
      if (roles_[i].is == role::amount)
        add(job, roles_[i].op, amount(cells_[i], op_table[roles_[i].op].name));
  }

  /// Rows come in order of time; the first two times say the interval when the header does not.
  void move_to(double when) {
    if (rows_ == 0) first_s_ = previous_s_ = when;
    ++rows_;
    if (std::abs(when) > 1e11) fail("the time {} is out of range; write seconds", when);
    if (when < previous_s_)
      fail("time {} after {}: out of order; sort the rows by time", when, previous_s_);
    previous_s_ = when;
    if (when == first_s_) return;
    if (interval_s_ == 0) {
      interval_s_ = when - first_s_;
      flush();
    }
    double const place = (when - first_s_) / interval_s_;
    if (!(place < 1e15)) fail("time {} is too far from {}", when, first_s_);
    if (std::abs(place - std::round(place)) > off_grid)
      fail(
          "time {} is no multiple of the interval of {} s from {}; write `# interval: …` above "
          "the columns, or round the times",
          when, interval_s_, first_s_);
    interval_ = static_cast<std::int64_t>(std::llround(place));
  }

  void add(std::string_view job, unsigned op, double value) {
    if (interval_s_ == 0) {
      if (pending_.size() == most_columns) fail("more than {} counts at one time", most_columns);
      pending_.push_back({std::string(job), op, value});
      return;
    }
    put(interval_, job, op, per_second_ ? value * interval_s_ : value);
  }

  void put(std::int64_t interval, std::string_view job, unsigned op, double value) {
    if (char const* why = grid_.add(interval, job, op, value)) fail("{}", why);
  }

  void flush() {
    for (auto const& p : pending_)
      put(0, p.job, p.op, per_second_ ? p.amount * interval_s_ : p.amount);
    pending_.clear();
  }

  trace finish() {
    if (roles_.empty()) fail("no columns: the file is empty or was cut");
    if (rows_ == 0) fail("no rows: the file was cut, or has nothing in it");
    if (interval_s_ == 0) fail("one time only and no interval; write `# interval: 60s` on top");
    if (promised_ >= 0 && (static_cast<double>(interval_ + 1) != promised_ || !lines_.is_whole()))
      fail(
          "the file ends in interval {} of {}: it was cut; fetch it again, or leave out the line "
          "`# intervals:`",
          interval_ + 1, promised_);
    flush();
    trace t = grid_.take(interval_s_);
    t.facts = std::move(facts_);
    t.start_unix_s = start_unix_s_ != 0 ? start_unix_s_ : first_s_ >= unix_from_s ? first_s_ : 0;
    return t;
  }

  lines lines_;
  std::vector<std::string_view> cells_;
  std::vector<cell_role> roles_;  // empty: the columns have not been named yet
  std::vector<pending> pending_;  // of the first time, while the interval is unknown
  std::vector<std::pair<std::string, std::string>> facts_;
  grid grid_;
  bool is_long_ = false, per_second_ = false;
  double interval_s_ = 0, start_unix_s_ = 0, promised_ = -1;
  double first_s_ = 0, previous_s_ = 0;
  std::int64_t interval_ = 0;
  std::size_t rows_ = 0;
};

}  // namespace

trace read(std::istream& from, std::string const& name) { return csv_reader(from, name).all(); }

trace read(std::string const& path) {
  input from(path);
  return read(from.stream(), from.name());
}

}  // namespace sluice::trace
