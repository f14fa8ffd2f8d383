// SPDX-License-Identifier: Apache-2.0
// What a controller remembers in its state directory: the policy applied over the socket (with the
// hash of the file it replaces, so that a file edited later wins again), the policy heard from the
// parent, the overrides, the book of epochs. Files are replaced whole. A full disk costs the
// memory, never the control.
#pragma once

#include <optional>
#include <string>

#include "cluster/overrides.h"

namespace sluice::cluster {

class store {
 public:
  explicit store(std::string dir) : dir_(std::move(dir)) {}

  /// The policy to start with: what was applied over the text of the file, or that text.
  std::string policy_over(std::string const& file_text) const;
  bool keep_applied(std::string const& file_text, std::string const& applied) const;
  void forget_applied() const;

  std::optional<std::string> heard_policy() const { return read("policy.json"); }
  bool keep_heard(std::string const& text) const { return write("policy.json", text); }

  std::optional<std::string> read_gates() const { return read("gates.json"); }
  bool keep_gates(std::string const& text) const;

  /// Throws when the file is there and cannot be understood.
  overrides read_overrides() const;
  bool keep(overrides const& o) const { return write("overrides.json", o.to_json()); }

 private:
  std::optional<std::string> read(char const* name) const;
  bool write(char const* name, std::string const& text) const;

  std::string dir_;
};

}  // namespace sluice::cluster
