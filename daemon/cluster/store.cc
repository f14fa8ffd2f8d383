// SPDX-License-Identifier: Apache-2.0
#include "cluster/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "policy/supply.h"

namespace sluice::cluster {

namespace {

constexpr char applied_file[] = "applied-policy";

bool write_all(int fd, std::string const& text) {
  for (std::size_t at = 0; at < text.size();) {
    ssize_t const n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

/// The new name is to survive a power cut, too.
bool sync_directory(std::string const& dir) {
  int const fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool const is_synced = fd >= 0 && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  return is_synced;
}

}  // namespace

bool store::keep_gates(std::string const& text) const {
  return write("gates.json", text) && sync_directory(dir_);
}

std::optional<std::string> store::read(char const* name) const {
  std::ifstream in(dir_ + "/" + name, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

bool store::write(char const* name, std::string const& text) const {
  std::string const path = dir_ + "/" + name, fresh = path + ".new";
  int const fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  bool const written = write_all(fd, text) && fdatasync(fd) == 0;
  close(fd);
  if (written && std::rename(fresh.c_str(), path.c_str()) == 0) return true;
  unlink(fresh.c_str());
  return false;
}

std::string store::policy_over(std::string const& file_text) const {
  std::optional<std::string> const kept = read(applied_file);
  if (!kept) return file_text;
  std::size_t const line = kept->find('\n');
  if (line == std::string::npos) return file_text;
  std::string const replaces = fmt::format("{:016x}", policy::policy_hash(file_text));
  return kept->substr(0, line) == replaces ? kept->substr(line + 1) : file_text;
}

bool store::keep_applied(std::string const& file_text, std::string const& applied) const {
  return write(applied_file, fmt::format("{:016x}\n", policy::policy_hash(file_text)) + applied);
}

void store::forget_applied() const { unlink((dir_ + "/" + applied_file).c_str()); }

overrides store::read_overrides() const {
  std::optional<std::string> const text = read("overrides.json");
  return text ? overrides::from_json(*text) : overrides{};
}

}  // namespace sluice::cluster
