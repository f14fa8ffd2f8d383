// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/engine.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/quantity.h"
#include "commands/calibrate/metadata.h"
#include "commands/calibrate/rate.h"
#include "commands/calibrate/requests.h"
#include "core/histogram.h"

namespace sluice::calibrate {

namespace {

constexpr std::int64_t look_ns = 500'000;  // between two looks at the board
constexpr std::int64_t longest_ramp_ns = 1'500'000'000;
constexpr std::int64_t patience_ns = 30'000'000'000;  // for what must be made before the load

/// A thread's counters: it alone writes them.
struct alignas(64) hand {
  std::atomic<std::uint64_t> calls, runs;
  std::atomic<std::uint64_t> busy_ns;  // in calls
  core::histogram took;
};

/// The memory that all processes share; zeroed memory is an empty one.
struct board {
  std::atomic<unsigned> ready;
  std::atomic<bool> go, stop;
  std::atomic<int> error;                // errno of the first failure
  std::atomic<unsigned> failed;          // its group
  std::atomic<std::int64_t> next_ns[2];  // of a group that is held back: when the next may begin
};

class shared_board {
 public:
  explicit shared_board(unsigned hands) : bytes_(sizeof(board) + hands * sizeof(hand) + 64) {
    void* const at =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw sluice_error("not enough memory");
    at_ = static_cast<std::byte*>(at);
  }
  ~shared_board() { munmap(at_, bytes_); }
  shared_board(shared_board const&) = delete;
  shared_board& operator=(shared_board const&) = delete;

  board& head() const { return *reinterpret_cast<board*>(at_); }
  hand& of(unsigned thread) const {
    return reinterpret_cast<hand*>(at_ + (sizeof(board) + 63) / 64 * 64)[thread];
  }

 private:
  std::size_t bytes_;
  std::byte* at_;
};

/// A thread's place in the whole.
struct post {
  unsigned group = 0;
  unsigned thread = 0;  // of its group
  unsigned number = 0;  // of all
};

class worker {
 public:
  worker(ground const& where, thread_group const& of, post const& p, int directory,
         shared_board& shared)
      : of_(of), post_(p), head_(shared.head()), own_(shared.of(p.number)) {
    if (of.what.moves_bytes()) {
      text_.reset(std::aligned_alloc(page_bytes, (of.what.bytes / page_bytes + 2) * page_bytes));
      if (!text_) throw std::bad_alloc();
      std::memset(text_.get(), static_cast<int>(1 + p.number % 255), of.what.bytes);
      data_.emplace(where, of.what, p.thread, of.threads, static_cast<char*>(text_.get()));
      if (data_->error() != 0) fail(data_->error());
    } else {
      names_.emplace(of.what.op, directory, fmt::format("t{}", p.number));
      if (names_->error() != 0) fail(names_->error());
    }
  }

