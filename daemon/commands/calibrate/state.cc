// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/own_directory.h"
#include "commands/calibrate/ground.h"

namespace sluice::calibrate {

namespace {

using json = nlohmann::json;
constexpr std::size_t most_text = 16 << 20;

std::optional<left_directory> parse_directory(std::string_view line) {
  json const row = json::parse(line, nullptr, false);
  if (!row.is_object()) return std::nullopt;
  auto const path = row.find("directory"), inode = row.find("inode");
  if (path == row.end() || !path->is_string() || inode == row.end() || !inode->is_number_unsigned())
    return std::nullopt;
  left_directory d{*path, *inode};
  // Only what we name so: the file may have been written by somebody.
  std::string const name = std::filesystem::path(d.path).filename();
  return name.starts_with(std::string(directory_name) + ".") ? std::optional(d) : std::nullopt;
}

std::string read_all(int fd) {
  std::string text(most_text, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    ssize_t const n = pread(fd, text.data() + got, text.size() - got, static_cast<off_t>(got));
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

}  // namespace

state parse_state(std::string_view text) {
  state out;
  bool is_first = true;
  for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    std::string_view const line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (is_first) {
      out.about = line;
      is_first = false;
    } else if (auto const s = parse_sample(line)) {
      out.samples.push_back(*s);
    } else if (auto const d = parse_directory(line)) {
      out.directories.push_back(*d);
    } else {
      break;  // what follows damage is not trusted
    }
  }
  return out;
}

state_file::state_file(std::string const& path, std::string const& about, bool restart)
    : path_(path) {
  if (path.empty()) return;
  fd_ =
      descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat st = {};
  if (!fd_ || fstat(fd_.get(), &st) != 0)
    throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
    throw usage_error(fmt::format("{}: is another user's, or no file, or has two names", path));
  if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw usage_error(fmt::format("{}: another calibration writes it at this moment", path));
  state_ = parse_state(read_all(fd_.get()));
  bool const is_other = !state_.about.empty() && state_.about != about;
  if (is_other && !restart)
    throw usage_error(
        fmt::format("{}: is left of a calibration of something else, or with other options; "
                    "--restart begins anew",
                    path));
  for (auto const& d : state_.directories) remove_left_directory(d.path, d.inode);
  if (restart || state_.about.empty()) state_ = {};
  std::vector<sample> const kept = std::move(state_.samples);
  state_ = {};
  if (ftruncate(fd_.get(), 0) != 0)
    throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  append(about);
  for (sample const& s : kept) add(s);
}

state_file::~state_file() {
  if (state_.samples.empty()) remove();
}

void state_file::append(std::string const& line) {
  if (!fd_) return;
  struct stat st = {};
  std::string const whole = line + "\n";
  if (fstat(fd_.get(), &st) != 0 || pwrite(fd_.get(), whole.data(), whole.size(), st.st_size) !=
                                        static_cast<ssize_t>(whole.size()))
    throw sluice_error(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

void state_file::add(sample const& s) {
  append(sample_line(s));
  state_.samples.push_back(s);
}

void state_file::add(left_directory const& d) {
  append(json({{"directory", d.path}, {"inode", d.inode}})
             .dump(-1, ' ', false, json::error_handler_t::replace));
}

void state_file::remove() {
  if (fd_) unlink(path_.c_str());
  fd_ = descriptor();
}

}  // namespace sluice::calibrate
