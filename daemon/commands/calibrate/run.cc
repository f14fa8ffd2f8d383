// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/run.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <map>

#include "base/clock.h"
#include "base/error.h"
#include "base/on_stderr.h"
#include "base/output_file.h"
#include "base/quantity.h"
#include "base/terminal_line.h"
#include "commands/calibrate/climb.h"
#include "commands/calibrate/fit.h"
#include "commands/calibrate/options.h"
#include "commands/calibrate/sample.h"
#include "commands/calibrate/show.h"
#include "commands/calibrate/state.h"

namespace sluice::calibrate {

namespace {

constexpr std::uint64_t most_buffers = 256 << 20, useful_bytes = 16 << 20;
constexpr std::int64_t nap_ns = 50'000'000;
constexpr unsigned least_grid_threads = 8;

std::atomic<int> signal_seen;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void note_signal(int number) { signal_seen = number; }

std::string utc_text(std::time_t t) {
  std::tm parts = {};
  gmtime_r(&t, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

/// The words by which a state file knows its calibration.
std::string about(policy::provenance const& p, calibrate_options const& o) {
  std::string only;
  for (auto const& word : o.only) only += ", only " + word;
  return fmt::format("sluice calibration 1: {} {} {} {} {}, {} processes{}{}{}", p.path, p.device,
                     p.fs, p.source, p.identity, o.processes, o.is_short ? ", short" : "",
                     o.size != 0 ? fmt::format(", size {}", o.size) : "", only);
}

/// With how many a size begins: large requests wait long for each other, and would all have to end
/// in a window.
unsigned useful_threads(timing const& t, work const& w) {
  std::uint64_t const fit = w.bytes == 0 ? t.most_threads : useful_bytes / w.bytes;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(fit, t.first_threads, most_threads(t, w)));
}

std::vector<step> chosen_plan(ground const& where, calibrate_options const& o) {
  auto out = only(plan_of(where.can()), o.only);
  if (out.empty())
    throw usage_error(
        "--only: no step has such a name; they begin with read/, write/, op/, grid/, pair/, or a "
        "kind like append/");
  return out;
}

class calibration {
 public:
  explicit calibration(calibrate_options const& o)
      : o_(o),
        from_(provenance_now(o.path)),
        where_(o.path, o.size, o.is_short),
        plan_(chosen_plan(where_, o)),
        timing_(timing_of(where_.can())),
        state_(o.output == "-" ? "" : o.output + ".state", about(from_, o), o.restart),
        line_(o.quiet) {
    from_.io = where_.can().direct ? "direct" : "buffered";
    where_.on_directory([this](std::string const& path, std::uint64_t inode) {
      state_.add(left_directory{path, inode});
    });
    count_work();
  }

  policy::cost_file run() {
    begun_ns_ = steady_ns();
    fill();
    unsigned rounds = 0;
    for (step const& s : plan_) rounds = std::max(rounds, s.rounds);
    for (unsigned round = 0; round < rounds; ++round)
      for (step const& s : plan_)
        if (s.rounds > 1) measure(s, round);
    for (step const& s : plan_)
      if (s.rounds == 1) measure(s, 0);
    policy::cost_file out = fit(plan_, state_.samples());
    if (out.read[1].empty() && out.write[1].empty())
      throw sluice_error(fmt::format("{}: no size could be read or written", o_.path));
    out.from = from_;
    out.by_device = where_.counts_device_work();
    return out;
  }

  void done() { state_.remove(); }
  std::size_t resumed() const { return resumed_; }
  double expected_s() const { return (all_s_ - done_s_) / o_.budget; }

 private:
  void count_work();
  void fill();
  void measure(step const& s, unsigned round);
  load_seen load(std::vector<thread_group> const& groups, timing const& t, std::int64_t window_ns);
  sample climb_up(step const& s);
  sample once(step const& s, unsigned threads, bool is_probe);
  sample together(step const& s);
  unsigned threads_of(work const& w) const;
  void rest(std::int64_t io_ns);
  void say(std::string const& what);

  calibrate_options const& o_;
  policy::provenance from_;
  ground where_;
  std::vector<step> plan_;
  timing timing_;
  state_file state_;
  terminal_line line_;
  std::map<std::string, unsigned> last_best_;  // by op and alignment: of the size before
  std::size_t resumed_ = 0;
  std::int64_t begun_ns_ = 0;
  double all_s_ = 0, done_s_ = 0;
};

void calibration::count_work() {
  for (step const& s : plan_)
    for (unsigned round = 0; round < s.rounds; ++round) {
      double const one_s = calibrate::expected_s(s, round, timing_);
      all_s_ += one_s;
      if (find_sample(state_.samples(), s.id, round) == nullptr) continue;
      done_s_ += one_s;
      ++resumed_;
    }
}

void calibration::say(std::string const& what) {
  if (!line_.is_shown()) return;
  double const share = all_s_ > 0 ? std::min(1.0, done_s_ / all_s_) : 1;
  std::string const tail =
      fmt::format(" {:>3.0f}% {} {}", share * 100,
                  terminal_line::clock(static_cast<double>(steady_ns() - begun_ns_) / 1e9), what);
  unsigned const columns = line_.columns();
  std::size_t const room = columns > tail.size() ? columns - tail.size() : 0;
  line_.say((terminal_line::bar(share, room) + tail).substr(0, columns - 1));
}

/// Quiet for as long as the budget asks after that much I/O.
void calibration::rest(std::int64_t io_ns) {
  auto const quiet_ns = static_cast<std::int64_t>(static_cast<double>(io_ns) * (1 / o_.budget - 1));
  std::int64_t const until_ns = steady_ns() + quiet_ns;
  while (steady_ns() < until_ns) {
    if (is_asked_to_end()) throw interrupted();
    sleep_until(std::min(until_ns, steady_ns() + nap_ns));
  }
}

void calibration::fill() {
  std::int64_t piece_ns = steady_ns();
  where_.fill([&](std::uint64_t bytes) {
    if (is_asked_to_end()) throw interrupted();
    rest(steady_ns() - piece_ns);
    where_.check_room();
    say(fmt::format("writing a file, {} of {}", size_words(bytes),
                    size_words(where_.can().file_bytes)));
    piece_ns = steady_ns();
    return true;
  });
}

void calibration::measure(step const& s, unsigned round) {
  if (find_sample(state_.samples(), s.id, round) != nullptr) return;
  say(s.say);
  where_.check_room();
  sample out;
  if (s.kind == step_kind::grid || s.kind == step_kind::pair) {
    out = together(s);
  } else if (round == 0) {
    out = climb_up(s);
  } else {
    sample const* first = find_sample(state_.samples(), s.id, 0);
    out = first->missing.empty() ? once(s, first->threads, false) : *first;
  }
  out.step = s.id;
  out.round = round;
  state_.add(out);
  done_s_ += calibrate::expected_s(s, round, timing_);
}

load_seen calibration::load(std::vector<thread_group> const& groups, timing const& t,
                            std::int64_t window_ns) {
  load_seen const out = run_load(where_, groups, o_.processes, t, window_ns, is_asked_to_end);
  rest(out.io_ns);
  return out;
}

sample calibration::once(step const& s, unsigned threads, bool is_probe) {
  timing const t = timing_of(s, timing_);
  load_seen const got = load({{s.works[0], threads}}, t, is_probe ? t.probe_ns : t.window_ns);
  sample out;
  out.threads = threads;
  out.groups = got.groups;
  out.is_thin = got.is_thin;
  out.missing = got.missing;
  return out;
}

/// More threads until that does not help; a curve begins where the size before it ended.
sample calibration::climb_up(step const& s) {
  std::string const family = s.id.substr(0, s.id.rfind('/'));
  unsigned const most = most_threads(timing_, s.works[0]);
  unsigned const useful = useful_threads(timing_, s.works[0]);
  auto const before = last_best_.find(family);
  bool const is_first = before == last_best_.end();
  if (timing_.climbs_once && s.kind != step_kind::point)
    return once(s, std::min(most, 2 * timing_.first_threads), false);
  if (timing_.climbs_once && !is_first) return once(s, std::min(before->second, useful), false);
  unsigned const first =
      s.kind == step_kind::op ? o_.processes
      : is_first              ? timing_.first_threads
                 : std::max(timing_.first_threads, std::min(before->second / 2, useful));
  climb up(first, most);
  while (up.next() != 0) {
    sample const probe = once(s, up.next(), true);
    if (!probe.missing.empty()) return probe;
    up.saw(probe.groups[0].per_s);
  }
  unsigned const best = std::max(1U, up.best());
  if (s.kind == step_kind::point) last_best_[family] = best;
  return once(s, best, false);
}

unsigned calibration::threads_of(work const& w) const {
  for (step const& s : plan_)
    if (s.kind == step_kind::point && s.works[0].op == w.op && s.works[0].bytes == w.bytes &&
        s.works[0].is_aligned)
      return std::max(timing_.first_threads, seen_of(s, state_.samples()).how.threads);
  return timing_.first_threads;
}

/// Two kinds of work at once: readers and writers, or two tenants that are held to half of the
/// floor each.
sample calibration::together(step const& s) {
  policy::cost_file const so_far = fit(plan_, state_.samples());
  std::vector<thread_group> groups;
  std::vector<std::size_t> which;
  unsigned all = least_grid_threads;
  for (work const& w : s.works) all = std::max(all, threads_of(w));
  for (std::size_t i = 0; i < s.works.size(); ++i) {
    thread_group c = {s.works[i], threads_of(s.works[i])};
    double const cost = cost_of(so_far, s.works[i]);
    if (s.kind == step_kind::grid) {
      double const part = i == 0 ? s.readers : 1 - s.readers;
      if (part == 0) continue;
      c.threads = std::max(1u, static_cast<unsigned>(std::lround(part * all)));
    } else if (cost > 0) {
      c.most_per_s = so_far.provisionable_vops / 2 / cost;
    }
    groups.push_back(c);
    which.push_back(i);
  }
  load_seen const got = load(groups, timing_, timing_.window_ns);
  sample out;
  out.missing = got.missing;
  out.is_thin = got.is_thin;
  out.groups.resize(s.works.size());
  for (std::size_t i = 0; i < got.groups.size(); ++i) out.groups[which[i]] = got.groups[i];
  for (thread_group const& c : groups) out.threads += c.threads;
  return out;
}

}  // namespace

void take_signals() {
  struct sigaction how = {};
  how.sa_handler = note_signal;
  for (int const s : {SIGINT, SIGTERM, SIGHUP}) sigaction(s, &how, nullptr);
}

bool is_asked_to_end() { return signal_seen != 0; }

void end_by_signal() {
  int const number = signal_seen;
  std::signal(number, SIG_DFL);
  std::raise(number);
  std::abort();
}

policy::provenance provenance_now(std::string const& path) {
  policy::place const where = policy::find_place(path);
  auto const mounts = read_mounts();
  policy::mount const* m = policy::mount_of(mounts, where);
  if (m == nullptr) throw usage_error(path + ": no mount of this process shows it");
  policy::provenance p = policy::provenance_of(*m, where);
  utsname machine = {};
  uname(&machine);
  p.kernel = machine.release;
  p.host = machine.nodename;
  p.time = utc_text(unix_s());
  double load = 0;
  if (getloadavg(&load, 1) == 1) p.load = load;
  return p;
}

unsigned most_threads(timing const& t, work const& w) {
  std::uint64_t const fit = w.bytes == 0 ? 16 : most_buffers / w.bytes;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(fit, 2, t.most_threads));
}

int calibrate(calibrate_options const& o) {
  check_output_file(o.output);
  take_signals();
  try {
    calibration c(o);
    if (!o.quiet)
      fmt::print(
          stderr, "{}{}: about {}\n",
          c.resumed() > 0 ? fmt::format("going on after {} measurements, ", c.resumed()) : "",
          o.path, terminal_line::clock(c.expected_s()));
    policy::cost_file const costs = c.run();
    output_file to(o.output);
    to.stream() << policy::cost_file_text(costs);
    to.commit();
    c.done();
    if (!o.quiet && o.output != "-") fmt::print("{}", summary_of(costs, o.output));
    return 0;
  } catch (interrupted const&) {
    if (!o.quiet && o.output != "-")
      on_stderr("sluice calibrate: interrupted; the same command goes on with it\n");
  }
  end_by_signal();
}

}  // namespace sluice::calibrate
