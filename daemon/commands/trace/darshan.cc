// SPDX-License-Identifier: Apache-2.0
// Darshan's logs are read by Darshan's own Python package: a script beside this program prints what
// is in one, as rows `FROM_S TO_S OP AMOUNT` after a line `start UNIX_S`. Counters of a file are
// spread over the time between its first and last such call, which is all the log knows.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/command_output.h"
#include "base/error.h"
#include "commands/trace/events.h"

namespace sluice::trace {

namespace {

namespace fs = std::filesystem;

constexpr char const script[] = "sluice-trace-darshan.py";
constexpr std::size_t most_output_bytes = 1u << 30;

/// Beside this program as built or installed, or in the source tree it was built in.
std::string find_script() {
  std::error_code failed;
  fs::path const folder = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (char const* place :
       {".", "../lib/sluice", "../../daemon/commands/trace", "../../../daemon/commands/trace"})
    if (fs::path const path = (folder / place / script).lexically_normal();
        access(path.c_str(), R_OK) == 0)
      return path;
  throw sluice_error(
      fmt::format("{} is not in {}; it is installed with sluice", script, folder.string()));
}

/// What the script prints, with its exit status in `status`.
std::string rows_of(std::vector<std::string> const& words, int& status) {
  auto out = output_of(words, {most_output_bytes, 0});
  if (out.start_error != 0)
    throw sluice_error(
        fmt::format("{}: {}; Darshan logs are read by its Python package: install "
                    "python3 and `pip install darshan`",
                    words[0], std::strerror(out.start_error)));
  status = out.status;
  return std::move(out.text);
}

class darshan_reader {
 public:
  explicit darshan_reader(convert_options const& options)
      : out_(options, "Darshan"), options_(options) {}

  void read(std::string const& path) {
    if (path == "-")
      throw usage_error("a Darshan log cannot come from standard input; give a file");
    input const exists(path);
    int status = 0;
    char const* const python = std::getenv("SLUICE_PYTHON");
    std::istringstream rows(rows_of(
        {python != nullptr ? python : "python3", find_script(), path, options_.below}, status));
    lines text(rows, path);
    out_.begin(text);
    double start_s = -1;
    bool ended = false;
    for (std::string_view line; text.next(line);) {
      if (line.starts_with("error "))
        throw usage_error(fmt::format("{}: {}", path, line.substr(6)));
      if (line == "end")
        ended = true;
      else if (line.starts_with("start "))
        start_s = number(text, line.substr(6));
      else
        row(text, line, start_s);
    }
    if (!ended || start_s < 0 || status != 0)
      throw usage_error(fmt::format(
          "{}: Darshan's package ended (status {:#x}) before it had read the log: is it cut?", path,
          status));
  }

  trace take() { return out_.take(true); }

 private:
  static double number(lines const& text, std::string_view word) {
    double value = 0;
    if (!to_number(word, value) || value < 0 || value > most_count)
      text.fail(fmt::format("{} is no number", shown(word)));
    return value;
  }

  void row(lines const& text, std::string_view line, double start_s) {
    std::string_view word[4];
    for (auto& w : word) {
      auto const end = line.find(' ');
      w = line.substr(0, end);
      line.remove_prefix(end == line.npos ? line.size() : end + 1);
    }
    auto const op = find_op(word[2]);
    if (!op) text.fail(fmt::format("{} is no operation", shown(word[2])));
    double const from = number(text, word[0]), to = number(text, word[1]);
    out_.spread(start_s + from, start_s + std::max(from, to), *op, number(text, word[3]));
  }

  events out_;
  convert_options const& options_;
};

}  // namespace

trace from_darshan(files const& from, convert_options const& options) {
  darshan_reader reader(options);
  for (auto const& path : from) reader.read(path);
  return reader.take();
}

}  // namespace sluice::trace
