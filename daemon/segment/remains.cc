// SPDX-License-Identifier: Apache-2.0
#include "segment/remains.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/foreign_file.h"
#include "base/rights.h"
#include "segment/cut_back.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"

namespace sluice::segment {

namespace {

namespace fs = std::filesystem;

constexpr char prefix[] = ".gone-";
constexpr int most_of_a_name = 1000;
// The journal's daemon finds areas by the name `order`, and takes their owner for who asks. It must
// have let go of one before that owner is us.
constexpr std::time_t let_go_s = 3;

/// `.gone-UID@NAME~N`
std::optional<uid_t> owner_in(std::string const& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  uid_t uid = 0;
  char const* const from = name.data() + sizeof prefix - 1;
  auto const [end, failed] = std::from_chars(from, name.data() + name.size(), uid);
  if (failed != std::errc() || *end != '@') return std::nullopt;
  return uid;
}

struct remains {
  fs::path dir;
  uid_t uid;
};

std::vector<remains> find_remains(std::string const& run_dir) {
  std::vector<remains> out;
  std::error_code failed;
  for (fs::directory_iterator at(jobs_dir(run_dir), failed);
       !failed && at != fs::directory_iterator(); at.increment(failed))
    if (auto const uid = owner_in(at->path().filename())) out.push_back({at->path(), *uid});
  return out;
}

/// From now on its user has it by what he has open, and by nothing else. True: that is nothing
/// that he can write with.
bool is_let_go(std::string const& path) {
  foreign_file const file = open_foreign(path, O_RDONLY, any_owner);
  if (!file) return file.error != EWOULDBLOCK;  // he holds a lease on it
  bool is_ours = false;
  with_rights([&] { is_ours = fchown(file.fd.get(), geteuid(), getegid()) == 0; });
  if (!is_ours) return true;
  fchmod(file.fd.get(), 0600);
  // A read lease is for files that nobody has open for writing. EAGAIN: somebody has.
  if (fcntl(file.fd.get(), F_SETLEASE, F_RDLCK) != 0) return errno != EAGAIN;
  fcntl(file.fd.get(), F_SETLEASE, F_UNLCK);
  return true;
}

/// True: it is gone.
bool clear_away(fs::path const& dir) {
  struct stat st = {};
  bool const had_order = stat((dir / file_name_over("order")).c_str(), &st) == 0;
  if (had_order && std::time(nullptr) - st.st_ctime < let_go_s) return false;
  bool are_free = true;
  std::error_code failed;
  for (fs::directory_iterator at(dir, failed); !failed && at != fs::directory_iterator();
       at.increment(failed))
    if (at->is_regular_file(failed)) are_free = is_let_go(at->path()) && are_free;
  // Who only reads it keeps its memory as well: no more of it than it was made with.
  are_free = are_free && !cut_back(dir, sizes_in(dir)).is_leased;
  if (are_free) fs::remove_all(dir, failed);
  return are_free;
}

}  // namespace

void retire_job(std::string const& run_dir, std::string const& folder, uid_t uid) {
  if (uid == geteuid()) return remove_job(run_dir, folder);
  std::string const dir = job_dir(run_dir, folder);
  std::string gone;
  for (int i = 0; i < most_of_a_name; ++i) {
    gone = fmt::format("{}/{}{}~{}", jobs_dir(run_dir), prefix, folder, i);
    if (std::rename(dir.c_str(), gone.c_str()) == 0) break;
    if (errno != EEXIST && errno != ENOTEMPTY) return;
  }
  std::rename((gone + "/order").c_str(), (gone + "/" + file_name_over("order")).c_str());
  clear_away(gone);
}

std::map<uid_t, std::size_t> look_at_remains(std::string const& run_dir) {
  std::map<uid_t, std::size_t> left;
  for (auto const& r : find_remains(run_dir))
    if (!clear_away(r.dir)) ++left[r.uid];
  return left;
}

bool cut_back_remains(std::string const& run_dir) {
  bool had_grown = false;
  for (auto const& r : find_remains(run_dir))
    had_grown = cut_back(r.dir, sizes_in(r.dir)).had_grown || had_grown;
  return had_grown;
}

}  // namespace sluice::segment
