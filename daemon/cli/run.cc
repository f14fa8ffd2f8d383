// SPDX-License-Identifier: Apache-2.0
// sluice run: make or join a job, put the library in front of the program, start it.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/limits.h"
#include "cli/options.h"
#include "cli/program.h"
#include "cli/report.h"
#include "cli/supervise.h"
#include "policy/error.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"
#include "segment/segment_file.h"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;

/// The library that belongs to this binary.
std::string find_library() {
  std::error_code failed;
  fs::path const self = fs::read_symlink("/proc/self/exe", failed);
  fs::path const prefix = self.parent_path().parent_path();
  for (char const* place : {"lib/libinterpose.so", "lib/sluice/libinterpose.so"})
    if (fs::exists(prefix / place, failed)) return prefix / place;
  throw sluice_error(
      fmt::format("libinterpose.so is neither in {0}/lib nor in {0}/lib/sluice", prefix.string()));
}

/// A job made or joined for this run.
struct membership {
  std::string run_dir;
  std::string job;
  std::uint32_t creator_before = 0;  // joined: who must be alive for the job to be so
};

std::string anonymous_name(std::string const& run_dir) {
  std::string const name = fmt::format("run-{}", getpid());
  std::error_code failed;
  std::string free = name;
  // A background process of an earlier run with our pid may still own the plain name.
  for (int i = 2; fs::exists(segment::job_dir(run_dir, free), failed); ++i)
    free = fmt::format("{}-{}", name, i);
  return free;
}

std::atomic_ref<std::uint32_t> creator(abi::segment& s) {
  return std::atomic_ref<std::uint32_t>(s.head.creator_pid);
}

void join(membership& m, run_options const& options, policy::compiled const& limits) {
  auto const existing = segment::mapping::open(segment::segment_path(m.run_dir, m.job));
  if (options.limits.any() && existing->head.limits_hash != limits.hash)
    throw usage_error(fmt::format(
        "job {} is running with other limits: leave them out to join it, or change them with "
        "`sluice set {} CHANNEL=RATE`",
        m.job, m.job));
  m.creator_before = creator(*existing).exchange(static_cast<std::uint32_t>(getpid()));
}

membership enter(global_options const& global, run_options const& options) {
  membership m;
  m.run_dir = segment::run_dir(global.run_dir);
  policy::compiled const limits = compile_limits(options.limits);
  std::string const library = find_library();
  segment::file_lock const lock(m.run_dir + "/lock");
  segment::collect_garbage(m.run_dir);
  m.job = options.job.empty() ? anonymous_name(m.run_dir) : options.job;
  if (!segment::create(m.run_dir, m.job, library, limits)) join(m, options, limits);
  return m;
}

/// Removes the job unless somebody else is still in it.
void leave(membership const& m) {
  segment::file_lock const lock(m.run_dir + "/lock");
  {
    auto const s = segment::mapping::open(segment::segment_path(m.run_dir, m.job));
    std::uint32_t self = static_cast<std::uint32_t>(getpid());
    creator(*s).compare_exchange_strong(self, m.creator_before);
    if (segment::is_live(*s)) return;
  }
  segment::remove_job(m.run_dir, m.job);
}

/// Ours plus LD_PRELOAD, which goes before what the user preloads.
std::vector<std::string> environment(membership const& m, bool preload) {
  std::vector<std::string> out;
  std::string value = segment::job_dir(m.run_dir, m.job) + "/libinterpose.so";
  for (char** e = environ; *e != nullptr; ++e) {
    bool const is_preload = std::strncmp(*e, "LD_PRELOAD=", 11) == 0;
    if (preload && is_preload) {
      if ((*e)[11] != 0) value += fmt::format(":{}", *e + 11);
    } else {
      out.emplace_back(*e);
    }
  }
  if (preload) out.push_back("LD_PRELOAD=" + value);
  return out;
}

void warn_if_unlimited(program_facts const& program) {
  if (!program.limited)
    fmt::print(stderr, "sluice: warning: {} will not be limited: {}\n", program.path, program.why);
}

struct file_closer {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using file = std::unique_ptr<std::FILE, file_closer>;

/// Opened before the program starts: a name that cannot be written is told now, not after hours.
file open_report(std::string const& path) {
  if (path.empty()) return nullptr;
  file f(path == "-" ? fdopen(dup(STDOUT_FILENO), "we") : std::fopen(path.c_str(), "we"));
  if (!f) throw sluice_error(fmt::format("--report {}: {}", path, std::strerror(errno)));
  return f;
}

bool wants_summary(run_options const& options) {
  return options.summary.value_or(isatty(STDERR_FILENO) == 1);
}

int run_and_report(membership const& m, run_options const& options, bool preload, file report) {
  auto const s = segment::mapping::open(segment::segment_path(m.run_dir, m.job));
  std::int64_t const begin_ns = segment::monotonic_ns();
  run_facts facts;
  facts.command = options.command;
  facts.end = supervise(options.command, environment(m, preload));
  facts.elapsed_s = static_cast<double>(segment::monotonic_ns() - begin_ns) / 1e9;
  json const result = report_json(*s, facts);
  std::string const text = dump(result);
  if (report && (std::fwrite(text.data(), 1, text.size(), report.get()) != text.size() ||
                 std::fflush(report.get()) != 0))
    fmt::print(stderr, "sluice: cannot write {}: {}\n", options.report, std::strerror(errno));
  report.reset();
  if (wants_summary(options)) fmt::print(stderr, "{}", report_table(result));
  leave(m);
  std::fflush(nullptr);
  end_like(*facts.end);
}

}  // namespace

int run_verb(global_options const& global, run_options const& options) {
  if (options.command.empty())
    throw usage_error("run: nothing to run; write: sluice run [OPTIONS] -- PROGRAM [ARGUMENTS]");
  if (!options.job.empty()) segment::check_job_name(options.job);
  program_facts const program = inspect_program(find_program(options.command[0]));
  file report = open_report(options.report);
  membership const m = enter(global, options);
  warn_if_unlimited(program);
  if (global.verbose)
    fmt::print(stderr, "sluice: job {} in {}\n", m.job, segment::job_dir(m.run_dir, m.job));
  try {
    if (report || wants_summary(options))
      return run_and_report(m, options, program.loads_library, std::move(report));
    int const why = become(options.command, environment(m, program.loads_library));
    throw error(status_of_exec_failure(why),
                fmt::format("cannot execute {}: {}", options.command[0], std::strerror(why)));
  } catch (error const&) {
    leave(m);
    throw;
  }
}

}  // namespace sluice::cli
