// SPDX-License-Identifier: Apache-2.0
#include "segment/remains.h"

#include <fcntl.h>
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

#include "base/foreign_file.h"
#include "base/rights.h"
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

/// From now on its user has it by what he has open, and by nothing else. By its name, in a folder
/// where nobody else gives any: to open it a lease could keep us from.
bool is_ours_now(std::string const& path) {
  struct stat st = {};
  if (lstat(path.c_str(), &st) != 0) return errno == ENOENT;
  if (!S_ISREG(st.st_mode)) return true;
  if (st.st_uid == geteuid()) return true;
  bool is_taken = false;
  with_rights([&] { is_taken = lchown(path.c_str(), geteuid(), getegid()) == 0; });
  return is_taken && chmod(path.c_str(), 0600) == 0;
}

/// True: nobody can write it but we.
bool is_let_go(std::string const& path) {
  foreign_file const file = open_foreign(path, O_RDONLY, any_owner);
  if (!file) return file.error != EWOULDBLOCK;  // he holds a lease on it
  // A read lease is for files that nobody has open for writing. EAGAIN: somebody has.
  if (fcntl(file.fd.get(), F_SETLEASE, F_RDLCK) != 0) return errno != EAGAIN;
  fcntl(file.fd.get(), F_SETLEASE, F_UNLCK);
  return true;
}

/// True: for all files in it.
template <class Test>
bool for_files(std::string const& dir, Test&& test) {
  bool are_all = true;
  std::error_code failed;
  for (fs::directory_iterator at(dir, failed); !failed && at != fs::directory_iterator();
       at.increment(failed))
    if (at->symlink_status(failed).type() == fs::file_type::regular)
      are_all = test(at->path().string()) && are_all;
  return are_all;
}

}  // namespace

/// True: it is gone.
bool remains::clear_away(std::string const& dir, row& r, std::int64_t now_ns) {
  bool const has_let_go = now_ns - r.since_ns >= let_go_ns;
  bool const are_ours = for_files(dir, [&](std::string const& path) {
    return (path.ends_with(file_name_over("order")) && !has_let_go) || is_ours_now(path);
  });
  cut const done = cut_back(dir, r.sizes);
  r.is_leased = done.is_leased;
  r.had_grown = r.had_grown || done.had_grown;
  std::error_code failed;
  if (!are_ours || (!has_let_go && fs::exists(dir + "/" + file_name_over("order"), failed)))
    return false;
  r.held = {};  // who only reads it keeps its memory as well: it was cut back before
  if (done.is_leased || !for_files(dir, is_let_go)) return false;
  fs::remove_all(dir, failed);
  return true;
}

void remains::find(std::int64_t now_ns) {
  std::error_code failed;
  for (fs::directory_iterator at(jobs_dir(run_dir_), failed);
       !failed && at != fs::directory_iterator(); at.increment(failed))
    if (auto const uid = owner_in(at->path().filename()))
      rows_.try_emplace(at->path(), row{*uid, sizes_in(at->path()), now_ns});
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
  std::rename((gone + "/order").c_str(), (gone + "/" + file_name_over("order")).c_str());
  row& r = rows_[gone] = {uid, sizes_in(gone), now_ns, std::move(held)};
  if (clear_away(gone, r, now_ns)) rows_.erase(gone);
}

bool remains::look(std::int64_t now_ns) {
  bool had_grown = false;
  for (std::size_t left = std::min(most_of_a_look, rows_.size()); left > 0; --left) {
    auto at = rows_.upper_bound(looked_at_);
    if (at == rows_.end()) at = rows_.begin();
    looked_at_ = at->first;
    bool const is_gone = clear_away(at->first, at->second, now_ns);
    had_grown = std::exchange(at->second.had_grown, false) || had_grown;
    if (is_gone) rows_.erase(at);
  }
  return had_grown;
}

std::size_t remains::of(which_uids const& are_his) const {
  return static_cast<std::size_t>(std::count_if(
      rows_.begin(), rows_.end(), [&](auto const& row) { return are_his(row.second.uid); }));
}

bool remains::are_leased(which_uids const& are_his) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](auto const& row) {
    return are_his(row.second.uid) && row.second.is_leased;
  });
}

}  // namespace sluice::segment
