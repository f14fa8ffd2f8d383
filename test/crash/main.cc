// SPDX-License-Identifier: Apache-2.0
// crash MODE FS STATES [SEED]: runs the workload on a recorded disk, then puts
// together so many disks that a power cut could have left, recovers each twice
// (now and then with a second power cut inside the recovery), and asks the
// oracle. The last line says what was found; status 1 when a mode that must
// hold did not, or a control that must fail did not. 77: something needed is
// missing. crash disk FS FLUSH_US COMMAND: a slow disk, or one to break.
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "kept.h"
#include "lib/own_mounts.h"
#include "mounts.h"
#include "programs.h"
#include "workload.h"

using namespace sluice::crash;

namespace {

template <class T, std::size_t N>
T const* named(T const (&rows)[N], char const* name) {
  for (auto const& row : rows)
    if (std::strcmp(row.name, name) == 0) return &row;
  return nullptr;
}

struct tool : mounts {
  mode const& m;
  std::string recover_program;
  run_size size = {};

  tool(mode const& wanted, fs_kind const& kind, std::string const& scratch, std::string program)
      : mounts(kind, scratch, kind.bytes), m(wanted), recover_program(std::move(program)) {}

  bool recover() { return mounts::recover(recover_program); }
  void record(std::uint64_t seed) {
    make();
    mount_it();
    if (chown(mount_point.c_str(), m.user, m.user) != 0) throw std::runtime_error("chown");
    act_as(m.user);
    prepare(mount_point, m, size);
    act_as(0);
    unmount();
    mount_it();
    disk.begin();
    act_as(m.user);
    write_all(mount_point, dir, m, size, disk, seed);
    act_as(0);
    disk.end();
    unmount();
  }

