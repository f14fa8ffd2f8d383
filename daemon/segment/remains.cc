// SPDX-License-Identifier: Apache-2.0
#include "segment/remains.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "segment/jobs.h"
#include "segment/run_dir.h"

namespace sluice::segment {

namespace {

namespace fs = std::filesystem;

constexpr char prefix[] = ".gone-";
constexpr int most_of_a_name = 1000;
// The journal's daemon finds areas by the name `order`, and takes their owner for who asks. It must
// have let go of one before that owner is us.
constexpr std::int64_t let_go_ns = 3'000'000'000;

/// `.gone-UID@NAME~N`
std::optional<uid_t> owner_in(std::string const& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  uid_t uid = 0;
  char const* const from = name.data() + sizeof prefix - 1;
  auto const [end, failed] = std::from_chars(from, name.data() + name.size(), uid);
  if (failed != std::errc() || *end != '@') return std::nullopt;
  return uid;
}

}  // namespace

void remains::find() {
  std::error_code failed;
  for (fs::directory_iterator at(jobs_dir(run_dir_), failed);
       !failed && at != fs::directory_iterator(); at.increment(failed))
    if (auto const uid = owner_in(at->path().filename()))
      rows_.try_emplace(at->path(), row{*uid, sizes_in(at->path())});
}

void remains::retire(std::string const& folder, uid_t uid, held_areas held, std::int64_t now_ns) {
  if (uid == geteuid()) return remove_job(run_dir_, folder);
  std::string const dir = job_dir(run_dir_, folder);
  std::string gone;
  for (int i = 0; i < most_of_a_name; ++i) {
    gone = fmt::format("{}/{}{}~{}", jobs_dir(run_dir_), prefix, folder, i);
    if (std::rename(dir.c_str(), gone.c_str()) == 0) break;
    if (errno != EEXIST && errno != ENOTEMPTY) return;
  }
  row& r = rows_[gone] = {uid, sizes_in(gone), 0, std::move(held)};
  ask(gone, r, now_ns);
}

void remains::ask(std::string const& dir, row& r, std::int64_t now_ns) {
  bool const has_let_go = r.hidden_ns != 0 && now_ns - r.hidden_ns >= let_go_ns;
  r.is_last_step = has_let_go;
  tidier_.ask(dir, owner_by(owner_of_, r.uid), {true, has_let_go, r.sizes}, now_ns);
}

void remains::look(std::int64_t now_ns) {
  for (std::size_t left = std::min(most_of_a_look, rows_.size()); left > 0; --left) {
    auto at = rows_.upper_bound(looked_at_);
    if (at == rows_.end()) at = rows_.begin();
    looked_at_ = at->first;
    ask(at->first, at->second, now_ns);
  }
}

bool remains::hear(std::string const& dir, tidied const& done, std::int64_t now_ns) {
  auto const at = rows_.find(dir);
  if (at == rows_.end()) return false;
  row& r = at->second;
  if (r.hidden_ns == 0) r.hidden_ns = now_ns;
  bool const was_held = done.are_ours && r.held.any();
  // Who only reads it keeps its memory as well: it was cut back before.
  if (done.are_ours) r.held = {};
  r.is_open = done.is_leased || ((done.are_ours || r.is_last_step) && !was_held);
  if (done.is_gone)
    rows_.erase(at);
  else if (!r.is_open && was_held)
    ask(dir, r, now_ns);
  return true;
}

std::size_t remains::of(which_uids const& are_his) const {
  return static_cast<std::size_t>(std::count_if(
      rows_.begin(), rows_.end(), [&](auto const& row) { return are_his(row.second.uid); }));
}

std::size_t remains::open_of(which_uids const& are_his) const {
  return static_cast<std::size_t>(std::count_if(rows_.begin(), rows_.end(), [&](auto const& row) {
    return are_his(row.second.uid) && row.second.is_open;
  }));
}

bool remains::are_held_up(which_uids const& are_his, std::int64_t now_ns) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](auto const& row) {
    return are_his(row.second.uid) && tidier_.is_held_up(row.first, now_ns);
  });
}

}  // namespace sluice::segment
