// SPDX-License-Identifier: Apache-2.0
#include "journal/file_state.h"

namespace sluice::journal {

namespace {

constexpr unsigned most_counted = 64;  // of both; then what was counted so far counts half

}  // namespace

way choose(file_seen const& f) {
  if (!f.is_identified || (f.has_failed && !f.is_live)) return way::pass;
  if (f.is_bypassed || f.is_ending) return f.is_live ? way::native : way::pass;
  // A sync of ours ends the time in which the program goes without us.
  if (f.is_native || !f.is_linked_once || f.is_foreign || f.has_new_metadata) return way::native;
  // Its pages will not tell us more next time.
  if (f.is_unseen) return f.is_live || !f.has_baseline ? way::native : way::own;
  if (!f.has_baseline)
    return f.is_created && f.size <= logged_bytes_max ? way::first_all : way::native;
  if (f.is_whole) return f.size <= logged_bytes_max ? way::all : way::native;
  // Who writes where no stage sees it, by O_DIRECT say, leaves no trace within a tick of the file's
  // clock: only of what the journal holds is it known that it was durable.
  if (!f.has_changed) return f.is_live ? way::nothing : way::pass;
  if (f.dirty_bytes > logged_bytes_max) return way::native;
  // One flush either way: then the bytes are not written twice.
  return f.is_overwrite && f.is_alone && !f.is_live ? way::alone : way::pages;
}

void directory_habit::created() {
  if (unsynced_ < most_counted) ++unsynced_;
  count(created_);
}

// Of many threads all may make their files before the first of them syncs the directory.
void directory_habit::synced() {
  if (unsynced_ == 0) return;
  --unsynced_;
  count(synced_);
}

void directory_habit::count(unsigned& what) {
  ++what;
  if (created_ + synced_ < most_counted) return;
  created_ /= 2;
  synced_ /= 2;
}

}  // namespace sluice::journal