 private:
  /// Whose this thread's files are, and those of threads that it starts.
  static void act_as(unsigned user) {
    setfsgid(user);
    setfsuid(user);
  }
};

struct found {
  unsigned states = 0, order = 0, lost = 0, broken = 0, unstable = 0, again = 0, unmountable = 0;
};

/// One power cut. The disk is left unmounted.
void try_state(tool& t, std::size_t count, std::uint64_t seed, int subset, found& sum) {
  std::vector<std::uint64_t> acknowledged(t.size.streams);
  for (std::size_t i = 0; i < count; ++i)
    if (entry const& e = t.disk.at(i); e.what == entry::mark) acknowledged[e.stream] = e.offset + 1;
  ++sum.states;
  t.disk.cut(count, seed, subset);
  bool const recovers = t.m.has_log() && t.m.recovers;
  bool const is_again = recovers && seed % 4 == 0;
  if (!t.mount_cut(sum.unmountable, is_again ? memory::full : memory::none)) return;
  if (is_again) {
    t.recover();
    t.unmount();
    t.disk.cut_again(seed);
    if (!t.mount_cut(sum.unmountable)) return;
    ++sum.again;
  }
  if (recovers && !t.recover()) {
    ++sum.broken;
    std::printf("seed %llu: recovery failed\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    if (std::system(("cat " + t.dir + "/recover.out").c_str()) != 0) {
    }
    t.unmount();
    if (!t.m.must_fail) keep_loss(t.disk, {count, seed, subset}, t.dir);
    return;
  }
  picture const once = look(t.mount_point, t.size);
  bool const is_stable = !recovers || (t.recover() && look(t.mount_point, t.size) == once);
  sum.unstable += !is_stable;
  offences const bad = judge(once, t.m, acknowledged);
  sum.order += bad.order != 0;
  sum.lost += bad.lost != 0;
  if (!t.m.must_fail && bad.order + bad.lost != 0)
    std::printf("seed %llu, %zu entries: order %u, lost %u: %s\n",
                static_cast<unsigned long long>(seed), count, bad.order, bad.lost,
                bad.first.c_str());
  t.unmount();
  if (!t.m.must_fail && (bad.order + bad.lost != 0 || !is_stable))
    keep_loss(t.disk, {count, seed, subset}, t.dir);
}

int run(tool& t, unsigned states, std::uint64_t seed) {
  t.record(seed);
  std::mt19937_64 rng(seed);
  found sum;
  auto const bad = [&] { return sum.order + sum.lost + sum.broken + sum.unstable; };
  // A control is done when it was caught, three times for good measure.
  auto const is_done = [&] { return sum.states >= states || (t.m.must_fail && bad() >= 3); };
  while (!is_done()) {
    std::size_t const count = 1 + rng() % t.disk.entries();
    int const subsets = t.disk.subsets(count);
    for (int i = 0; i < subsets && !is_done(); ++i)
      try_state(t, count, seed * 1'000'000 + sum.states, subsets == 1 ? recorder::by_chance : i,
                sum);
  }
  std::printf(
      "%s %s seed %llu: %zu entries, %u states (%u cut again), order "
      "%u, lost %u, "
      "unrecoverable %u, unstable %u\n",
      t.m.name, t.fs.name, static_cast<unsigned long long>(seed), t.disk.entries(), sum.states,
      sum.again, sum.order, sum.lost, sum.broken, sum.unstable);
  if (sum.unmountable != 0) std::printf("%u states did not mount\n", sum.unmountable);
  if (sum.unmountable * 20 > sum.states) return 1;
  if (t.m.must_fail && bad() == 0) std::printf("FAILED: the control %s was not caught\n", t.m.name);
  return t.m.must_fail == (bad() != 0) ? 0 : 1;
}

constexpr std::uint64_t model_bytes = 4ull << 30;
constexpr unsigned model_write_us = 20;

/// disk FS FLUSH_US COMMAND…: runs it with DISK set to where a disk to measure on is mounted. Its
/// journal has the size that mkfs gives it. With 0 it is a disk to break: see REFUSE in recorder.h.
int lend_disk(fs_kind const& fs, std::string const& dir, unsigned flush_us, char** command) {
  recorder disk(dir + "/disk", {model_bytes}, {model_write_us, flush_us});
  disk.attach();
  std::string const at = dir + "/mnt";
  if (std::system((std::string(fs.measured) + " " + disk.device() + " >/dev/null").c_str()) != 0)
    throw std::runtime_error("mkfs");
  if (mount(disk.device().c_str(), at.c_str(), fs.name, MS_NOATIME, fs.options) != 0)
    throw std::runtime_error(std::string("mount: ") + std::strerror(errno));
  pid_t const pid = fork();
  if (pid == 0) {
    setenv("DISK", at.c_str(), 1);
    setenv("REFUSE", (dir + "/disk/refuse").c_str(), 1);
    execvp(command[0], command);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  umount(at.c_str());
  disk.detach();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int skip(char const* why) {
  std::printf("skip: %s\n", why);
  return 77;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3 && std::strcmp(argv[1], "broken") == 0) return serve_broken(argc, argv);
  if (argc == 6 && std::strcmp(argv[1], "streams") == 0)
    return run_streams(argv[2],
                       {static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)),
                        static_cast<unsigned>(std::strtoul(argv[4], nullptr, 10))},
                       std::strtoull(argv[5], nullptr, 10));
  sluice::test::own_mounts();
  mode const* const m = argc > 3 ? named(modes, argv[1]) : nullptr;
  trial const* const program = argc > 3 ? find_trial(argv[1]) : nullptr;
  fs_kind const* const fs = argc > 3 ? find_fs(argv[2]) : nullptr;
  bool const lends = argc > 4 && std::strcmp(argv[1], "disk") == 0;
  if ((m == nullptr && program == nullptr && !lends) || fs == nullptr) {
    std::fprintf(stderr,
                 "usage: power_cut MODE ext4|xfs STATES [SEED]\n"
                 "       power_cut disk ext4|xfs FLUSH_US COMMAND...\nmodes:");
    for (auto const& known : modes) std::fprintf(stderr, " %s", known.name);
    std::fprintf(stderr, "\nprograms:%s", trial_names().c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  if (geteuid() != 0) return skip("needs root");
  if (access("/dev/fuse", R_OK | W_OK) != 0) return skip("needs /dev/fuse");
  if (access("/dev/loop-control", R_OK | W_OK) != 0) return skip("needs loop devices");
  char const* const scratch = std::getenv("SCRATCH");
  char const* const build = std::getenv("BUILD");
  std::string const dir =
      std::string(scratch != nullptr ? scratch : "/tmp") + "/crash-" + argv[1] + "-" + fs->name;
  std::string const bin = std::string(build != nullptr ? build : "build") + "/bin";
  for (auto const& d : {dir, dir + "/disk", dir + "/mnt"}) mkdir(d.c_str(), 0711);
  bool const is_others = m != nullptr && m->user != 0;
  if (is_others && scratch != nullptr && chmod(scratch, 0711) != 0)
    return skip("its user cannot get to the disk");
  std::uint64_t const seed = argc > 4 && !lends ? std::strtoull(argv[4], nullptr, 0) : 1;
  std::optional<tool> t;
  try {
    if (lends)
      return lend_disk(*fs, dir, static_cast<unsigned>(std::strtoul(argv[3], nullptr, 0)),
                       argv + 4);
    auto const states = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 0));
    if (program != nullptr) return run_trial(*program, *fs, dir, bin, states, seed);
    t.emplace(*m, *fs, dir, bin + "/sluice-recover");
    return run(*t, states, seed);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "crash %s %s: %s\n", argv[1], fs->name, e.what());
    for (auto const* at : {"/logmnt", "/mnt3", "/mnt2", "/mnt1", "/mnt"})
      umount2((dir + at).c_str(), MNT_DETACH);
    return 1;
  }
}
