// SPDX-License-Identifier: Apache-2.0
#include "node/proc.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>

#include "base/descriptor.h"
#include "base/number.h"

namespace sluice::node {

namespace {

constexpr std::size_t most_proc_text = 1u << 18;
constexpr std::size_t most_maps_text = 8u << 20;  // as many mappings as the kernel allows
constexpr unsigned most_fds = 256;

using directory = std::unique_ptr<DIR, int (*)(DIR*)>;

/// The beginning of a file of /proc.
std::string slurp(std::string const& path, std::size_t most = most_proc_text) {
  descriptor const fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string text;
  char part[8192];
  while (fd && text.size() < most) {
    ssize_t const got = read(fd.get(), part, sizeof part);
    if (got <= 0) break;
    text.append(part, static_cast<std::size_t>(got));
  }
  return text;
}

std::string_view take_word(std::string_view& text) {
  auto const end = std::min(text.find(' '), text.size());
  auto const word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <class Number>
bool take_number(std::string_view& text, Number& value) {
  return to_number(take_word(text), value);
}

/// The name may hold blanks and parentheses.
std::optional<process_stat> stat_of(std::uint32_t pid, std::string& name) {
  std::string const line = slurp(stat_path(pid));
  auto const open = line.find('('), close = line.rfind(") ");
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  name = line.substr(open + 1, close - open - 1);
  std::string_view rest = std::string_view(line).substr(close + 2);
  process_stat s;
  auto const state = take_word(rest);
  unsigned threads = 0;
  if (state == "X" || !take_number(rest, s.parent)) return std::nullopt;
  for (int field = 5; field < 20; ++field) take_word(rest);
  if (!take_number(rest, threads)) return std::nullopt;
  take_word(rest);
  // The first thread of a process may end long before the others.
  if ((state == "Z" && threads <= 1) || !take_number(rest, s.start_ticks)) return std::nullopt;
  return s;
}

std::uint64_t number_after(std::string const& text, std::string_view key) {
  auto const at = text.find(key);
  if (at == std::string::npos) return 0;
  std::uint64_t value = 0;
  std::from_chars(text.data() + at + key.size(), text.data() + text.size(), value);
  return value;
}

/// The number that stands last in a line of status, such as NSpid.
std::uint32_t last_number(std::string const& status, std::string_view key) {
  auto const line = status.find(key);
  if (line == std::string::npos) return 0;
  auto const end = std::min(status.find('\n', line + 1), status.size());
  auto const last = status.find_last_of(" \t", end - 1);
  std::uint32_t value = 0;
  if (last != std::string::npos && last > line)
    std::from_chars(status.data() + last + 1, status.data() + end, value);
  return value;
}

process_inside inside_of(std::uint32_t pid) {
  constexpr std::string_view uids = "\nUid:\t";  // real, effective, saved, of file systems
  std::string const status = slurp(fmt::format("/proc/{}/status", pid));
  process_inside out = {last_number(status, "\nNSpid:")};
  if (status.find(uids) != std::string::npos)
    out.uid = static_cast<std::uint32_t>(number_after(status, uids));
  return out;
}

/// No PT_INTERP: nobody loads libraries into it.
bool is_static(std::string const& exe) {
  // The file is its user's, who may hold a lease on it.
  descriptor const fd(open(exe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Elf64_Ehdr head;
  if (!fd || pread(fd.get(), &head, sizeof head, 0) != ssize_t(sizeof head)) return false;
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_phentsize != sizeof(Elf64_Phdr))
    return false;
  for (unsigned i = 0; i < std::min<unsigned>(head.e_phnum, 64); ++i) {
    Elf64_Phdr row;
    off_t const at = static_cast<off_t>(head.e_phoff + i * sizeof row);
    if (pread(fd.get(), &row, sizeof row, at) != ssize_t(sizeof row)) return false;
    if (row.p_type == PT_INTERP) return false;
  }
  return true;
}

bool is_below(std::string_view path, std::span<std::string const> targets) {
  return std::any_of(targets.begin(), targets.end(), [&](std::string const& t) {
    return path.starts_with(t) && (path.size() == t.size() || path[t.size()] == '/');
  });
}

void look_at_fds(std::string const& fds, std::span<std::string const> targets, process_doings& d) {
  directory const dir(opendir(fds.c_str()), closedir);
  if (!dir) return;
  dirent const* entry = nullptr;
  for (unsigned seen = 0; seen < most_fds && (entry = readdir(dir.get())) != nullptr; ++seen) {
    char text[PATH_MAX];
    ssize_t const size = readlinkat(dirfd(dir.get()), entry->d_name, text, sizeof text);
    std::string_view const file(text, size > 0 ? std::size_t(size) : 0);
    d.has_ring = d.has_ring || file == "anon_inode:[io_uring]";
    d.has_file = d.has_file || is_below(file, targets);
  }
}

/// One line of maps: `from-to perms offset device inode path`.
struct mapped_range {
  std::uint64_t bytes = 0;
  bool is_code = false;
  std::string_view path;
};

mapped_range range_of(std::string_view line) {
  std::uint64_t from = 0, to = 0;
  char const* const end = line.data() + line.size();
  auto const first = std::from_chars(line.data(), end, from, 16);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return {};
  auto const second = std::from_chars(first.ptr + 1, end, to, 16);
  auto const path = line.find('/');
  if (second.ec != std::errc() || end - second.ptr < 5 || to < from || path == line.npos) return {};
  return {to - from, second.ptr[3] == 'x', line.substr(path)};
}

}  // namespace

std::uint64_t mapped_below(std::string_view maps, std::span<std::string const> targets) {
  if (targets.empty()) return 0;
  struct total {
    std::uint64_t bytes = 0;
    bool has_code = false;
  };
  std::map<std::string_view, total> files;
  for (std::size_t at = 0; at < maps.size();) {
    std::size_t const end = std::min(maps.find('\n', at), maps.size());
    mapped_range const r = range_of(maps.substr(at, end - at));
    at = end + 1;
    if (r.path.empty() || !is_below(r.path, targets)) continue;
    total& t = files[r.path];
    t.bytes += r.bytes;
    t.has_code = t.has_code || r.is_code;
  }
  std::uint64_t sum = 0;
  for (auto const& [path, t] : files)
    if (!t.has_code) sum += t.bytes;
  return sum;
}

std::vector<std::uint32_t> real_proc::pids() const {
  std::vector<std::uint32_t> out;
  directory const dir(opendir("/proc"), closedir);
  dirent const* entry = nullptr;
  while (dir && (entry = readdir(dir.get())) != nullptr) {
    std::uint32_t pid = 0;
    char const* const name = entry->d_name;
    auto const [end, failed] = std::from_chars(name, name + std::strlen(name), pid);
    if (failed == std::errc() && *end == 0) out.push_back(pid);
  }
  return out;
}

std::optional<process_stat> read_stat(std::uint32_t pid, bool with_uid) {
  std::string name;
  auto found = stat_of(pid, name);
  if (found && with_uid) found->uid = inside_of(pid).uid;
  return found;
}

std::uint32_t owner_of(std::uint32_t pid) {
  struct stat st = {};
  return stat(fmt::format("/proc/{}", pid).c_str(), &st) == 0 ? st.st_uid : ~0u;
}

std::optional<process_facts> real_proc::facts(std::uint32_t pid) const {
  process_facts f;
  f.pid = pid;
  auto const line = stat_of(pid, f.name);
  if (!line) return std::nullopt;
  f.parent = line->parent;
  f.start_ticks = line->start_ticks;
  std::replace_if(
      f.name.begin(), f.name.end(), [](unsigned char c) { return c < 32 || c == 127; }, '?');
  struct stat owner = {}, space = {};
  if (stat(fmt::format("/proc/{}", pid).c_str(), &owner) != 0) return std::nullopt;
  f.uid = owner.st_uid;
  if (stat(fmt::format("/proc/{}/ns/pid", pid).c_str(), &space) == 0)
    f.pid_space = space.st_ino;
  else if (errno != EACCES && errno != EPERM)
    return std::nullopt;  // it has just ended
  return f;
}

std::string real_proc::preload(std::uint32_t pid) const {
  std::string const environment = slurp(fmt::format("/proc/{}/environ", pid));
  constexpr std::string_view key = "LD_PRELOAD=";
  for (std::size_t at = 0; at < environment.size();) {
    std::size_t const end = std::min(environment.find('\0', at), environment.size());
    std::string_view const variable(environment.data() + at, end - at);
    if (variable.starts_with(key)) return std::string(variable.substr(key.size()));
    at = end + 1;
  }
  return {};
}

process_inside real_proc::inside(std::uint32_t pid) const { return inside_of(pid); }

process_doings real_proc::doings(std::uint32_t pid, std::span<std::string const> targets) const {
  process_doings d;
  std::string const base = fmt::format("/proc/{}", pid);
  std::string const io = slurp(base + "/io");
  d.is_readable = !io.empty();
  d.bytes = number_after(io, "rchar: ") + number_after(io, "wchar: ");
  d.calls = number_after(io, "syscr: ") + number_after(io, "syscw: ");
  std::string const maps = slurp(base + "/maps", most_maps_text);
  d.has_library = maps.find("libinterpose.so") != std::string::npos;
  d.is_mapped = !maps.empty() && maps.size() < most_maps_text;
  d.mapped_bytes = mapped_below(maps, targets);
  d.is_static = !d.has_library && is_static(base + "/exe");
  look_at_fds(base + "/fd", targets, d);
  return d;
}

}  // namespace sluice::node
