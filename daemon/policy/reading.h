// SPDX-License-Identifier: Apache-2.0
// The common part of the readers of a policy's sections and of the daemon's configuration. A value
// is taken from the tree with its kind checked, and a refusal has file, line, column, the path of
// the key and a suggestion.
#pragma once

#include <string>
#include <vector>

#include "policy/json_tree.h"
#include "policy/limit.h"

namespace sluice::policy {

class reading {
 public:
  using names = std::vector<std::string>;

  explicit reading(std::string const& file) : file_(file) {}

  std::string where(position at) const;
  [[noreturn]] void fail(position at, std::string const& what) const;
  void expect(node const& n, node::kind_t kind, std::string const& path) const;

  /// An object that has no other keys than these.
  void keys(node const& n, std::string const& path, names const& allowed) const;

  /// `what`: of which kind the name is; `in`: where, beginning with a blank, or nothing.
  void check_name(member const& m, char const* what, std::string const& in,
                  names const& allowed) const;

  /// A key that becomes part of other names: a few letters, digits, - and _.
  void check_plain(member const& m, char const* what) const;

  /// A name that is shown on lines with others: nothing in it commands a terminal.
  void check_shown(position at, std::string const& name, char const* what,
                   std::size_t most_bytes) const;

  std::string string(node const& n, std::string const& path) const;
  bool boolean(node const& n, std::string const& path) const;
  double number(node const& n, std::string const& path, double least, double most) const;
  std::int64_t duration(node const& n, std::string const& path, std::int64_t least_ns,
                        std::int64_t most_ns) const;
  /// The index of the word in `words`.
  std::size_t choice(node const& n, std::string const& path, names const& words) const;
  /// The ops that a selector names, or several in an array.
  std::uint64_t calls(node const& n, std::string const& path) const;
  /// A rate in the unit of the resource.
  rate resource_rate(node const& n, std::string const& resource, std::string const& path) const;

 private:
  std::string file_;
};

}  // namespace sluice::policy
