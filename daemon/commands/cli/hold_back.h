// SPDX-License-Identifier: Apache-2.0
// The background work of a job without a daemon is held back by the `sluice run` that made it,
// while it waits for its program (background/keeper.h). And what is known of that, for people.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "abi/segment.h"
#include "background/keeper.h"
#include "base/descriptor.h"
#include "base/foreign.h"

namespace sluice::cli {

class hold_back {
 public:
  hold_back(foreign<abi::segment>& s, std::string const& segment_path,
            std::vector<policy::background_terms> const& terms);
  bool is_any() const { return !keepers_.empty(); }
  /// Looks if it is due, and says when it is again.
  std::int64_t look(std::int64_t now_ns);
  /// The program has ended: what was done is told whole.
  void finish(std::int64_t now_ns);

 private:
  foreign<abi::segment>& segment_;
  std::string path_;
  descriptor lock_;  // whoever changes limits holds it meanwhile
  std::vector<background::keeper> keepers_;
  background::teller teller_;
  std::int64_t due_ns_ = 0;
};

/// "background" of a report: what the `sluice run` that made the job has told; nothing where it is
/// another user's, or holds nothing back. `socket`: the daemon's that has the job, or empty.
void put_background(nlohmann::ordered_json& report, std::string const& segment_path,
                    std::int64_t owner);
void put_background_of_daemon(nlohmann::ordered_json& report, std::string const& segment_path,
                              std::string const& job);

/// A line for each target, each ended, or none.
std::string background_lines(nlohmann::ordered_json const& report);

}  // namespace sluice::cli
