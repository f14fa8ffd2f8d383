// SPDX-License-Identifier: Apache-2.0
#include "programs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "kept.h"

namespace sluice::crash {

namespace {

constexpr std::uint64_t soon = 40'000'000;  // removed files are looked for each 30 ms
using rules = journal::service_rules;
constexpr rules unseen = {.log = {}, .sees_foreign = false};
constexpr rules late_unseen = {.log = {}, .awaits_looks = false, .look_at_once_ns = 0};
constexpr rules alike = {.log = {}, .tells_apart = false};
constexpr rules undated = {.log = {}, .tells_births = false};
constexpr rules unremoved = {.log = {}, .tells_removed = false};
constexpr rules unrevoked = {.log = {}, .revokes = false};
constexpr rules unflushed = {.log = {.flush_before_ack = false}};
constexpr rules trims_early = {.log = {.home_before_trim = false}, .checkpoint_every_ns = soon};
// These are not broken. It lets go of all files, and holds them again;
constexpr rules resting = {.log = {}, .checkpoint_every_ns = soon, .rests_after_ns = 1};
// frees all the time what was synced file by file, or with all;
constexpr rules each = {.log = {}, .checkpoint_every_ns = soon, .flush_bytes = 0};
constexpr rules whole = {.log = {}, .checkpoint_every_ns = soon, .flush_bytes = ~0ull};
// looks who else wrote a file always while the journal is flushed.
constexpr rules late = {.log = {}, .look_at_once_ns = 0};

constexpr trial trials[] = {
    {"sqlite-wal", "sqlite-wal"},
    {"sqlite-delete", "sqlite-delete"},
    {"rocksdb", "rocksdb"},
    {"maildir", "maildir"},
    {"git", "git"},
    {"postgres", "postgres"},
    {"files", "files"},
    {"native", "files+native"},
    {"native-held", "files+held+native"},
    {"native-killed", "files+killed+native"},
    {"native-through", "files+through+native", fault::none, false, true, 0, nullptr, false},
    {"app-killed", "files+killed"},
    {"log-killed", "files+log-killed"},
    {"foreign", "files+foreign"},
    {"half-said", "files+half"},
    {"again", "files+again"},
    {"resting", "files", fault::none, false, true, 0, &resting},
    {"resting-killed", "files+log-killed", fault::none, false, true, 0, &resting},
    {"resting-foreign", "files+foreign", fault::none, false, true, 0, &resting},
    {"resting-again", "files+again", fault::none, false, true, 0, &resting},
    {"resting-delete", "sqlite-delete", fault::none, false, true, 0, &resting},
    {"resting-mail", "maildir", fault::none, false, true, 0, &resting},
    {"each", "files", fault::none, false, true, 0, &each},
    {"each-killed", "files+log-killed", fault::none, false, true, 0, &each},
    {"each-again", "files+again", fault::none, false, true, 0, &each},
    {"each-gone", "files+gone", fault::none, false, true, 0, &each},
    {"each-mail", "maildir", fault::none, false, true, 0, &each},
    {"each-sqlite", "sqlite-wal", fault::none, false, true, 0, &each},
    {"each-eio", "files+careful", fault::home, false, true, 0, &each},
    {"each-eio-sqlite", "sqlite-wal", fault::home, false, true, 0, &each},
    {"whole", "files", fault::none, false, true, 0, &whole},
    {"whole-mail", "maildir", fault::none, false, true, 0, &whole},
    {"late", "files", fault::none, false, true, 0, &late},
    {"late-foreign", "files+foreign", fault::none, false, true, 0, &late},
    {"late-half", "files+half", fault::none, false, true, 0, &late},
    {"late-killed", "files+log-killed", fault::none, false, true, 0, &late},
    {"late-sqlite", "sqlite-wal", fault::none, false, true, 0, &late},
    {"reuse", "files+reuse"},
    {"full", "files+full", fault::none, false, true, 24ull << 20},
    {"relay", "relay+job"},
    {"through", "files+through", fault::none, false, true, 0, nullptr, false},
    {"eio-home", "files+careful", fault::home},
    {"eio-native", "files+native", fault::home},
    {"eio-native-sqlite", "sqlite-wal+native", fault::home},
    {"eio-native-careful", "files+careful+native", fault::home},
    {"eio-log", "files+careful", fault::log},
    {"eio-killed", "files+careful+log-killed", fault::home},
    {"eio-recover", "files", fault::recovery},
    {"eio-sqlite", "sqlite-wal", fault::home},
    {"homes", "files+apart", fault::none, false, true, 0, nullptr, true, 2},
    {"homes-sqlite", "sqlite-wal+apart", fault::none, false, true, 0, nullptr, true, 2},
    {"users", "users", fault::none, false, true, 0, nullptr, true, 1, true},
    {"users-damaged", "users+damaged", fault::none, false, true, 0, nullptr, true, 1, true, true},
    {"users-norecover", "users", fault::none, true, false, 0, nullptr, true, 1, true},
    {"epochs", "epochs", fault::none, false, true, 0, nullptr, true, trial::cluster},
    {"epochs-log", "epochs+log", fault::none, false, true, 0, nullptr, true, trial::cluster},
    {"epochs-ordered", "epochs+ordered", fault::none, false, true, 0, nullptr, true,
     trial::cluster},
    {"epochs-killed", "epochs+killed", fault::none, false, true, 0, nullptr, true, trial::cluster},
    {"epochs-lost", "epochs+lost", fault::none, false, true, 0, nullptr, true, trial::cluster},
    {"epochs-log-killed", "epochs+log+killed", fault::none, false, true, 0, nullptr, true,
     trial::cluster},
    {"epochs-log-lost", "epochs+log+lost", fault::none, false, true, 0, nullptr, true,
     trial::cluster},
    {"gate-open", "epochs+open", fault::none, true, true, 0, nullptr, true, trial::cluster},
    {"gate-lies", "epochs+lies", fault::none, true, true, 0, nullptr, true, trial::cluster},
    {"app-norecover", "sqlite-wal", fault::none, true, false},
    {"mail-norecover", "maildir", fault::none, true, false},
    {"eio-ignored", "files+ignores", fault::home, true},
    {"relay-apart", "relay", fault::none, true},
    {"app-noflush", "sqlite-wal", fault::none, true, true, 0, &unflushed},
    {"app-notrim", "files", fault::none, true, true, 0, &trims_early},
    {"app-norevoke", "files", fault::none, true, true, 0, &unrevoked},
    {"app-noremove", "files", fault::none, true, true, 0, &unremoved},
    {"foreign-unseen", "files+foreign", fault::none, true, true, 0, &unseen},
    {"late-unseen", "files+foreign", fault::none, true, true, 0, &late_unseen},
    {"half-unseen", "files+half", fault::none, true, true, 0, &unseen},
    {"again-undated", "files+again", fault::none, true, true, 0, &undated},
    {"reuse-unseen", "files+reuse", fault::none, true, true, 0, &alike},
};

constexpr std::uint64_t log_disk_bytes = 24ull << 20;
constexpr unsigned streams_max = 16;
constexpr unsigned gate_stream = 1, entries_of_a_manifest = 60;
constexpr unsigned states_of_a_fault = 20;    // then another run has another fault
constexpr unsigned states_of_a_cluster = 40;  // then another one has other nodes
constexpr unsigned states_of_a_rest = 60;
constexpr unsigned states_of_a_control = 60;  // not every run shows what is broken
constexpr int patience_ms = 300'000;

std::string rests_of(std::string const& dir) { return dir + "/rests"; }

/// The script: a line is asked, a line comes back.
class script {
 public:
  explicit script(char const* what) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(to[0], 0);
      dup2(from[1], 1);
      execlp("python3", "python3", "-B", "test/crash/programs.py", what, nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  ~script() {
    close(to_);
    close(from_);
    int status = 0;
    waitpid(pid_, &status, 0);
  }
  script(script const&) = delete;

  std::string ask(std::string line) {
    line += '\n';
    if (write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw std::runtime_error("the script takes no questions");
    std::string said;
    pollfd waits = {from_, POLLIN, 0};
    for (char c = 0;; said += c) {
      if (poll(&waits, 1, patience_ms) != 1) throw std::runtime_error("no answer to " + line);
      if (read(from_, &c, 1) != 1) throw std::runtime_error("the script ended at " + line);
      if (c == '\n') return said;
    }
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

struct found {
  unsigned states = 0, again = 0, unmountable = 0, refused = 0, told = 0, seen = 0;
  unsigned lost = 0, broken = 0, unrecoverable = 0;
  unsigned roomless = 0;  // recovered when there was room
  std::size_t entries = 0;
  unsigned bad() const { return lost + broken + unrecoverable; }
};

std::string numbers(std::vector<std::uint64_t> const& list) {
  std::string line;
  for (auto const n : list) line += " " + std::to_string(n);
  return line;
}

/// Others than ext4 are not made that small.
std::uint64_t home_bytes(trial const& t, fs_kind const& fs) {
  if (t.is_cluster()) return fs.bytes;
  if (t.home_bytes == 0) return fs.roomy_bytes;
  return std::strcmp(fs.name, "ext4") == 0 ? t.home_bytes : fs.bytes;
}

class session {
 public:
  session(trial const& t, fs_kind const& fs, std::string const& dir, std::string const& bin,
          std::uint64_t seed)
      : trial_(t),
        recover_(bin + "/sluice-recover"),
        rng_(seed),
        on_(fs, dir, home_bytes(t, fs), has_own_log(t, seed) ? log_disk_bytes : 0,
            t.is_cluster() ? 2 + static_cast<unsigned>(seed % 3) : t.homes) {
    if (t.has_users) on_.have_users(t.is_damaged);
    setenv("DISK", on_.mount_point.c_str(), 1);
    setenv("DISKS", disks().c_str(), 1);
    setenv("LOG", on_.log().c_str(), 1);
    setenv("MARKS", on_.disk.marks().c_str(), 1);
    setenv("BESIDE", dir.c_str(), 1);
    setenv("BIN", (t.keep != nullptr ? break_daemon(t, dir, bin) : bin).c_str(), 1);
    script_.emplace(t.script);
  }

  /// False: something is not installed; it says what. A run that was too short to meet its fault is
  /// made again, some times.
  bool record(std::uint64_t seed, found& sum, unsigned more_runs = 10) {
    on_.make();
    on_.mount_it();
    std::string const ready = script_->ask("prepare");
    on_.unmount();
    if (ready.rfind("skip", 0) == 0) return std::printf("%s\n", ready.c_str()), false;
    if (ready != "ok") throw std::runtime_error(ready);
    on_.mount_it();
    on_.disk.begin();
    if (trial_.what == fault::home) break_disk(400);
    if (trial_.what == fault::log) break_disk(80);  // it is written less often
    std::string const said = script_->ask("run " + std::to_string(seed));
    unsigned const refused = on_.disk.refused();
    bool const is_broken = trial_.what == fault::home || trial_.what == fault::log;
    sum.refused += refused;
    on_.disk.accept();
    on_.disk.end();
    on_.unmount();
    if (said.rfind("ok", 0) != 0) throw std::runtime_error(said);
    if (is_broken && refused == 0 && more_runs != 0) return record(seed + 1, sum, more_runs - 1);
    // A fault that came before anything was written.
    if (!on_.disk.was_written() && trial_.what != fault::none) return record(seed + 1, sum);
    std::vector<std::uint64_t> const marked = acknowledged_before(on_.disk.entries());
    bool const is_idle = std::all_of(marked.begin(), marked.end(), [](auto n) { return n == 0; });
    if (is_idle && trial_.what == fault::none && !trial_.is_cluster())
      throw std::runtime_error("nothing was acknowledged");
    sum.told += static_cast<unsigned>(std::strtoul(said.c_str() + 2, nullptr, 10));
    sum.entries += on_.disk.entries();
    return true;
  }

  /// As many power cuts in one place as there are ways to lose what was not flushed, if few.
  template <class Done>
  void try_some(std::uint64_t seed, found& sum, Done const& is_done) {
    std::size_t const all = on_.disk.entries();
    // Behind a fault the end is as good a place as any.
    bool const is_end = trial_.what != fault::none && rng_() % 4 == 0;
    std::size_t const count = is_end                                   ? all
                              : trial_.is_cluster() && rng_() % 2 != 0 ? behind_gate()
                                                                       : 1 + rng_() % all;
    if (!trial_.has_cache)
      return try_state(count, seed * 1'000'000 + sum.states, recorder::all, sum);
    int const subsets = on_.disk.subsets(count);
    for (int i = 0; i < subsets && !is_done(); ++i)
      try_state(count, seed * 1'000'000 + sum.states, subsets == 1 ? recorder::by_chance : i, sum);
  }

 private:
  void try_state(std::size_t count, std::uint64_t seed, int subset, found& sum) {
    ++sum.states;
    on_.disk.cut(count, seed, subset);
    auto const kept = is_again(seed) ? memory::full : memory::none;
    if (!on_.mount_cut(sum.unmountable, kept)) return;
    unsigned const before = sum.unrecoverable;
    bool const is_home = bring_home(seed, sum);
    if (sum.unrecoverable != before && !trial_.must_fail)
      keep_loss(on_.disk, {count, seed, subset}, on_.dir);
    if (!is_home) return;
    std::string const said = script_->ask("check" + numbers(acknowledged_before(count)));
    on_.unmount();
    sum.lost += said.rfind("lost", 0) == 0;
    sum.broken += said.rfind("broken", 0) == 0;
    bool const is_good = said.rfind("ok", 0) == 0;
    if (is_good) sum.seen += static_cast<unsigned>(std::strtoul(said.c_str() + 2, nullptr, 10));
    if (!is_good && !trial_.must_fail)
      std::printf("%s seed %llu, %zu of %zu entries: %s %s\n", trial_.name,
                  static_cast<unsigned long long>(seed), count, on_.disk.entries(), said.c_str(),
                  met_.c_str());
    if (!is_good && !trial_.must_fail) keep_loss(on_.disk, {count, seed, subset}, on_.dir);
    std::fflush(stdout);
  }

  /// sluice and its library, beside a daemon of ours.
  static std::string break_daemon(trial const& t, std::string const& dir, std::string const& bin) {
    namespace fs = std::filesystem;
    auto const over = fs::copy_options::overwrite_existing;
    for (auto const* d : {"/broken", "/broken/bin", "/broken/lib"}) fs::create_directory(dir + d);
    for (auto const* f : {"/bin/sluice", "/lib/libinterpose.so"})
      fs::copy_file(bin + "/.." + f, dir + "/broken" + f, over);
    std::string const daemon = dir + "/broken/bin/sluice-order";
    std::ofstream(daemon) << "#!/bin/sh\nexport RESTS=" << rests_of(dir) << "\nexec "
                          << fs::read_symlink("/proc/self/exe").string() << " broken " << t.name
                          << " \"$@\"\n";
    fs::permissions(daemon, fs::perms::owner_all);
    return dir + "/broken/bin";
  }
  /// Half of the runs have the log on a disk of its own.
  static bool has_own_log(trial const& t, std::uint64_t seed) {
    if (t.is_cluster() || t.has_users) return false;
    return t.what == fault::log || t.what == fault::recovery || seed % 2 == 0;
  }
  std::string disks() const {
    std::string all;
    for (auto const& p : on_.places) all += (all.empty() ? "" : ":") + p.at;
    return all;
  }

  std::vector<std::uint64_t> acknowledged_before(std::size_t count) const {
    std::vector<std::uint64_t> epochs(streams_max);
    for (std::size_t i = 0; i < count; ++i)
      if (entry const& e = on_.disk.at(i); e.what == entry::mark && e.stream < streams_max)
        epochs[e.stream] = e.offset + 1;
    return epochs;
  }

  /// Soon behind the opening of a gate of a cluster.
  std::size_t behind_gate() {
    std::size_t const all = on_.disk.entries();
    std::vector<std::size_t> opened;
    for (std::size_t i = 0; i < all; ++i)
      if (entry const& e = on_.disk.at(i); e.what == entry::mark && e.stream == gate_stream)
        opened.push_back(i);
    if (opened.empty()) return all;
    return std::min(all, opened[rng_() % opened.size()] + 1 + rng_() % entries_of_a_manifest);
  }

  void break_disk(std::uint32_t after_max) {
    constexpr std::uint32_t kinds[] = {refusal::writes, refusal::flushes,
                                       refusal::writes | refusal::flushes, refusal::reads};
    bool const is_recovery = trial_.what == fault::recovery;
    bool const is_log = trial_.what == fault::log || (is_recovery && rng_() % 2 == 0);
    refusal r;
    r.kinds = kinds[rng_() % (is_recovery ? 4 : 3)];
    r.after = static_cast<std::uint32_t>(rng_() % after_max);
    r.count = rng_() % 3 == 0 ? ~0u : 1 + static_cast<std::uint32_t>(rng_() % 8);
    on_.disk.refuse(is_log ? log_disk : home_disk, r);
    met_ = std::string(is_log ? "log" : "home") + " refuses " + std::to_string(r.kinds) +
           " after " + std::to_string(r.after) + ", " + std::to_string(r.count) + " times";
  }

  /// The first recovery meets a fault, or a power cut.
  bool is_again(std::uint64_t seed) const {
    return trial_.recovers && (trial_.what == fault::recovery || seed % 4 == 0);
  }

  /// Bringing a block home may need room that a full disk lacks: the journal is kept until then.
  bool makes_room() const {
    if (trial_.home_bytes == 0) return false;
    std::ifstream said(on_.dir + "/recover.out");
    std::string const text(std::istreambuf_iterator<char>(said), {});
    bool const was_full = text.find("No space left on device; the journal is kept") != text.npos;
    return was_full && std::filesystem::remove(on_.mount_point + "/taken");
  }

  /// False: it could not be done, or the file system could not be mounted. Then nothing is mounted.
  bool bring_home(std::uint64_t seed, found& sum) {
    if (!trial_.recovers) return true;
    if (is_again(seed)) {
      ++sum.again;
      bool const breaks = trial_.what == fault::recovery;
      unsigned const before = on_.disk.refused();
      if (breaks) break_disk(40);
      bool const is_good = on_.recover(recover_);
      on_.disk.accept();
      on_.unmount();
      sum.refused += on_.disk.refused() - before;
      sum.told += breaks && !is_good;
      if (breaks) met_ += is_good ? "; not told" : "; told";
      if (!breaks) on_.disk.cut_again(seed);
      if (!on_.mount_cut(sum.unmountable)) return false;
    }
    if (on_.recover(recover_) && on_.recover(recover_)) return true;
    if (makes_room() && on_.recover(recover_) && on_.recover(recover_)) return ++sum.roomless, true;
    ++sum.unrecoverable;
    std::printf("%s seed %llu: recovery failed %s\n", trial_.name,
                static_cast<unsigned long long>(seed), met_.c_str());
    std::fflush(stdout);
    if (std::system(("cat " + on_.dir + "/recover.out").c_str()) != 0) {
    }
    on_.unmount();
    return false;
  }

  trial const& trial_;
  std::string recover_;
  std::mt19937_64 rng_;
  std::string met_;  // the fault, for who looks for the cause of a loss
  mounts on_;
  std::optional<script> script_;
};

}  // namespace

trial const* find_trial(char const* name) {
  for (auto const& t : trials)
    if (std::strcmp(t.name, name) == 0) return &t;
  return nullptr;
}

std::string trial_names() {
  std::string all;
  for (auto const& t : trials) all += std::string(" ") + t.name;
  return all;
}

int run_trial(trial const& t, fs_kind const& fs, std::string const& dir, std::string const& bin,
              unsigned states, std::uint64_t seed) {
  auto const began = std::chrono::steady_clock::now();
  unsigned const each = t.what == fault::home || t.what == fault::log ? states_of_a_fault
                        : t.is_cluster()                              ? states_of_a_cluster
                        : t.is_resting()                              ? states_of_a_rest
                        : t.must_fail                                 ? states_of_a_control
                                                                      : states;
  found sum;
  std::ofstream(rests_of(dir), std::ios::trunc).flush();
  // A control is done when it was caught, three times for good measure.
  auto const is_done = [&] { return sum.states >= states || (t.must_fail && sum.bad() >= 3); };
  for (unsigned round = 0; !is_done(); ++round) {
    std::uint64_t const own_seed = seed + std::uint64_t{round} * 1'000'003;
    session s(t, fs, dir, bin, own_seed);
    if (!s.record(own_seed, sum)) return 77;
    unsigned const before = sum.states;
    while (sum.states - before < each && !is_done()) s.try_some(own_seed, sum, is_done);
  }
  double const minutes =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() / 60;
  std::printf(
      "%s %s seed %llu: %zu entries, %u states (%u cut again), lost %u, broken %u, "
      "unrecoverable %u; %.0f states a minute\n",
      t.name, fs.name, static_cast<unsigned long long>(seed), sum.entries, sum.states, sum.again,
      sum.lost, sum.broken, sum.unrecoverable, sum.states / minutes);
  if (t.what != fault::none)
    std::printf("the disk refused %u times, and %u errors were told\n", sum.refused, sum.told);
  std::uintmax_t const rests = std::filesystem::file_size(rests_of(dir));
  if (t.is_resting()) std::printf("the daemon let go of all files %ju times\n", rests);
  if (t.is_cluster()) std::printf("%u manifests were there, %u were refused\n", sum.seen, sum.told);
  if (sum.roomless != 0)
    std::printf("%u states were recovered when there was room\n", sum.roomless);
  if (sum.unmountable != 0) std::printf("%u states did not mount\n", sum.unmountable);
  // Of a disk; a state of a cluster has several.
  if (sum.unmountable * (t.is_cluster() ? 5 : 20) > sum.states) return 1;
  if (t.what != fault::none && sum.refused == 0)
    return std::printf("FAILED: no fault was met\n"), 1;
  if (t.is_resting() && rests == 0) return std::printf("FAILED: it never let go of all\n"), 1;
  if (t.is_cluster() && !t.must_fail && sum.seen == 0)
    return std::printf("FAILED: no state had a manifest\n"), 1;
  if (t.must_fail && sum.bad() == 0) std::printf("FAILED: the control %s was not caught\n", t.name);
  return t.must_fail == (sum.bad() != 0) ? 0 : 1;
}

}  // namespace sluice::crash
