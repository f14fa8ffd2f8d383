// SPDX-License-Identifier: Apache-2.0
#include "commands/trace/paths.h"

#include <fmt/format.h>

#include "base/error.h"
#include "commands/trace/lines.h"

namespace sluice::trace {

namespace {

constexpr std::string_view not_files[] = {"/dev/", "/proc/", "/sys/"};

std::string joined(std::string_view directory, std::string_view path) {
  std::string whole(path);
  if (!path.starts_with('/')) whole = std::string(directory) + "/" + whole;
  return whole;
}

/// Without . and empty parts; .. takes a part away, as far as text can tell.
std::string normal(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    auto const slash = path.find('/');
    std::string_view const part = path.substr(0, slash);
    if (part == "..")
      out.erase(out.empty() ? 0 : out.rfind('/'));
    else if (!part.empty() && part != ".")
      out.append("/").append(part);
    if (slash == path.npos) break;
    path.remove_prefix(slash + 1);
  }
  return out + "/";
}

}  // namespace

path_filter::path_filter(std::string below) {
  if (below.empty()) return;
  if (!below.starts_with('/'))
    throw usage_error(fmt::format("--below: {}: write a path that begins with /", shown(below)));
  below_ = normal(below);
}

bool path_filter::counts(std::string_view path, std::string_view directory) const {
  bool const is_known = path.starts_with('/') || !directory.empty();
  if (!is_known) return below_.empty();
  std::string const whole = normal(joined(directory, path));
  for (auto const other : not_files)
    if (whole.starts_with(other)) return false;
  return below_.empty() || whole.starts_with(below_);
}

}  // namespace sluice::trace
