// SPDX-License-Identifier: Apache-2.0
#include "journal/file_state.h"

namespace sluice::journal {

namespace {

constexpr unsigned created_few = 4, created_many = 16;

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
  bool const is_lone = f.is_overwrite && f.is_alone && !f.is_live;
  return is_lone && !f.is_log_quicker ? way::alone : way::pages;
}

void directory_habit::created() {
  if (++created_ <= created_many) return;
  is_synced_anyway_ = false;
  in_row_ = 0;
}

void directory_habit::synced() {
  if (created_ != 0) {
    is_synced_anyway_ = created_ <= created_few;
    in_row_ = is_synced_anyway_ ? in_row_ + 1 : 0;
  }
  created_ = 0;
}

}  // namespace sluice::journal
