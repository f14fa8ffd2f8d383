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
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>

#include "abi/after_area.h"
#include "abi/order_area.h"
#include "abi/path_area.h"
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
                (limits.hinted_targets == 0 ? 0u : abi::hints_beside));
  h.hinted_targets = limits.hinted_targets;
  std::strncpy(h.job, made.job.c_str(), sizeof h.job - 1);
  std::memcpy(static_cast<void*>(&s.rules), limits.rules.get(), sizeof(core::ruleset));
  for (std::size_t i = 0; i < limits.curves.size(); ++i)
    core::init(s.bucket[i], limits.curves[i], now_ns);
  h.state.store(static_cast<std::uint32_t>(abi::segment_state::ready), relaxed);
  h.magic_word.store(abi::magic, std::memory_order_release);
}

/// A new file in a job's folder, by its own link where there are such (run_dir.h). All its names
/// are made while it is ours: its user can hold the lock that a link or a rename takes.
descriptor make_file(std::string const& dir, char const* name) {
  std::string const own = own_links(dir), path = own + "/" + name;
  descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) fail_for_room(path);
  std::string const in_sight = dir + "/" + name;
  if (own != dir && link(path.c_str(), in_sight.c_str()) != 0) fail_for_room(in_sight);
  return file;
}

/// Room is taken now: a full file system later would kill the job's processes with SIGBUS.
void write_segment(std::string const& dir, new_job const& made, policy::compiled const& limits) {
  std::string const path = dir + "/segment";
  descriptor const fd = make_file(dir, "segment");
  if (fallocate(fd.get(), 0, 0, sizeof(abi::segment)) != 0) {
    if (errno != EOPNOTSUPP && errno != ENOSYS) fail_for_room(path);
    if (ftruncate(fd.get(), sizeof(abi::segment)) != 0) fail_for_room(path);
  }
  fill_new<abi::segment>(fd.get(), path, [&](abi::segment& s) {
    s.head.is_in_memory = is_in_memory(fd.get()) ? 1 : 0;
    fill(s, made, limits);
  });
  give_away(fd, made.uid, made.gid, path);
}

/// A new file of zeros, its room taken, that `fill(area)` writes into.
template <class Area, class Fill>
void write_area(std::string const& dir, char const* name, uid_t uid, gid_t gid, Fill&& fill_in) {
  std::string const path = dir + "/" + name;
  descriptor const fd = make_file(dir, name);
  errno = posix_fallocate(fd.get(), 0, sizeof(Area));
  if (errno != 0) fail_for_room(path);
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

void write_record(std::string const& path, std::string const& text) {
  descriptor const fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0 || write(fd.get(), text.data(), text.size()) != ssize_t(text.size()))
    fail_for_room(path);
}

}  // namespace

bool create(std::string const& run_dir, new_job const& made, policy::compiled const& limits) {
  check_after(limits.after);
  std::string const fresh = fmt::format("{}/.new-{}", jobs_dir(run_dir), getpid());
  std::error_code ignored;
  std::filesystem::remove_all(fresh, ignored);
  // Nobody else gets in before it has its name: he could hold the lock of a file (tidy.h).
  if (mkdir(fresh.c_str(), 0700) != 0) fail_for_room(fresh);
  try {
    std::string const own = fresh + "/" + own_links_name;
    if (made.uid != geteuid() && mkdir(own.c_str(), 0700) != 0) fail_for_room(own);
    write_segment(fresh, made, limits);
    if (symlink(made.library.c_str(), (fresh + "/libinterpose.so").c_str()) != 0)
      fail("cannot link the library in " + fresh);
    if (limits.durable_targets != 0)
      write_area<abi::order_area>(fresh, "order", made.uid, made.gid,
                                  [&](abi::order_area& a) { fill(a, made, limits); });
    if (!limits.after.empty())
      write_area<abi::after_area>(fresh, "after", made.uid, made.gid,
                                  [&](abi::after_area& a) { fill(a, made, limits); });
    if (limits.roles != nullptr)
      write_area<abi::role_area>(fresh, "roles", made.uid, made.gid,
                                 [&](abi::role_area& a) { fill(a, made, limits); });
    if (!made.record.empty()) write_record(fresh + "/job.json", made.record);
    std::string const dir = job_dir(run_dir, made.folder);
    if (rename(fresh.c_str(), dir.c_str()) == 0) {
      // Another user's stage must find its files, but may add and remove none.
      if (made.uid != geteuid()) chmod(dir.c_str(), 0711);
      return true;
    }
    if (errno != EEXIST && errno != ENOTEMPTY) fail("cannot make the job " + made.job);
  } catch (...) {
    std::filesystem::remove_all(fresh, ignored);
    throw;
  }
  std::filesystem::remove_all(fresh, ignored);
  return false;
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
  write_area<abi::path_area>(dir, "paths", uid, gid, fill_in);
}

}  // namespace

void add_path_area(foreign<abi::segment>& s, std::string const& segment_path, uid_t uid, gid_t gid,
                   unsigned parts) {
  std::string const dir = segment_path.substr(0, segment_path.rfind('/'));
  auto const add = own_links(dir) == dir ? add_own_paths : add_his_paths;
  add(dir, uid, gid, [&](abi::path_area& a) { fill(a, uid, parts); });
  s.head.areas.fetch_or(abi::paths_beside);
}

}  // namespace sluice::segment
