// SPDX-License-Identifier: Apache-2.0
// The life of a replay: read the trace, make the files, start the jobs, look until all was sent,
// remove the files, say what happened. A signal ends any of it, and the removal still comes.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "base/on_stderr.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "commands/replay/harvest.h"
#include "commands/replay/job_processes.h"
#include "commands/replay/options.h"
#include "commands/replay/progress.h"
#include "commands/replay/result.h"
#include "commands/trace/lines.h"

namespace sluice::replay {

namespace {

constexpr std::int64_t tick_ns = 50'000'000;
constexpr std::int64_t start_in_ns = 20'000'000;
constexpr double most_past_s = 3600;  // of --start-at

volatile std::sig_atomic_t caught = 0;  // the first signal
volatile std::sig_atomic_t times = 0;

/// A call on a file may hold us up, under a limit of 0 for ever: the third signal ends it.
void on_signal(int number) {
  if (caught == 0) caught = number;
  times = times + 1;
  if (times == 2) std::signal(number, SIG_DFL);
}

void catch_signals() {
  struct sigaction a = {};
  a.sa_handler = on_signal;  // without SA_RESTART: sleeps end
  for (int const s : {SIGINT, SIGTERM, SIGHUP}) sigaction(s, &a, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

/// Options that the trace completes.
void settle(options& o, trace::trace const& t) {
  auto size_of = [&](char const* fact) -> std::uint64_t {
    double bytes = 0;
    bool const known = to_number(t.fact(fact), bytes) && bytes >= 1 && bytes <= 1 << 30;
    return known ? static_cast<std::uint64_t>(bytes) : 65536;
  };
  if (o.plan.read_bytes == 0) o.plan.read_bytes = size_of("read_size");
  if (o.plan.write_bytes == 0) o.plan.write_bytes = size_of("write_size");
  o.tree.file_bytes = std::max({o.tree.file_bytes, o.plan.read_bytes, o.plan.write_bytes});
}

trace::trace load_of(options& o, trace::trace const& t) {
  settle(o, t);
  trace::trace load = shape(t, o.load);
  return o.only_job.empty() ? load : only_job(load, o.only_job);
}

void settle_end(options& o, plan const& p) {
  if (o.drain_s) o.sending.end_ns = static_cast<std::int64_t>((p.length_s + *o.drain_s) * 1e9);
}

/// The trace where those who are started anew can read it, also when it came from a pipe.
int keep_text(std::string const& text) {
  int const fd = memfd_create("sluice-trace", 0);
  for (std::size_t at = 0; fd >= 0 && at < text.size();) {
    ssize_t const n = write(fd, text.data() + at, text.size() - at);
    if (n <= 0) throw sluice_error("cannot keep the trace in memory");
    at += static_cast<std::size_t>(n);
  }
  return fd;
}

std::string read_all(std::istream& from) {
  std::ostringstream text;
  text << from.rdbuf();
  return text.str();
}

class replayer {
 public:
  explicit replayer(options o) : o_(std::move(o)) {}

  int run();

 private:
  void read();
  void tell_place();
  bool populate_all(names const& n);
  bool wait_until_ready(job_processes& c);
  void start();
  void watch(job_processes& c);
  void conclude();
  std::int64_t now_ns() const { return steady_ns() - start_ns_; }

  options o_;
  std::vector<std::pair<std::string, std::string>> facts_;
  plan plan_;
  int trace_fd_ = -1;
  std::optional<own_directory> place_;
  std::optional<output_file> file_;
  std::optional<shared_counters> book_;
  std::optional<harvest> seen_;
  std::optional<progress> bar_;
  std::int64_t start_ns_ = 0;
  double start_unix_s_ = 0, end_s_ = 0;
  std::string trouble_;
};

void replayer::read() {
  check_shape(o_.tree);
  if (!o_.wrap.empty() && split_words(o_.wrap).empty()) throw usage_error("--wrap has no command");
  trace::trace t;
  if (o_.wrap.empty()) {
    t = trace::read(o_.trace);
  } else {
    trace::input in(o_.trace);
    std::string const text = read_all(in.stream());
    trace_fd_ = keep_text(text);
    std::istringstream again(text);
    t = trace::read(again, in.name());
  }
  trace::trace const load = load_of(o_, t);
  facts_ = t.facts;
  plan_ = make_plan(load, o_.plan);
  settle_end(o_, plan_);
}

/// To processes that may be exec'd again.
void replayer::tell_place() {
  counters_head& head = book_->head();
  struct stat st = {};
  if (fstat(place_->fd(), &st) != 0) throw sluice_error("cannot look at " + place_->path());
  place_->path().copy(head.root, sizeof head.root - 1);
  head.root_device = st.st_dev;
  head.root_inode = st.st_ino;
}

bool replayer::populate_all(names const& n) {
  working_in const there(place_->fd());
  auto const go_on = [] { return caught == 0; };
  for (unsigned job = 0; job < plan_.jobs.size() && go_on(); ++job) {
    bar_->say(fmt::format("making the files of {}", plan_.jobs[job]));
    wanted_files w;
    w.job = job;
    for (unsigned i = 0; i < plan_.workers.size(); ++i)
      if (plan_.workers[i].job == job) w.workers.push_back(i);
    w.reads = plan_.has(job, core::op::read);
    w.xattrs = plan_.has(job, core::op::getxattr);
    populate(n, w, go_on);
  }
  return go_on();
}

bool replayer::wait_until_ready(job_processes& c) {
  bar_->say("starting");
  for (;;) {
    if (caught != 0) return false;
    if (std::string const why = c.look(); !why.empty()) throw sluice_error(why);
    if (int const e = book_->head().error.load(); e != 0)
      throw sluice_error(fmt::format("cannot prepare {}: {}",
                                     trace::op_table[book_->head().error_op.load()].name,
                                     std::strerror(e)));
    bool all = true;
    for (unsigned w = 0; w < plan_.workers.size() && all; ++w)
      all = book_->worker(w).ready.load(std::memory_order_acquire);
    if (all) return true;
    sleep_until(steady_ns() + 1'000'000);
  }
}

void replayer::start() {
  std::int64_t const now = steady_ns(), unix_now = unix_ns();
  start_ns_ = now + start_in_ns + static_cast<std::int64_t>(plan_.warm_up_s * 1e9);
  if (o_.start_at_unix_s)
    start_ns_ = now + static_cast<std::int64_t>(*o_.start_at_unix_s * 1e9) - unix_now;
  start_unix_s_ = static_cast<double>(unix_now + start_ns_ - now) / 1e9;
  book_->head().start_ns.store(start_ns_, std::memory_order_release);
}

void replayer::watch(job_processes& c) {
  for (glance g; caught == 0 && trouble_.empty();) {
    g = seen_->look(o_.sending.closed_loop ? 0 : now_ns());
    trouble_ = c.look();
    bar_->show(static_cast<double>(now_ns()) / 1e9, plan_.length_s, g.sent, g.lag_s);
    if (g.all_ended) break;
    sleep_until(steady_ns() + tick_ns);
  }
  end_s_ = static_cast<double>(now_ns()) / 1e9;
  if (caught != 0) bar_->say("stopping");
  c.stop();
  seen_->finish();
}

void replayer::conclude() {
  replay_result o{o_, plan_, seen_->times(), *book_, facts_, start_unix_s_, 0, false};
  std::int64_t last_ns = 0;
  for (unsigned w = 0; w < plan_.workers.size(); ++w) {
    worker_page const& page = book_->worker(w);
    last_ns = std::max(last_ns, page.last_ns.load());
    if (page.next_ns.load() != INT64_MAX || !page.ended.load()) o.is_stopped = true;
  }
  o.elapsed_s = std::max(0.0, o.is_stopped ? end_s_ : static_cast<double>(last_ns) / 1e9);
  if (file_) {
    file_->stream() << result_json(o).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                    << '\n';
    file_->commit();
  }
  if (!o_.quiet) {
    fmt::print(o_.output == "-" ? stderr : stdout, "{}", without_commands(result_table(o)));
    std::fflush(stdout);
  }
}

int replayer::run() {
  read();
  if (!o_.output.empty()) file_.emplace(o_.output);
  catch_signals();
  bar_.emplace(o_.quiet);
  place_.emplace(o_.target, "sluice-replay");
  book_.emplace(plan_.shape());
  book_->head().fingerprint = plan_.fingerprint();
  tell_place();
  seen_.emplace(plan_, *book_);
  bool begun = populate_all({o_.tree});
  if (begun) {
    job_processes c(o_, plan_, *book_, trace_fd_);
    begun = wait_until_ready(c);
    if (begun) {
      start();
      watch(c);
    }
  }
  bar_->say("removing the files");
  std::string why;
  bool const clean = place_->remove(why, [] { return times < 2; });
  bar_.reset();
  if (begun) conclude();
  if (!clean) on_stderr("sluice: {}\n", why);
  if (!trouble_.empty()) throw sluice_error(trouble_);
  if (caught != 0) return 128 + caught;
  return clean ? 0 : exit_sluice;
}

}  // namespace

std::string const& options::class_of(std::string const& job) const {
  static std::string const none;
  std::string const* general = &none;
  for (auto const& [name, qos_class] : classes) {
    if (name == job) return qos_class;
    if (name.empty()) general = &qos_class;
  }
  return *general;
}

trace::trace read_load(options& o) {
  trace::trace const t = trace::read(o.trace);
  return load_of(o, t);
}

int replay(options const& o) {
  if (o.start_at_unix_s &&
      *o.start_at_unix_s * 1e9 < static_cast<double>(unix_ns()) - most_past_s * 1e9)
    throw usage_error(fmt::format("--start-at {:.0f} is long past; it is seconds since 1970",
                                  *o.start_at_unix_s));
  return replayer(o).run();
}

int join_replay(options const& asked) {
  options o = asked;
  joined const& j = *o.join;
  std::ifstream file(fmt::format("/proc/self/fd/{}", j.trace_fd));
  trace::trace const t = trace::read(file, o.trace);
  plan const p = make_plan(load_of(o, t), o.plan);
  settle_end(o, p);
  shared_counters book(p.shape(), j.counters_fd);
  if (j.job >= p.jobs.size() || book.head().fingerprint != p.fingerprint())
    throw sluice_error("this is not the replay that was started; the program changed meanwhile");
  close(j.trace_fd);
  return run_job(o, p, book, j.job, j.pipe_fd);
}

}  // namespace sluice::replay
