// SPDX-License-Identifier: Apache-2.0
// A full pipe or disk must not stop the loop: a line goes out only when poll() says that there is
// room, and a pipe with room takes 4096 bytes at once.
#include "runtime/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/suggest.h"

namespace sluice::runtime {

namespace {

constexpr char const* names[] = {"error", "warning", "info", "debug"};
constexpr char const* prefixes[] = {"<3>", "<4>", "<6>", "<7>"};  // sd-daemon(3)
constexpr std::size_t line_bytes_max = 4096;                      // PIPE_BUF
constexpr std::size_t floods_max = 1000;  // events are constants; this is for when one is not
constexpr std::int64_t flood_window_ns = 10'000'000'000;
constexpr std::uint32_t flood_lines = 20;

/// True when standard error is the journal's socket: it adds the time and reads the prefix.
bool is_journal() {
  char const* const stream = std::getenv("JOURNAL_STREAM");
  struct stat st = {};
  if (stream == nullptr || fstat(STDERR_FILENO, &st) != 0) return false;
  return fmt::format("{}:{}", st.st_dev, st.st_ino) == stream;
}

std::string utc_now() {
  timespec const t = timespec_of(unix_ns());
  return fmt::format("{:%FT%T}.{:03}Z ", fmt::gmtime(t.tv_sec), t.tv_nsec / 1'000'000);
}

void to_stderr(std::string_view line, bool journal) {
  std::string out = journal ? std::string(line) : utc_now() + std::string(line);
  if (out.size() >= line_bytes_max) out.resize(line_bytes_max - 1);
  out += '\n';
  pollfd p = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0) {
    [[maybe_unused]] ssize_t const ignored = write(STDERR_FILENO, out.data(), out.size());
  }
}

/// As it is, or in quotes with everything escaped that could end the value or the line.
std::string quoted(std::string const& value) {
  bool plain = !value.empty();
  unsigned char before = 0;
  // U+0080 to U+009F are commands to a terminal, too.
  auto const is_command = [&before](unsigned char c) {
    return (std::exchange(before, c) == 0xc2 && c >= 0x80 && c < 0xa0) || c < ' ' || c == 0x7f;
  };
  for (unsigned char c : value)
    plain = !is_command(c) && plain && c != ' ' && c != '"' && c != '\\' && c != '=';
  if (plain) return value;
  std::string out = "\"";
  before = 0;
  for (unsigned char c : value) {
    bool const commands = is_command(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{:c}", c);
    else if (c == '\n')
      out += "\\n";
    else if (commands)
      out += fmt::format("\\x{:02x}", c);
    else
      out += static_cast<char>(c);
  }
  return out + '"';
}

}  // namespace

level parse_level(std::string_view text) {
  for (unsigned i = 0; i < 4; ++i)
    if (text == names[i]) return static_cast<level>(i);
  throw usage_error(
      fmt::format("\"{}\" is no level of the log; there are error, warning, info, "
                  "debug{}",
                  text, did_you_mean(text, {names, names + 4})));
}

char const* name_of(level l) { return names[static_cast<unsigned>(l)]; }

std::string field::text_of(double d) { return fmt::format("{:.6g}", d); }

logger::logger(level most)
    : most_(most),
      to_([journal = is_journal()](std::string_view line) { to_stderr(line, journal); }),
      now_(steady_ns),
      has_prefix_(is_journal()) {}

logger::logger(level most, sink to, clock now)
    : most_(most), to_(std::move(to)), now_(std::move(now)) {}

bool logger::may_write(level l, std::string_view event, std::int64_t now_ns,
                       std::uint64_t& left_out) {
  if (l == level::debug) return true;
  auto found = floods_.find(event);
  if (found == floods_.end()) {
    if (floods_.size() >= floods_max) floods_.clear();
    found = floods_.emplace(std::string(event), flood{now_ns, 0, 0}).first;
  }
  flood& f = found->second;
  if (now_ns - f.since_ns >= flood_window_ns) {
    left_out = f.left_out;
    f = {now_ns, 0, 0};
  }
  if (f.written < flood_lines) {
    ++f.written;
    return true;
  }
  ++f.left_out;
  return false;
}

void logger::write(level l, std::string_view event, fields f) {
  ++counts_[static_cast<unsigned>(l)];
  if (!shows(l)) return;
  std::uint64_t left_out = 0;
  if (!may_write(l, event, now_(), left_out)) return;
  std::string line = has_prefix_ ? prefixes[static_cast<unsigned>(l)] : "";
  line += names[static_cast<unsigned>(l)];
  line += ' ';
  line += event;
  for (auto const& one : f) line += fmt::format(" {}={}", one.key, quoted(one.value));
  if (left_out != 0) line += fmt::format(" left_out_before={}", left_out);
  to_(line);
}

}  // namespace sluice::runtime
