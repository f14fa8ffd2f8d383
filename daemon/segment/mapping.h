// SPDX-License-Identifier: Apache-2.0
// The segment of a job, mapped and checked.
// What stays true: nothing read from a segment is trusted before it was checked: its head, and a
// copy of its ruleset.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "abi/segment.h"
#include "base/descriptor.h"
#include "base/foreign.h"
#include "base/guard.h"

namespace sluice::segment {

/// A mapped segment. Moves, does not copy.
class mapping {
 public:
  /// Throws when there is none or it is not one of ours.
  static mapping open(std::string const& path);
  /// The same for a file that must belong to `owner`: the node daemon opens those of its users.
  static mapping open(std::string const& path, uid_t owner);
  ~mapping();
  mapping(mapping&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), guard_(std::move(other.guard_)) {}
  mapping(mapping const&) = delete;
  mapping& operator=(mapping const&) = delete;
  mapping& operator=(mapping&&) = delete;

  foreign<abi::segment>& operator*() const { return *at_; }
  foreign<abi::segment>* operator->() const { return at_; }

  /// Where the guard is installed: its file was cut short, nothing in it means anything any more.
  bool is_broken() const { return guard_->is_broken(); }

 private:
  explicit mapping(abi::segment* at)
      : at_(at), guard_(std::make_unique<guarded_memory>(at, sizeof(abi::segment))) {}
  abi::segment* at_;
  std::unique_ptr<guarded_memory> guard_;
};

/// The file of a segment that must belong to `owner`. Throws when it is none of ours.
descriptor open_segment(std::string const& path, uid_t owner);
/// Throws when head or ruleset are not those of a segment of our layout.
void check_segment(foreign<abi::segment> const& s, std::string const& path);

/// The ruleset, read once and checked: whoever owns the file can write in it at any time. Throws
/// when it is none.
std::unique_ptr<core::ruleset> rules_of(foreign<abi::segment> const& s);
/// The same for people: no text in it commands a terminal, ends a line or is longer than a path.
/// Each of them could be the whole pool.
std::unique_ptr<core::ruleset> shown_rules_of(foreign<abi::segment> const& s);

/// Channels by number, from such a copy. Throws when it is none.
std::vector<std::string> channel_names(foreign<abi::segment> const& s);

/// The name of a job, bounded even if scribbled over.
std::string job_name(foreign<abi::segment> const& s);

}  // namespace sluice::segment
