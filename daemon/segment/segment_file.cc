// SPDX-License-Identifier: Apache-2.0
#include "segment/segment_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "policy/error.h"
#include "segment/run_dir.h"

namespace sluice::segment {

namespace {

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  ~descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  descriptor(descriptor const&) = delete;
  descriptor& operator=(descriptor const&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(std::string const& what) {
  throw sluice_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

abi::segment* map(int fd, std::string const& path) {
  void* at = mmap(nullptr, sizeof(abi::segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) fail("cannot map " + path);
  return static_cast<abi::segment*>(at);
}

void fill(abi::segment& s, std::string const& job, policy::compiled const& limits) {
  constexpr auto relaxed = std::memory_order_relaxed;
  std::int64_t const now_ns = monotonic_ns();
  abi::header& h = s.head;
  h.layout = abi::layout_version;
  h.total_bytes = sizeof(abi::segment);
  h.ruleset_bytes = sizeof(core::ruleset);
  h.bucket_bytes = sizeof(core::bucket);
  h.shard_bytes = sizeof(abi::shard);
  h.slot_bytes = sizeof(abi::process_slot);
  h.created_ns = static_cast<std::uint64_t>(now_ns);
  h.created_unix_s = static_cast<std::uint64_t>(std::time(nullptr));
  h.creator_pid = static_cast<std::uint32_t>(getpid());
  h.owner_uid = geteuid();
  h.limits_hash = limits.hash;
  std::strncpy(h.job, job.c_str(), sizeof h.job - 1);
  std::memcpy(static_cast<void*>(&s.rules), limits.rules.get(), sizeof(core::ruleset));
  for (std::size_t i = 0; i < limits.curves.size(); ++i)
    core::init(s.bucket[i], limits.curves[i], now_ns);
  h.state.store(static_cast<std::uint32_t>(abi::segment_state::ready), relaxed);
  h.magic_word.store(abi::magic, std::memory_order_release);
}

/// Room is taken now: a full file system later would kill the job's processes with SIGBUS.
void write_segment(std::string const& path, std::string const& job,
                   policy::compiled const& limits) {
  descriptor const fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) fail("cannot make " + path);
  if (fallocate(fd.get(), 0, 0, sizeof(abi::segment)) != 0) {
    if (errno != EOPNOTSUPP && errno != ENOSYS) fail("no room for " + path);
    if (ftruncate(fd.get(), sizeof(abi::segment)) != 0) fail("no room for " + path);
  }
  abi::segment* const s = map(fd.get(), path);
  fill(*s, job, limits);
  munmap(s, sizeof *s);
}

}  // namespace

mapping mapping::open(std::string const& path) {
  descriptor const fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (fd.get() < 0) fail(path);
  struct stat st = {};
  if (fstat(fd.get(), &st) != 0) fail(path);
  if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
    throw sluice_error(path + ": not a file of ours");
  if (st.st_size != sizeof(abi::segment))
    throw sluice_error(path + ": made by another version of sluice");
  mapping m(map(fd.get(), path));
  if (char const* why = abi::refuse_reason(*m, static_cast<std::uint64_t>(st.st_size)))
    throw sluice_error(fmt::format("{}: {}", path, why));
  return m;
}

mapping::~mapping() {
  if (at_ != nullptr) munmap(at_, sizeof *at_);
}

bool create(std::string const& run_dir, std::string const& job, std::string const& library,
            policy::compiled const& limits) {
  std::string const fresh = fmt::format("{}/.new-{}", jobs_dir(run_dir), getpid());
  std::error_code ignored;
  std::filesystem::remove_all(fresh, ignored);
  if (mkdir(fresh.c_str(), 0700) != 0) fail("cannot make " + fresh);
  try {
    write_segment(fresh + "/segment", job, limits);
    if (symlink(library.c_str(), (fresh + "/libinterpose.so").c_str()) != 0)
      fail("cannot link the library in " + fresh);
    if (rename(fresh.c_str(), job_dir(run_dir, job).c_str()) == 0) return true;
    if (errno != EEXIST && errno != ENOTEMPTY) fail("cannot make the job " + job);
  } catch (...) {
    std::filesystem::remove_all(fresh, ignored);
    throw;
  }
  std::filesystem::remove_all(fresh, ignored);
  return false;
}

sums sum(abi::segment const& s) {
  constexpr auto relaxed = std::memory_order_relaxed;
  sums total;
  total.call.resize(abi::max_calls);
  total.channel.resize(std::min(s.rules.channel_count, core::max_channels));
  auto const add = [&](abi::shard const& from) {
    for (unsigned i = 0; i < abi::max_calls; ++i) {
      total.call[i].calls += from.call[i].calls.load(relaxed);
      total.call[i].errors += from.call[i].errors.load(relaxed);
      total.call[i].bytes += from.call[i].bytes.load(relaxed);
      total.call[i].delayed += from.call[i].delayed.load(relaxed);
      total.call[i].waited_ns += from.call[i].waited_ns.load(relaxed);
    }
    for (std::size_t i = 0; i < total.channel.size(); ++i) {
      total.channel[i].calls += from.channel[i].calls.load(relaxed);
      total.channel[i].amount += from.channel[i].amount.load(relaxed);
      total.channel[i].delayed += from.channel[i].delayed.load(relaxed);
      total.channel[i].waited_ns += from.channel[i].waited_ns.load(relaxed);
    }
  };
  unsigned const used = std::min(s.head.shards_used.load(relaxed), abi::owned_shards);
  for (unsigned i = 0; i < used; ++i) add(s.owned[i]);
  for (auto const& common : s.common) add(common);
  // A stage counts what a channel of operations takes only once.
  for (std::size_t i = 0; i < total.channel.size(); ++i)
    if (s.rules.channel[i].unit == static_cast<std::uint8_t>(core::unit_kind::ops))
      total.channel[i].amount = total.channel[i].calls;
  return total;
}

std::string job_name(abi::segment const& s) {
  return std::string(s.head.job, strnlen(s.head.job, sizeof s.head.job));
}

std::int64_t monotonic_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace sluice::segment
