// SPDX-License-Identifier: Apache-2.0
#include "journal/live_records.h"

#include <algorithm>

#include "journal/home.h"

namespace sluice::journal {

namespace {

bool is_content(kind what) { return what == kind::data || what == kind::truncate; }

}  // namespace

bool is_given_away(file_records const& f, struct stat const& home) {
  if (!f.owner || *f.owner == owner_ids{home.st_uid, home.st_gid}) return false;
  return f.made_ns == 0 || changed_ns(home) > f.made_ns;
}

void live_records::add(std::uint64_t lsn, record const& r) {
  file_records& f = files_[r.file];
  if (!r.directory.handle.empty()) files_[r.directory].is_directory = true;
  file_systems_.insert(r.file.fs);
  if (r.what == kind::revoke) f.safe_below = std::max(f.safe_below, std::min(r.below, lsn));
  if (r.what == kind::create || r.what == kind::owner) f.owner = {r.uid, r.gid};
  if (r.what == kind::unlink) f.is_removed = true;
  if (r.what == kind::create) {
    f.is_removed = false;
    made_[r.file] = lsn;
    f.made_ns = 0;
  }
  if (is_content(r.what)) {
    content_[r.file] = lsn;
    if (f.made_ns == 0 && made_.contains(r.file)) f.made_ns = r.changed_ns;
    f.changed_ns = std::max(f.changed_ns, r.changed_ns);
    f.has_size |= r.what == kind::truncate;
  }
}

void live_records::close() {
  for (auto const& [id, lsn] : content_) {
    file_records& f = files_[id];
    f.has_content = lsn >= f.safe_below;
  }
  for (auto const& [id, lsn] : made_)
    if (file_records& f = files_[id]; lsn < f.safe_below) f.made_ns = 0;
  content_.clear();
  made_.clear();
}

bool live_records::is_live(file_id const& id) const {
  auto const at = files_.find(id);
  return at != files_.end() && at->second.is_live;
}

bool live_records::has_left_at(std::uint64_t changed_ns) const {
  return std::any_of(files_.begin(), files_.end(), [&](auto const& one) {
    return !one.second.is_live && one.second.changed_ns == changed_ns;
  });
}

file_records const* live_records::of(file_id const& id) const {
  auto const at = files_.find(id);
  return at == files_.end() ? nullptr : &at->second;
}

bool live_records::counts(std::uint64_t lsn, record const& r) const {
  // Names are brought home whatever happened to the bytes: a sync of the file need not cover them.
  if (r.what == kind::unlink) return true;
  if (!is_content(r.what) && r.what != kind::create) return false;
  auto const at = files_.find(r.file);
  if (at == files_.end() || lsn < at->second.safe_below) return false;
  if (at->second.is_kept || at->second.is_marked) return false;
  if (r.what != kind::create) return true;
  // Of a batch that was cut off: nobody was told that the file is durable. It may have become that
  // without the journal, and been removed since, so a part of it must not come back.
  if (!at->second.has_size) return false;
  // A directory that was synced on its own has all names that were given before.
  auto const in = files_.find(r.directory);
  return in == files_.end() || !in->second.is_marked;
}

}  // namespace sluice::journal
