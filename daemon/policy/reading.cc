// SPDX-License-Identifier: Apache-2.0
#include "policy/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/duration.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/suggest.h"
#include "policy/milli_rate.h"
#include "policy/resource.h"

namespace sluice::policy {

namespace {

constexpr std::size_t most_plain_bytes = 31;
constexpr std::size_t shown_bytes = 80;  // of a name that is refused

}  // namespace

std::string reading::where(position at) const {
  return fmt::format("{}:{}:{}", file_, at.line, at.column);
}

void reading::fail(position at, std::string const& what) const {
  throw usage_error(where(at) + ": " + what);
}

void reading::expect(node const& n, node::kind_t kind, std::string const& path) const {
  node wanted;
  wanted.kind = kind;
  if (n.kind != kind)
    fail(n.at, fmt::format("{} must be {}, not {}", path, kind_name(wanted), kind_name(n)));
}

void reading::keys(node const& n, std::string const& path, names const& allowed) const {
  expect(n, node::object, path);
  for (auto const& m : n.members) check_name(m, "key", " in " + path, allowed);
}

void reading::check_name(member const& m, char const* what, std::string const& in,
                         names const& allowed) const {
  for (auto const& name : allowed)
    if (m.key == name) return;
  fail(m.at, fmt::format("unknown {} \"{}\"{}{}", what, m.key, in, did_you_mean(m.key, allowed)));
}

std::string reading::string(node const& n, std::string const& path) const {
  expect(n, node::string, path);
  if (n.text.empty()) fail(n.at, path + " is empty");
  if (n.text.size() > 4096 || n.text.find('\0') != std::string::npos)
    fail(n.at, path + " is not a usable name");
  return n.text;
}

bool reading::boolean(node const& n, std::string const& path) const {
  expect(n, node::boolean, path);
  return n.truth;
}

double reading::number(node const& n, std::string const& path, double least, double most) const {
  expect(n, node::number, path);
  if (!(n.value >= least) || n.value > most)
    fail(n.at, fmt::format("{} is {:g}, wanted {:g} to {:g}", path, n.value, least, most));
  return n.value;
}

void reading::check_plain(member const& m, char const* what) const {
  bool const is_plain = std::all_of(m.key.begin(), m.key.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
  if (m.key.empty() || m.key.size() > most_plain_bytes || !is_plain)
    fail(m.at, fmt::format("\"{}\" is no name of a {}: 1 to {} letters, digits, - and _", m.key,
                           what, most_plain_bytes));
}

void reading::check_shown(position at, std::string const& name, char const* what,
                          std::size_t most_bytes) const {
  std::string const shown = one_line(name.substr(0, shown_bytes));
  if (name.empty() || name.size() > most_bytes)
    fail(at, fmt::format("\"{}{}\" is no name of a {}: 1 to {} bytes", shown,
                         name.size() > shown_bytes ? "..." : "", what, most_bytes));
  if (one_line(name) != name)
    fail(at, fmt::format("\"{}\" is no name of a {}: it has control characters, or such as turn "
                         "the direction of a text, which are shown as ?",
                         shown, what));
}

std::int64_t reading::duration(node const& n, std::string const& path, std::int64_t least_ns,
                               std::int64_t most_ns) const {
  std::int64_t const ns = parse_duration(string(n, path), where(n.at) + ": " + path);
  if (ns < least_ns || ns > most_ns)
    fail(n.at, fmt::format("{} is {}, wanted {} to {}", path, duration_text(ns),
                           duration_text(least_ns), duration_text(most_ns)));
  return ns;
}

std::size_t reading::choice(node const& n, std::string const& path, names const& words) const {
  std::string const word = string(n, path);
  check_name({word, n.at, {}}, path.c_str(), "", words);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == word) return i;
  return 0;
}

std::uint64_t reading::calls(node const& n, std::string const& path) const {
  if (n.kind == node::string) return parse_selector(string(n, path), where(n.at) + ": " + path);
  expect(n, node::array, path);
  std::uint64_t ops = 0;
  for (auto const& item : n.items)
    ops |= parse_selector(string(item, path), where(item.at) + ": " + path);
  if (ops == 0) fail(n.at, path + " names no call");
  return ops;
}

rate reading::resource_rate(node const& n, std::string const& resource,
                            std::string const& path) const {
  return parse_milli_rate(string(n, path), where(n.at) + ": " + path, unit_of_supply(resource),
                          resource);
}

}  // namespace sluice::policy
