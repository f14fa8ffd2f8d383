// SPDX-License-Identifier: Apache-2.0
#include "segment/segment_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>

#include "abi/after_area.h"
#include "abi/order_area.h"
#include "abi/path_area.h"
#include "abi/ring_area.h"
#include "abi/role_area.h"
#include "abi/segment.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "base/rights.h"
#include "segment/mapping.h"
#include "segment/run_dir.h"

namespace sluice::segment {

namespace {

[[noreturn]] void fail(std::string const& what) {
  throw sluice_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

[[noreturn]] void fail_for_room(std::string const& path) {
  if (errno != ENOSPC && errno != EDQUOT) fail("cannot make " + path);
  throw no_room(fmt::format("no room for {}: {}", path, std::strerror(errno)));
}

void give_away(descriptor const& file, uid_t uid, gid_t gid, std::string const& path) {
  if (uid == geteuid()) return;
  with_rights([&] {
    if (fchown(file.get(), uid, gid) != 0) fail(path);
  });
}

/// Of a new file, which is nobody else's yet. `fill_in(area)` writes into it.
template <class Area, class Fill>
void fill_new(int fd, std::string const& path, Fill&& fill_in) {
  void* at = mmap(nullptr, sizeof(Area), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) fail("cannot map " + path);
  fill_in(*static_cast<Area*>(at));
  munmap(at, sizeof(Area));
}

bool is_in_memory(int fd) {
  struct statfs where = {};
  return fstatfs(fd, &where) == 0 && where.f_type == TMPFS_MAGIC;
}

void fill(abi::segment& s, new_job const& made, policy::compiled const& limits) {
  constexpr auto relaxed = std::memory_order_relaxed;
  std::int64_t const now_ns = steady_ns();
  abi::header& h = s.head;
  h.layout = abi::layout_version;
  h.total_bytes = sizeof(abi::segment);
  h.ruleset_bytes = sizeof(core::ruleset);
  h.bucket_bytes = sizeof(core::bucket);
  h.shard_bytes = sizeof(abi::shard);
  h.slot_bytes = sizeof(abi::process_slot);
  h.created_ns = static_cast<std::uint64_t>(now_ns);
  h.created_unix_s = static_cast<std::uint64_t>(std::time(nullptr));
  h.holder.store(abi::holder_word(made.creator.pid, made.creator.start_ticks), relaxed);
  h.owner_uid = made.uid;
  h.limits_hash = limits.hash;
  h.areas.store((limits.durable_targets != 0 ? abi::order_beside : 0u) |
                (limits.after.empty() ? 0u : abi::after_beside) |
                (limits.roles == nullptr ? 0u : abi::roles_beside) |
                (limits.hinted_targets == 0 ? 0u : abi::hints_beside) |
                (limits.strict_targets == 0 ? 0u : abi::rings_beside) |
                ((limits.gathered_targets | limits.buffered_targets | limits.strict_targets) == 0
                     ? 0u
                     : abi::gather_beside));
  h.hinted_targets = limits.hinted_targets;
  h.gathered_targets = limits.gathered_targets;
  s.reads.head.targets = limits.buffered_targets;
  std::strncpy(h.job, made.job.c_str(), sizeof h.job - 1);
  std::memcpy(static_cast<void*>(&s.rules), limits.rules.get(), sizeof(core::ruleset));
  for (std::size_t i = 0; i < limits.curves.size(); ++i)
    core::init(s.bucket[i], limits.curves[i], now_ns);
  h.state.store(static_cast<std::uint32_t>(abi::segment_state::ready), relaxed);
  h.magic_word.store(abi::magic, std::memory_order_release);
}

/// A file in a job's folder that is being made, by its own link where there are such (run_dir.h).
/// All its names are made while it is ours: its user can hold the lock that a link or a rename
/// takes.
descriptor make_file(std::string const& dir, char const* name) {
  std::string const own = own_links(dir), path = own + "/" + name;
  descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) fail_for_room(path);
  std::string const in_sight = dir + "/" + name;
  if (own != dir && link(path.c_str(), in_sight.c_str()) != 0 && errno != EEXIST)
    fail_for_room(in_sight);
  return file;
}

/// 0 or an errno.
int take_slice(int fd, off_t at, off_t bytes, bool may_be_sparse) {
  if (fallocate(fd, 0, at, bytes) == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  if (!may_be_sparse) return posix_fallocate(fd, at, bytes);
  return ftruncate(fd, at + bytes) == 0 ? 0 : errno;
}

/// Room is taken now: a full file system later would kill the job's processes with SIGBUS. In
/// slices, for the kernel gives back all of one that it has no room for.
descriptor take_room(std::string const& dir, char const* name, std::size_t bytes,
                     bool may_be_sparse = false) {
  constexpr off_t slice = 64 << 10;
  descriptor file = make_file(dir, name);
  auto const end = static_cast<off_t>(bytes);
  for (off_t at = 0; at < end; at += slice) {
    errno = take_slice(file.get(), at, std::min(slice, end - at), may_be_sparse);
    if (errno != 0) fail_for_room(dir + "/" + name);
  }
  return file;
}

void write_segment(std::string const& dir, new_job const& made, policy::compiled const& limits) {
  std::string const path = dir + "/segment";
  descriptor const fd = make_file(dir, "segment");
  fill_new<abi::segment>(fd.get(), path, [&](abi::segment& s) {
    s.head.is_in_memory = is_in_memory(fd.get()) ? 1 : 0;
    fill(s, made, limits);
  });
  give_away(fd, made.uid, made.gid, path);
}

/// Into a file of zeros whose room was taken.
template <class Area, class Fill>
void write_area(std::string const& dir, char const* name, uid_t uid, gid_t gid, Fill&& fill_in) {
  descriptor const fd = make_file(dir, name);
  std::string const path = dir + "/" + name;
  fill_new<Area>(fd.get(), path, fill_in);
  give_away(fd, uid, gid, path);
}

void fill(abi::order_area& a, new_job const& made, policy::compiled const& limits) {
  abi::order_header& h = a.head;
  h.layout = abi::order_layout_version;
  h.durable_targets = limits.durable_targets;
  h.ordered_targets = limits.ordered_targets;
  h.job_streams = limits.job_streams;
  h.thread_streams = limits.thread_streams;
  h.path_streams = limits.path_streams;
  h.total_bytes = sizeof(abi::order_area);
  h.set_bytes = sizeof(abi::order_set);
  h.slot_bytes = sizeof(abi::order_slot);
  h.owner_uid = made.uid;
  h.magic_word.store(abi::order_magic, std::memory_order_release);
}

/// A text that fits, for what does not was refused: see check_after.
template <std::size_t Bytes>
void copy_text(char (&to)[Bytes], std::string const& from) {
  std::memcpy(to, from.c_str(), std::min(from.size(), Bytes - 1));
}

void check_after(std::vector<policy::after_compiled> const& rules) {
  if (rules.size() > abi::after_rules)
    throw usage_error(fmt::format("more than {} targets have an \"after\"", abi::after_rules));
  for (auto const& r : rules)
    if (r.root.size() >= abi::after_root_bytes || r.says.write.size() >= abi::after_glob_bytes ||
        r.says.durable.size() >= abi::after_glob_bytes)
      throw usage_error(fmt::format("the \"after\" of {} is too long", r.root));
}

void fill(abi::after_area& a, new_job const& made, policy::compiled const& limits) {
  abi::after_header& h = a.head;
  h.layout = abi::after_layout_version;
  h.rules = static_cast<std::uint32_t>(limits.after.size());
  h.total_bytes = sizeof(abi::after_area);
  h.rule_bytes = sizeof(abi::after_rule);
  h.slot_bytes = sizeof(abi::after_slot);
  h.owner_uid = made.uid;
  for (std::size_t i = 0; i < limits.after.size(); ++i) {
    auto const& from = limits.after[i];
    a.rule[i].patience_ns = from.says.patience_ns;
    copy_text(a.rule[i].write, from.says.write);
    copy_text(a.rule[i].durable, from.says.durable);
    copy_text(a.rule[i].root, from.root);
    for (unsigned t = 0; t < core::max_targets; ++t)
      if ((from.targets >> t & 1) != 0) h.rule_of[t] = static_cast<std::uint8_t>(i + 1);
  }
  // A job with a record is a daemon's. Without one there is this node alone.
  bool const is_alone = made.record.empty();
  auto const server = is_alone ? abi::after_server::itself : abi::after_server::daemon;
  h.server.store(static_cast<std::uint32_t>(server));
  h.known.store(is_alone ? 1 : 0);
  h.magic_word.store(abi::after_magic, std::memory_order_release);
}

void fill(abi::path_area& a, uid_t owner, unsigned parts) {
  abi::path_header& h = a.head;
  h.layout = abi::paths_layout_version;
  h.parts = parts;
  h.total_bytes = sizeof(abi::path_area);
  h.slots = abi::path_slots;
  h.row_bytes = sizeof(core::sketch_row);
  h.owner_uid = owner;
  h.magic_word.store(abi::paths_magic, std::memory_order_release);
}

void fill(abi::role_area& a, new_job const& made, policy::compiled const& limits) {
  abi::role_header& h = a.head;
  h.layout = abi::roles_layout_version;
  h.owner_uid = made.uid;
  h.total_bytes = sizeof(abi::role_area);
  h.table_bytes = sizeof(core::role_table);
  h.counts_bytes = sizeof(abi::role_counts);
  std::memcpy(static_cast<void*>(&a.table), limits.roles.get(), sizeof(core::role_table));
  h.magic_word.store(abi::roles_magic, std::memory_order_release);
}

void fill(abi::ring_area& a, new_job const& made, policy::compiled const& limits) {
  abi::ring_header& h = a.head;
  h.layout = abi::rings_layout_version;
  h.owner_uid = made.uid;
  h.total_bytes = sizeof(abi::ring_area);
  h.ring_bytes = sizeof(core::ring);
  a.board.head.targets = limits.strict_targets;
  for (core::ring& r : a.ring) r.end.store(core::ring_end::is_shut);
  h.magic_word.store(abi::rings_magic, std::memory_order_release);
}

/// Over one of an earlier try, whose room it keeps.
void write_record(std::string const& path, std::string const& text) {
  descriptor const fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  auto const bytes = static_cast<ssize_t>(text.size());
  if (fd) errno = ENOSPC;  // of a short write
  if (!fd || write(fd.get(), text.data(), text.size()) != bytes || ftruncate(fd.get(), bytes) != 0)
    fail_for_room(path);
}

/// An area beside the segment, of which a job may have none.
struct area_row {
  char const* name;
  bool is_wanted;
  std::size_t bytes;
  void (*write)(std::string const& dir, area_row const& row, new_job const& made,
                policy::compiled const& limits);
};

template <class Area>
area_row row_of(char const* name, bool is_wanted) {
  return {name, is_wanted, sizeof(Area),
          [](std::string const& dir, area_row const& row, new_job const& made,
             policy::compiled const& limits) {
            write_area<Area>(dir, row.name, made.uid, made.gid,
                             [&](Area& a) { fill(a, made, limits); });
          }};
}

std::array<area_row, 4> areas_of(policy::compiled const& limits) {
  return {row_of<abi::order_area>("order", limits.durable_targets != 0),
          row_of<abi::after_area>("after", !limits.after.empty()),
          row_of<abi::role_area>("roles", limits.roles != nullptr),
          row_of<abi::ring_area>("rings", limits.strict_targets != 0)};
}

/// All its room is taken before.
void write_files(std::string const& dir, new_job const& made, policy::compiled const& limits) {
  write_segment(dir, made, limits);
  for (auto const& area : areas_of(limits))
    if (area.is_wanted) area.write(dir, area, made, limits);
}

void make_dir(std::string const& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail_for_room(path);
}

}  // namespace

begun_job::begun_job(std::string const& run_dir, std::string const& whose)
    : run_dir_(run_dir),
      fresh_(fmt::format("{}/.new-{}{}{}", jobs_dir(run_dir), getpid(), whose.empty() ? "" : "-",
                         whose)) {
  give_up();  // what an earlier process of our pid left
}

void begun_job::give_up() {
  std::error_code ignored;
  std::filesystem::remove_all(fresh_, ignored);
}

void begun_job::take_all(new_job const& made, policy::compiled const& limits) {
  if (made.uid != uid_) give_up();
  uid_ = made.uid;
  // Nobody else gets in before it has its name: he could hold the lock of a file (tidy.h).
  make_dir(fresh_);
  if (made.uid != geteuid()) make_dir(fresh_ + "/" + own_links_name);
  for (auto const& area : areas_of(limits)) {
    if (area.is_wanted) continue;
    unlink((own_links(fresh_) + "/" + area.name).c_str());
    unlink((fresh_ + "/" + area.name).c_str());
  }
  if (symlink(made.library.c_str(), (fresh_ + "/libinterpose.so").c_str()) != 0 && errno != EEXIST)
    fail_for_room(fresh_ + "/libinterpose.so");
  if (!made.record.empty()) write_record(fresh_ + "/job.json", made.record);
  take_room(fresh_, "segment", sizeof(abi::segment), true);
  for (auto const& area : areas_of(limits))
    if (area.is_wanted) take_room(fresh_, area.name, area.bytes);
}

bool begun_job::finish(new_job const& made, policy::compiled const& limits) {
  try {
    check_after(limits.after);
    take_all(made, limits);
    write_files(fresh_, made, limits);
    std::string const dir = job_dir(run_dir_, made.folder);
    if (rename(fresh_.c_str(), dir.c_str()) == 0) {
      // Another user's stage must find its files, but may add and remove none.
      if (made.uid != geteuid()) chmod(dir.c_str(), 0711);
      return true;
    }
    if (errno != EEXIST && errno != ENOTEMPTY) fail("cannot make the job " + made.job);
  } catch (no_room const&) {
    throw;
  } catch (...) {
    give_up();
    throw;
  }
  give_up();
  return false;
}

bool create(std::string const& run_dir, new_job const& made, policy::compiled const& limits) {
  return begun_job(run_dir).finish(made, limits);
}

bool create(std::string const& run_dir, std::string const& job, std::string const& library,
            policy::compiled const& limits) {
  auto const self = static_cast<std::uint32_t>(getpid());
  return create(run_dir, {job, job, library, geteuid(), getegid(), mark_of(self)}, limits);
}

namespace {

using path_filler = std::function<void(abi::path_area&)>;

/// Whole before it has its name.
void add_own_paths(std::string const& dir, uid_t uid, gid_t gid, path_filler const& fill_in) {
  std::string const path = dir + "/paths", fresh = path + ".new";
  if (is_here(path)) return;
  unlink(fresh.c_str());
  take_room(dir, "paths.new", sizeof(abi::path_area));
  write_area<abi::path_area>(dir, "paths.new", uid, gid, fill_in);
  if (rename(fresh.c_str(), path.c_str()) != 0) fail("cannot make " + path);
}

/// Whole before it is his. One that is still ours was not finished, and nobody else could open it.
void add_his_paths(std::string const& dir, uid_t uid, gid_t gid, path_filler const& fill_in) {
  std::string const own = own_links(dir) + "/paths";
  struct stat st = {};
  if (lstat(own.c_str(), &st) == 0 && st.st_uid == uid) return;
  unlink(own.c_str());
  unlink((dir + "/paths").c_str());
  take_room(dir, "paths", sizeof(abi::path_area));
  write_area<abi::path_area>(dir, "paths", uid, gid, fill_in);
}

}  // namespace

void add_path_area(std::string const& segment_path, uid_t uid, gid_t gid, unsigned parts) {
  std::string const dir = segment_path.substr(0, segment_path.rfind('/'));
  auto const add = own_links(dir) == dir ? add_own_paths : add_his_paths;
  add(dir, uid, gid, [&](abi::path_area& a) { fill(a, uid, parts); });
}

}  // namespace sluice::segment
