// SPDX-License-Identifier: Apache-2.0
// The promises and grants of a node or relay, kept so that kill -9 of the daemon loses nothing.
// Written about ten times a second, so it is one write into a file that has its size from the
// start: it neither grows (a full disk does not matter) nor is renamed (no journal). Two halves are
// written in turn, each with a checksum: one is always whole. A reboot makes it void; the boot id
// shows that.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/most_supplies.h"
#include "lease/child.h"

namespace sluice::runtime {

/// lease::child_memory with its supplies by key, because indices do not outlive a process.
struct kept_lease {
  std::uint64_t parent = 0, obeyed = 0, parent_incarnation = 0;
  lease::time_ns lend_until = 0;
  struct entry {
    std::uint32_t key = 0;
    lease::child_memory::entry of;
  };
  std::vector<entry> supply;
};

inline constexpr std::uint32_t no_key = 0;  // of a supply that the policy does not name

/// To keep, and kept; `keys` by index. A supply that the policy does not name is left out.
kept_lease kept_of(lease::child_memory const& m, std::span<std::uint32_t const> keys);
lease::child_memory memory_of(kept_lease const& kept, std::span<std::uint32_t const> keys);

class lease_file {
 public:
  /// Opens or makes it. Throws when it cannot be made.
  explicit lease_file(std::string const& path);

  /// What was last written since the machine booted; none: nothing is known.
  std::optional<kept_lease> read() const;

  /// False when it could not be written.
  bool write(kept_lease const& kept);

 private:
  descriptor fd_;
  std::string boot_id_;
  std::uint64_t sequence_ = 0;
};

}  // namespace sluice::runtime