  void run() {
    head_.ready.fetch_add(1);
    while (!head_.go && !head_.stop) sleep_until(steady_ns() + 100'000);
    while (!head_.stop) {
      bool const went_well = names_ ? call_names() : move_bytes();
      if (!went_well) return;
    }
  }

 private:
  void fail(int why) {
    int none = 0;
    if (head_.error.compare_exchange_strong(none, why)) head_.failed = post_.group;
    head_.stop = true;
  }

  bool move_bytes() {
    if (!wait_for_turn()) return false;
    std::int64_t const begun_ns = steady_ns();
    if (int const why = data_->run(); why != 0) {
      fail(why);
      return false;
    }
    note(data_->per_run(), steady_ns() - begun_ns);
    return true;
  }

  bool call_names() {
    auto const turn = names_->run();
    if (turn.error != 0) {
      fail(turn.error);
      return false;
    }
    note(turn.calls, turn.took_ns);
    return true;
  }

  /// Of a group that is held back: begins when its turn is due.
  bool wait_for_turn() {
    if (of_.most_per_s <= 0) return true;
    auto const each_ns = static_cast<std::int64_t>(1e9 * data_->per_run() / of_.most_per_s);
    std::int64_t const due_ns = head_.next_ns[post_.group].fetch_add(each_ns);
    while (steady_ns() < due_ns) {
      if (head_.stop) return false;
      sleep_until(std::min(due_ns, steady_ns() + 20'000'000));
    }
    return true;
  }

  void note(unsigned calls, std::int64_t took_ns) {
    own_.took.add(static_cast<std::uint64_t>(took_ns) / calls, calls);
    own_.calls.fetch_add(calls);
    own_.runs.fetch_add(1);
    own_.busy_ns.fetch_add(static_cast<std::uint64_t>(took_ns));
  }

  thread_group const& of_;
  post post_;
  board& head_;
  hand& own_;
  std::unique_ptr<void, void (*)(void*)> text_{nullptr, std::free};
  std::optional<requests> data_;
  std::optional<metadata_work> names_;
};

std::vector<post> posts_of(std::vector<thread_group> const& groups) {
  std::vector<post> out;
  for (unsigned c = 0; c < groups.size(); ++c)
    for (unsigned t = 0; t < groups[c].threads; ++t)
      out.push_back({c, t, static_cast<unsigned>(out.size())});
  return out;
}

/// A process of the load, from its begin to its end.
int be_process(ground const& where, std::vector<thread_group> const& groups,
               std::vector<post> const& mine, int directory, shared_board& shared) {
  try {
    std::vector<std::unique_ptr<worker>> workers;
    for (post const& p : mine)
      workers.push_back(std::make_unique<worker>(where, groups[p.group], p, directory, shared));
    std::vector<std::jthread> threads;
    for (auto const& w : workers) threads.emplace_back([&w] { w->run(); });
  } catch (std::exception const&) {
    int none = 0;
    shared.head().error.compare_exchange_strong(none, ENOMEM);
    shared.head().stop = true;
  }
  return 0;
}

struct glance {
  std::vector<std::uint64_t> calls, runs, busy_ns;  // by thread
  std::vector<core::histogram_counts> took;         // by group
};

class load {
 public:
  load(ground const& where, std::vector<thread_group> const& groups, unsigned processes,
       bool (*is_asked)())
      : where_(where),
        groups_(groups),
        posts_(posts_of(groups)),
        shared_(static_cast<unsigned>(posts_.size())),
        is_asked_(is_asked),
        moments_(groups.size()) {
    if (!groups[0].what.moves_bytes()) {
      directory_.emplace(where.path(), directory_name);
      where.announce(*directory_);
    }
    start(std::min(processes, static_cast<unsigned>(posts_.size())));
  }
  ~load() { end(); }
  load(load const&) = delete;
  load& operator=(load const&) = delete;

  load_seen measure(timing const& t, std::int64_t window_ns);

 private:
  void start(unsigned processes);
  void end();
  void check();
  glance look_now() const;
  /// Until `is_done(now)` or `until_ns`.
  template <class Done>
  void wait(std::int64_t until_ns, Done is_done);
  bool has_all(glance const& since, unsigned runs) const;
  void note_moment(std::int64_t now);
  std::vector<rate_seen> rates(glance const& from, glance const& to) const;
  std::string failure() const;

