// SPDX-License-Identifier: Apache-2.0
// strace: one line per system call. Calls on paths count by their name, reads and writes by the
// bytes they returned. With -y a descriptor carries the path of its file, so that pipes, sockets
// and devices are left out; without it all descriptors above 2 count, and a note says so.
#include <fmt/format.h>

#include <charconv>
#include <map>

#include "commands/trace/events.h"
#include "commands/trace/paths.h"
#include "commands/trace/strace_line.h"

namespace sluice::trace {

namespace {

constexpr std::size_t most_unfinished = 10000;
constexpr std::size_t most_begun_bytes = 4096;  // of the arguments of one

struct begun_call {
  std::string name, arguments;
  double unix_s;
};

std::int64_t returned(std::string_view result) {
  std::int64_t value = -1;
  std::from_chars(result.data(), result.data() + result.size(), value);
  return value;
}

class strace_reader {
 public:
  explicit strace_reader(convert_options const& options)
      : out_(options, "strace"), filter_(options.below), by_pid_(options.jobs_by == "pid") {}

  void read(std::string const& path) {
    input from(path);
    lines text(from.stream(), from.name());
    text_ = &text;
    out_.begin(text);
    for (std::string_view line; text.next(line);)
      if (!trimmed(line).empty()) take_line(line);
    // Whoever was killed never returned.
    here_.clear();
    for (auto const& [pid, call] : begun_) take_call(call.name, call.arguments, "-1", call.unix_s);
    begun_.clear();
    text_ = nullptr;
  }

  trace take() {
    trace t = out_.take(true);
    if (bare_)
      t.facts.emplace_back("note", "strace ran without -y: pipes and sockets may be counted");
    return t;
  }

 private:
  /// Calls that name no directory begin in the one that a process has shown last.
  std::string_view here() const {
    auto const found = here_.find(pid_);
    return found == here_.end() ? std::string_view() : std::string_view(found->second);
  }

  void remember_here(std::string_view directory) {
    if (!directory.starts_with('/') || directory == here()) return;
    if (here_.size() == most_unfinished) here_.clear();
    here_[pid_] = directory.substr(0, most_begun_bytes);
  }

  void take_line(std::string_view text) {
    strace_line line;
    if (char const* why = parse(text, line)) text_->fail(fmt::format("{}: {}", why, shown(text)));
    pid_ = line.pid;
    if (line.unix_s != 0) out_.arrive(line.unix_s);
    if (by_pid_) out_.set_job("pid", fmt::format("pid{}", line.pid));
    if (line.is == strace_line::kind::call)
      take_call(line.name, line.arguments, line.result, line.unix_s);
    else if (line.is == strace_line::kind::begun)
      begin(line);
    else if (line.is == strace_line::kind::resumed)
      resume(line);
  }

  void begin(strace_line const& line) {
    if (begun_.size() == most_unfinished) text_->fail("more than 10000 calls that do not return");
    begun_[line.pid] = {std::string(line.name),
                        std::string(line.arguments.substr(0, most_begun_bytes)), line.unix_s};
  }

  /// Its begin may be missing: strace -p came in the middle of the call.
  void resume(strace_line const& line) {
    auto const found = begun_.find(line.pid);
    if (found == begun_.end() || found->second.name != line.name) return;
    begun_call const call = std::move(found->second);
    begun_.erase(found);
    take_call(call.name, call.arguments + std::string(line.arguments), line.result, call.unix_s);
  }

  bool descriptor_counts(std::string_view argument) {
    auto const fd = descriptor_of(argument);
    if (fd.is_named) return fd.path.starts_with('/') && filter_.counts(fd.path, "");
    double number = 0;
    if (!to_number(argument, number) || number <= 2) return false;
    bare_ = true;
    return filter_.counts("", "");
  }

  /// A path, perhaps after the descriptor of the directory it begins in.
  bool path_counts(std::string_view arguments) {
    std::string_view first = take_argument(arguments);
    std::string_view directory;
    if (!first.starts_with('"')) {
      auto const fd = descriptor_of(first);
      std::string_view rest = arguments;
      std::string_view const second = take_argument(rest);
      if (!second.starts_with('"') || second == "\"\"") return descriptor_counts(first);
      directory = fd.path;
      if (first.starts_with("AT_FDCWD")) remember_here(directory);
      first = second;
    }
    return filter_.counts(unquoted(first), directory.empty() ? here() : directory);
  }

  void move_bytes(std::string_view op, std::string_view descriptor, std::int64_t bytes,
                  double when) {
    if (descriptor_counts(descriptor))
      out_.transfer(when, op, static_cast<double>(std::max<std::int64_t>(bytes, 0)));
  }

  /// Both ends of sendfile(out, in, …) and copy_file_range(in, offset, out, …).
  bool copies(std::string_view name, std::string_view arguments, std::int64_t bytes, double when) {
    bool const is_range = name == "copy_file_range";
    if (!is_range && name != "sendfile" && name != "sendfile64") return false;
    std::string_view const first = take_argument(arguments);
    if (is_range) take_argument(arguments);
    std::string_view const second = take_argument(arguments);
    move_bytes("read", is_range ? first : second, bytes, when);
    move_bytes("write", is_range ? second : first, bytes, when);
    return true;
  }

  void take_call(std::string_view name, std::string_view arguments, std::string_view result,
                 double when) {
    if (copies(name, arguments, returned(result), when)) return;
    if (name == "unlinkat" && arguments.find("AT_REMOVEDIR") != arguments.npos) name = "rmdir";
    auto const op = find_op(name);
    if (!op) return;
    if (op_table[*op].counts_bytes()) {
      std::string_view rest = arguments;
      move_bytes(op_table[*op].name, take_argument(rest), returned(result), when);
    } else if (name.starts_with("symlink")) {  // its first argument is a text
      std::string_view rest = arguments;
      take_argument(rest);
      if (path_counts(rest)) out_.count(when, *op);
    } else if (name == "sync" || name == "msync" || path_counts(arguments)) {
      out_.count(when, *op);
    }
  }

  events out_;
  path_filter filter_;
  bool by_pid_;
  lines const* text_ = nullptr;
  std::uint64_t pid_ = 0;
  std::map<std::uint64_t, begun_call> begun_;
  std::map<std::uint64_t, std::string> here_;  // working directories, by process
  bool bare_ = false;
};

}  // namespace

trace from_strace(files const& from, convert_options const& options) {
  strace_reader reader(options);
  for (auto const& path : from) reader.read(path);
  return reader.take();
}

}  // namespace sluice::trace
