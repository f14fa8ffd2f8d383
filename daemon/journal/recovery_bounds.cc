// SPDX-License-Identifier: Apache-2.0
#include "journal/recovery_bounds.h"

#include <algorithm>

#include "journal/file_disk.h"
#include "journal/kept_aside.h"

namespace sluice::journal {

recovery_bounds::recovery_bounds(std::uint64_t journal_bytes) {
  // All of it may be kept aside.
  refuse_journals_above(room_for_records(journal_bytes));
  if (getrlimit(RLIMIT_DATA, &before_) != 0) return;
  // The soft one: serving needs other memory, and may have it.
  rlimit bound = before_;
  bound.rlim_cur = std::min<rlim_t>(before_.rlim_cur, recovery_memory_bytes(journal_bytes));
  is_set_ = setrlimit(RLIMIT_DATA, &bound) == 0;
}

recovery_bounds::~recovery_bounds() {
  refuse_journals_above(~std::uint64_t{0});
  if (is_set_) setrlimit(RLIMIT_DATA, &before_);
}

}  // namespace sluice::journal
