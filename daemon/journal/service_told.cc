// SPDX-License-Identifier: Apache-2.0
// What the service tells people of the journal; see told.h.
#include <algorithm>

#include "journal/service.h"

namespace sluice::journal {

void service::publish(abi::order_status& to) const {
  told_.publish(head_);
  written_batches const written = log_.batches();
  to.room_bytes = log_.room();
  to.used_bytes = log_.in_use();
  to.batches = written.count;
  to.batch_bytes = written.bytes;
  to.batch_ns = written.took_ns;
  to.asked = counts_.asked;
  to.logged = counts_.logged;
  to.synced = counts_.synced;
  to.areas = areas_.size();
  to.checkpoints = counts_.checkpoints;
  to.files_live = static_cast<std::uint64_t>(std::count_if(
      files_.begin(), files_.end(), [&](auto const& one) { return is_live(*one.second); }));
  to.log_error = static_cast<std::uint64_t>(log_.failed());
  to.home_error = static_cast<std::uint64_t>(home_error_.load());
  to.generation = super_.generation;
  to.heart_ns = now_ns_;
}

}  // namespace sluice::journal
