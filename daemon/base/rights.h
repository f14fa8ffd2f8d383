// SPDX-License-Identifier: Apache-2.0
// Capabilities that a process keeps and does not use: between the few calls that need them, nothing
// it does has more rights than its uid. So a mistake in what it makes of a stranger's words opens
// and changes nothing that is not its own. It is no wall against who runs code of his own in the
// process: he may raise them too.
#pragma once

#include <cstdint>

namespace sluice {

/// From now on the threads that call this have their capabilities in force only below
/// raised_rights. Threads that they make begin without.
void lower_rights();

/// What the thread may have is in force as long as this lives. Costs nothing where lower_rights()
/// was never called.
class raised_rights {
 public:
  raised_rights();
  ~raised_rights();
  raised_rights(raised_rights const&) = delete;
  raised_rights& operator=(raised_rights const&) = delete;

 private:
  std::uint32_t before_[2] = {};  // what was in force
  bool has_raised_ = false;
};

}  // namespace sluice