  ground const& where_;
  std::vector<thread_group> const& groups_;
  std::vector<post> posts_;
  shared_board shared_;
  bool (*is_asked_)();
  std::optional<own_directory> directory_;
  std::vector<pid_t> children_;
  std::vector<std::vector<moment>> moments_;  // of the window, by group
};

void load::start(unsigned processes) {
  pid_t const parent = getpid();
  for (unsigned i = 0; i < processes; ++i) {
    std::vector<post> mine;
    for (post const& p : posts_)
      if (p.number % processes == i) mine.push_back(p);
    pid_t const child = fork();
    if (child < 0) {
      int const why = errno;
      end();
      throw sluice_error(fmt::format("cannot start a process: {}", std::strerror(why)));
    }
    if (child > 0) {
      children_.push_back(child);
      continue;
    }
    // The terminal tells the parent alone; with it we go, however it ends.
    for (int const s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(s, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    _exit(be_process(where_, groups_, mine, directory_ ? directory_->fd() : -1, shared_));
  }
}

void load::end() {
  shared_.head().stop = true;
  for (pid_t const child : children_)
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  children_.clear();
}

std::string load::failure() const {
  work const& what = groups_[shared_.head().failed].what;
  return what.moves_bytes() ? fmt::format("a {} of {}", what.op, size_words(what.bytes)) : what.op;
}

template <class Done>
void load::wait(std::int64_t until_ns, Done is_done) {
  for (std::int64_t now = steady_ns(); now < until_ns && !is_done(now); now = steady_ns()) {
    if (is_asked_()) throw interrupted();
    if (shared_.head().error != 0) return;
    for (pid_t const child : children_)
      if (waitpid(child, nullptr, WNOHANG) == child) {
        std::erase(children_, child);
        if (shared_.head().error == 0)
          throw sluice_error("a process of the calibration was ended by somebody");
        return;
      }
    sleep_until(now + look_ns);
  }
}

glance load::look_now() const {
  glance out;
  out.took.resize(groups_.size());
  for (post const& p : posts_) {
    hand const& h = shared_.of(p.number);
    out.calls.push_back(h.calls);
    out.runs.push_back(h.runs);
    out.busy_ns.push_back(h.busy_ns);
    h.took.add_to(out.took[p.group]);
  }
  return out;
}

void load::note_moment(std::int64_t now) {
  for (auto& of_group : moments_) of_group.push_back({now, 0});
  for (post const& p : posts_) moments_[p.group].back().ended += shared_.of(p.number).calls;
}

bool load::has_all(glance const& since, unsigned runs) const {
  for (post const& p : posts_)
    if (shared_.of(p.number).runs < since.runs[p.number] + runs) return false;
  return true;
}

/// Of operations on names only the calls are timed, so their rate is the number of threads by the
/// time of a call: in the sums of all threads, for a thread may lose its processor in a call or
/// beside it.
std::vector<rate_seen> load::rates(glance const& from, glance const& to) const {
  std::vector<rate_seen> out(groups_.size());
  for (unsigned c = 0; c < groups_.size(); ++c) out[c].per_s = steady_rate(moments_[c]);
  if (directory_) {
    double calls = 0, busy_ns = 0;
    for (post const& p : posts_) {
      calls += static_cast<double>(to.calls[p.number] - from.calls[p.number]);
      busy_ns += static_cast<double>(to.busy_ns[p.number] - from.busy_ns[p.number]);
    }
    out[0].per_s = busy_ns > 0 ? static_cast<double>(posts_.size()) * calls / busy_ns * 1e9 : 0;
  }
  for (unsigned c = 0; c < groups_.size(); ++c) {
    core::histogram_counts took = to.took[c];
    for (std::size_t i = 0; i < core::histogram_steps; ++i) took.count[i] -= from.took[c].count[i];
    out[c].p50_us = static_cast<double>(took.percentile(0.5)) / 1e3;
    out[c].p99_us = static_cast<double>(took.percentile(0.99)) / 1e3;
  }
  return out;
}

/// The answers of file systems that do not have an operation.
bool is_missing(int why) {
  for (int const none : {EOPNOTSUPP, ENOSYS, EPERM, EINVAL, EMLINK, ENOTTY, ENODATA})
    if (why == none) return true;
  return false;
}

load_seen load::measure(timing const& t, std::int64_t window_ns) {
  load_seen out;
  board& head = shared_.head();
  wait(steady_ns() + patience_ns, [&](std::int64_t) { return head.ready == posts_.size(); });
  std::int64_t const begun_ns = steady_ns();
  for (auto& next : head.next_ns) next = begun_ns;
  head.go = true;
  glance const nothing = look_now();
  wait(begun_ns + longest_ramp_ns,
       [&](std::int64_t now) { return now >= begun_ns + t.ramp_ns && has_all(nothing, 1); });
  glance const from = look_now();
  std::int64_t const opened_ns = steady_ns();
  wait(opened_ns + std::max(window_ns, t.longest_ns), [&](std::int64_t now) {
    note_moment(now);
    return now >= opened_ns + window_ns && has_all(from, t.least_requests);
  });
  out.is_thin = !has_all(from, t.least_requests);
  glance const to = look_now();
  end();
  out.io_ns = steady_ns() - begun_ns;
  int const why = head.error;
  if (why != 0 && !is_missing(why))
    throw sluice_error(
        fmt::format("{}: {} failed: {}", where_.path(), failure(), std::strerror(why)));
  if (why != 0)
    out.missing = std::strerror(why);
  else
    out.groups = rates(from, to);
  return out;
}

}  // namespace

load_seen run_load(ground const& where, std::vector<thread_group> const& groups, unsigned processes,
                   timing const& t, std::int64_t window_ns, bool (*is_asked)()) {
  return load(where, groups, processes, is_asked).measure(t, window_ns);
}

}  // namespace sluice::calibrate
