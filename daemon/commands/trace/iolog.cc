// SPDX-License-Identifier: Apache-2.0
// fio's iolog: what a job of fio did. Version 3 begins each line with microseconds (fio 3.33; the
// documentation gives no unit), version 2 has `wait` lines instead:
//   fio version 3 iolog
//   228 data.a read 0 65536
// It is written as well: then fio can replay the bytes of a trace.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/output_file.h"
#include "commands/trace/events.h"
#include "commands/trace/paths.h"

namespace sluice::trace {

namespace {

constexpr std::size_t most_words = 8;
constexpr double most_requests = 1e8;
constexpr double wrapped_bytes = 1 << 30;  // where the offsets of an exported log begin again

class iolog_reader {
 public:
  explicit iolog_reader(convert_options const& options)
      : out_(options, "fio"), filter_(options.below) {}

  void read(std::string const& path) {
    input from(path);
    lines text(from.stream(), from.name());
    text_ = &text;
    out_.begin(text);
    now_s_ = 0;
    std::string_view line;
    if (!text.next(line)) text.fail("the file is empty");
    version_ = line == "fio version 3 iolog" ? 3 : line == "fio version 2 iolog" ? 2 : 0;
    if (version_ == 0)
      text.fail(fmt::format("{}: the first line is not `fio version 3 iolog` (or 2)", shown(line)));
    while (text.next(line))
      if (!trimmed(line).empty()) take_line(line);
    text_ = nullptr;
    if (!text.is_whole()) text.fail("the last line does not end: the file was cut");
  }

  trace take() { return out_.take(false); }

 private:
  [[noreturn]] void fail(std::string_view line, char const* what) const {
    text_->fail(fmt::format("{}: {}", shown(line), what));
  }

  double number(std::string_view line, std::string_view word, char const* what) const {
    double value = 0;
    if (!to_number(word, value)) fail(line, what);
    if (value < 0) fail(line, "a negative number");
    if (value > most_count) fail(line, "a number above 1e18");
    return value;
  }

  void take_line(std::string_view line) {
    auto words = words_of(line, most_words);
    if (version_ == 3) {
      now_s_ = number(line, words[0], "no time in microseconds begins the line") / 1e6;
      out_.arrive(now_s_, 0);
      words.erase(words.begin());
    }
    if (words.size() != 2 && words.size() != 4)
      fail(line, "neither FILE ACTION nor FILE ACTION OFFSET LENGTH; was the line cut?");
    bool const counts = filter_.counts(words[0], "");
    if (words.size() == 2)
      file_action(line, words[1], counts);
    else
      request(line, words, counts);
  }

  void file_action(std::string_view line, std::string_view action, bool counts) {
    if (action != "add" && action != "open" && action != "close")
      fail(line, "unknown action; with a file alone there are add, open, close");
    if (action != "add" && counts) out_.count(now_s_, *find_op(action));
  }

  void request(std::string_view line, std::vector<std::string_view> const& words, bool counts) {
    auto const action = words[1];
    double const offset = number(line, words[2], "no number for the offset");
    double const length = number(line, words[3], "no number for the length");
    if (action == "wait" && version_ == 2)
      now_s_ += offset / 1e6;
    else if (action == "read" || action == "write")
      counts ? out_.transfer(now_s_, action, length) : void();
    else if (action == "sync" || action == "datasync")
      counts ? out_.count(now_s_, *find_op("sync")) : void();
    else if (action == "trim")
      counts ? out_.count(now_s_, *find_op("punch")) : void();
    else
      fail(line,
           "unknown action; there are read, write, sync, datasync, trim, and in version 2 wait");
  }

  events out_;
  path_filter filter_;
  lines const* text_ = nullptr;
  int version_ = 3;
  double now_s_ = 0;
};

/// One file of the exported log: a job's reads or its writes.
struct stream {
  std::size_t column;
  std::string file;
  bool reads;
  double owed = 0, offset = 0;
};

void write_interval(std::ostream& to, trace const& t, std::size_t i, std::vector<stream>& streams,
                    double request_bytes) {
  struct request {
    double us;
    stream* of;
  };
  std::vector<request> requests;
  for (auto& s : streams) {
    s.owed += t.counts[i][s.column];
    double const n = std::floor(s.owed / request_bytes);
    s.owed -= n * request_bytes;
    for (double k = 0; k < n; ++k)
      requests.push_back({(static_cast<double>(i) + k / n) * t.interval_s * 1e6, &s});
  }
  std::stable_sort(requests.begin(), requests.end(),
                   [](request const& a, request const& b) { return a.us < b.us; });
  for (auto const& r : requests) {
    fmt::print(to, "{:.0f} {} {} {:.0f} {:.0f}\n", std::floor(r.us), r.of->file,
               r.of->reads ? "read" : "write", r.of->offset, request_bytes);
    r.of->offset += request_bytes;
    if (r.of->offset + request_bytes > std::max(wrapped_bytes, request_bytes)) r.of->offset = 0;
  }
}

}  // namespace

trace from_iolog(files const& from, convert_options const& options) {
  iolog_reader reader(options);
  for (auto const& path : from) reader.read(path);
  return reader.take();
}

void write_iolog(trace const& t, std::string const& path, double request_bytes) {
  std::vector<stream> streams;
  double requests = 0;
  for (std::size_t c = 0; c < t.columns.size(); ++c) {
    auto const& op = op_table[t.columns[c].op];
    if (!op.counts_bytes()) continue;
    std::string file = t.columns[c].job.empty() ? "data" : t.columns[c].job;
    std::replace_if(
        file.begin(), file.end(), [](char ch) { return ch == ' ' || ch == '/' || ch == ':'; }, '_');
    bool const reads = op.name == "read";
    streams.push_back({c, file + (reads ? ".read" : ".write"), reads});
    for (auto const& row : t.counts) requests += row[c] / request_bytes;
  }
  if (streams.empty()) throw usage_error("--iolog: the trace has no column read or write");
  if (requests > most_requests)
    throw usage_error(
        fmt::format("--iolog: {:.3g} requests are too many; take a larger --io-size", requests));
  output_file to(path);
  to.stream() << "fio version 3 iolog\n";
  for (auto const& s : streams) fmt::print(to.stream(), "0 {} add\n", s.file);
  for (auto const& s : streams) fmt::print(to.stream(), "0 {} open\n", s.file);
  for (std::size_t i = 0; i < t.counts.size(); ++i)
    write_interval(to.stream(), t, i, streams, request_bytes);
  double const end_us = t.duration_s() * 1e6;
  for (auto const& s : streams) fmt::print(to.stream(), "{:.0f} {} close\n", end_us, s.file);
  to.commit();
}

}  // namespace sluice::trace
