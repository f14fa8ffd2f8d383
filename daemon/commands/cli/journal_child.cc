// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/journal_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "abi/order_area.h"
#include "base/believed_place.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "base/installed.h"
#include "base/on_stderr.h"
#include "base/output_file.h"
#include "base/who_may_rename.h"
#include "segment/mapping.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

constexpr std::int64_t look_ns = 200'000'000;
constexpr std::int64_t pause_ns = 1'000'000'000;  // before it is started again
constexpr int most_deaths = 5;
constexpr int patience_ms = 60'000;  // all may have to go home

/// The end of a child within some time. False: it still runs.
bool wait_for_end(pid_t pid, int& status, int patience) {
  for (int waited = 0; waited < patience; waited += 5) {
    pid_t const got = waitpid(pid, &status, WNOHANG);
    if (got == pid || (got < 0 && errno == ECHILD)) return true;
    timespec const nap = {0, 5'000'000};
    nanosleep(&nap, nullptr);
  }
  return false;
}

/// 0 where there is no area.
std::uint32_t durable_targets(std::string const& area) {
  auto const file = open_foreign(area, O_RDONLY, any_owner);
  std::uint32_t mask = 0;
  off_t const at = offsetof(abi::order_header, durable_targets);
  return file && pread(file.fd.get(), &mask, sizeof mask, at) == ssize_t(sizeof mask) ? mask : 0;
}

/// Users who share a directory have a journal each.
std::string log_in(core::ruleset const& rules, unsigned target, uid_t user) {
  return fmt::format("{}/.sluice-order.{}.log", core::view(rules, rules.target[target].path), user);
}

std::string own_log(core::ruleset const& rules, std::uint32_t targets, std::string const& log) {
  if (!log.empty()) return without_links(log);
  std::string const own =
      log_in(rules, static_cast<unsigned>(std::countr_zero(targets)), geteuid());
  if (auto const why = why_not_believed(own))
    throw usage_error(
        fmt::format("{}: {}: name a file that lies elsewhere with --order-journal", own, *why));
  struct stat st = {};
  if (lstat(own.c_str(), &st) == 0 && st.st_uid != geteuid())
    throw usage_error(fmt::format(
        "{}: belongs to another user, and the journal would lie there: name another file with "
        "--order-journal",
        own));
  std::string const dir = std::filesystem::path(own).parent_path();
  descriptor const where(open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string const others = where ? who_may_rename(where.get()) : "";
  if (!others.empty())
    on_stderr(
        "sluice: warning: {}: {} may remove the journal there, and after a crash what it has is "
        "gone: name a file elsewhere with --order-journal\n",
        dir, others);
  return own;
}

}  // namespace

void check_left_logs(foreign<abi::segment> const& s, std::string const& segment_path,
                     std::string const& own) {
  auto const rules = segment::rules_of(s);
  std::uint32_t const targets = durable_targets(segment::order_path(segment_path));
  for (unsigned t = 0; t < core::max_targets && t < rules->target_count; ++t) {
    if ((targets >> t & 1) == 0) continue;
    std::string const log = log_in(*rules, t, geteuid());
    // What another user puts there keeps nobody from working, nor does what he mounts.
    if (why_not_believed(log)) continue;
    struct stat st = {};
    bool const is_there = lstat(log.c_str(), &st) == 0 && S_ISREG(st.st_mode);
    if (!is_there || log == own || st.st_uid != geteuid()) continue;
    throw sluice_error(fmt::format(
        "{}: a run that was cut off left this journal, and the files there lack what it has: bring "
        "it home with `sluice recover`, and remove it. Or a run has it now: two journals for one "
        "directory cannot be",
        log));
  }
}

std::unique_ptr<journal_child> serve_journal(foreign<abi::segment> const& s,
                                             std::string const& segment_path,
                                             std::string const& log) {
  std::string const area = segment::order_path(segment_path);
  std::uint32_t const targets = durable_targets(area);
  if (targets == 0) {
    if (!log.empty()) throw usage_error("--order-journal: no target is durable; see --order");
    return nullptr;
  }
  auto const rules = segment::rules_of(s);
  // Its segment and its area are two files: they may say different things.
  if (static_cast<unsigned>(std::countr_zero(targets)) >= rules->target_count)
    throw sluice_error(area + ": a target that nobody named");
  std::string const file = own_log(*rules, targets, log);
  check_left_logs(s, segment_path, file);
  return std::make_unique<journal_child>(area, file, log.empty());
}

journal_child::journal_child(std::string area, std::string log, bool remove_log)
    : program_(find_beside("sluice-order")),
      area_(std::move(area)),
      log_(std::move(log)),
      remove_log_(remove_log) {
  if (program_.empty())
    throw sluice_error("--order: sluice-order is not beside sluice; it is installed with it");
  start();
  if (is_ready()) return;
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
  throw sluice_error(fmt::format("--order: the journal daemon for {} does not start{}", log_,
                                 WIFSIGNALED(status)
                                     ? fmt::format(" (signal {})", WTERMSIG(status))
                                     : fmt::format(" (status {})", WEXITSTATUS(status))));
}

/// Waits until it says so, or has ended.
bool journal_child::is_ready() const {
  char word = 0;
  ssize_t got = 0;
  while ((got = read(ready_.get(), &word, 1)) < 0 && errno == EINTR) {
  }
  return got == 1;
}

void journal_child::start() {
  std::vector<std::string> words = {"--area", area_, "--journal", log_};
  if (remove_log_) words.emplace_back("--remove");
  auto begun = segment::start_journal(program_, std::move(words), sentinel_, false);
  pid_ = begun.pid;
  ready_ = std::move(begun.ready);
}

void journal_child::say_how_it_ended(int status) const {
  on_stderr("sluice: warning: the journal daemon ended ({} {}): fsync is native {}\n",
            WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
            deaths_ < most_deaths ? "until it is back" : "from now on");
}

std::int64_t journal_child::look(std::int64_t now_ns) {
  int status = 0;
  if (pid_ != 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = 0;
    ++deaths_;
    again_ns_ = now_ns + pause_ns;
    say_how_it_ended(status);
  }
  if (pid_ == 0 && deaths_ < most_deaths && now_ns >= again_ns_) start();
  return now_ns + look_ns;
}

journal_child::~journal_child() {
  try {
    // One that died left records behind: a new one brings them home.
    if (pid_ == 0 && deaths_ != 0) {
      start();
      is_ready();
    }
    if (pid_ == 0) return;
    kill(pid_, SIGTERM);
    int status = 0;
    if (!wait_for_end(pid_, status, patience_ms))
      on_stderr("sluice: warning: the journal daemon (pid {}) is still emptying {}\n", pid_, log_);
    else if (status != 0)
      on_stderr("sluice: warning: the journal {} was not emptied: run `sluice recover {}`\n", log_,
                log_);
  } catch (std::exception const& e) {
    on_stderr("sluice: warning: {}\n", e.what());
  }
}

}  // namespace sluice::cli
