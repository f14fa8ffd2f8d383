// SPDX-License-Identifier: Apache-2.0
// The guest of overhead.py. It measures inside itself: thread CPU time of a loop of one call, so
// that neither its own start nor a preemption is in the figure. One binary serves every column;
// what differs is only the environment it was started in. Must stay true: it goes through libc's
// public names, nothing else.
//   calls serve DIR         answers each input line `OP THREADS CALLS` with thread CPU ns per call
//   calls hold              prints its LD_PRELOAD, waits for the end of input (keeps a job alive)
//   calls spawn N P...      start-up of /bin/true N times for each LD_PRELOAD value P (`-`: none)
//   calls step DIR OP PART  instructions that one OP executes inside mapped objects whose path has
//   PART
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::uint64_t;

constexpr std::size_t block = 4096;
constexpr unsigned step_calls = 101, calls_between = 64;
constexpr char const* attribute = "user.sluice";

[[noreturn]] void die(char const* what) {
  std::perror(what);
  std::exit(1);
}

uint64_t clock_ns(clockid_t which) {
  timespec t;
  clock_gettime(which, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

/// One thread's own file, so that threads meet in no inode.
struct place {
  std::string path;
  int fd = -1;

  place(std::string const& dir, unsigned thread) : path(dir + "/f" + std::to_string(thread)) {
    fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (fd < 0) die(path.c_str());
    char const zero[block] = {};
    if (pwrite(fd, zero, block, 0) != static_cast<ssize_t>(block)) die("pwrite");
    setxattr(path.c_str(), attribute, "1", 1, 0);
  }
  ~place() { close(fd); }
  place(place const&) = delete;
  place& operator=(place const&) = delete;
};

using loop = bool (*)(place const&, unsigned);

bool open_close(place const& p, unsigned calls) {
  for (; calls != 0; --calls) {
    int const fd = open(p.path.c_str(), O_RDONLY);
    if (fd < 0 || close(fd) != 0) return false;
  }
  return true;
}

bool stats(place const& p, unsigned calls) {
  struct stat found;
  for (; calls != 0; --calls)
    if (stat(p.path.c_str(), &found) != 0) return false;
  return true;
}

bool reads(place const& p, unsigned calls) {
  char data[block];
  for (; calls != 0; --calls)
    if (pread(p.fd, data, block, 0) != static_cast<ssize_t>(block)) return false;
  return true;
}

bool writes(place const& p, unsigned calls) {
  char const data[block] = {1};
  for (; calls != 0; --calls)
    if (pwrite(p.fd, data, block, 0) != static_cast<ssize_t>(block)) return false;
  return true;
}

// A file system without user attributes answers with an error at about the same price: not a
// failure.
bool attributes(place const& p, unsigned calls) {
  char value[8];
  for (; calls != 0; --calls)
    if (getxattr(p.path.c_str(), attribute, value, sizeof value) > 8) return false;
  return true;
}

bool plain_reads(place const& p, unsigned calls) {
  char byte;
  for (; calls != 0; --calls)
    if (read(p.fd, &byte, 1) < 0) return false;
  return true;
}

loop find(std::string const& name) {
  if (name == "open+close") return open_close;
  if (name == "stat") return stats;
  if (name == "pread") return reads;
  if (name == "pwrite") return writes;
  if (name == "getxattr") return attributes;
  if (name == "read") return plain_reads;
  std::fprintf(stderr, "calls: unknown operation %s\n", name.c_str());
  std::exit(2);
}

// Thread i sits on CPU i mod n of those we may use: a migration in the loop would be measured as
// cost.
void pin(unsigned thread) {
  static cpu_set_t const allowed = [] {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  int const count = CPU_COUNT(&allowed);
  int skip = static_cast<int>(thread) % (count > 0 ? count : 1);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    return;
  }
}

double measure(std::string const& dir, loop op, unsigned threads, unsigned calls) {
  std::atomic<uint64_t> spent{0};
  std::atomic<bool> good{true};
  pthread_barrier_t gate;
  pthread_barrier_init(&gate, nullptr, threads);
  auto body = [&](unsigned number) {
    pin(number);
    place const mine(dir, number);
    good = op(mine, calls / 10 + 1) && good;
    pthread_barrier_wait(&gate);
    uint64_t const begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    bool const ok = op(mine, calls);
    spent += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    good = ok && good;
  };
  std::vector<std::thread> crew;
  for (unsigned i = 1; i < threads; ++i) crew.emplace_back(body, i);
  body(0);
  for (auto& t : crew) t.join();
  if (!good) die("a measured call failed");
  return static_cast<double>(spent) / threads / calls;
}

int serve(std::string const& dir) {
  char name[32];
  unsigned threads, calls;
  while (std::scanf("%31s %u %u", name, &threads, &calls) == 3) {
    std::printf("%.3f\n", measure(dir, find(name), threads, calls));
    std::fflush(stdout);
  }
  return 0;
}

int hold() {
  char const* preload = std::getenv("LD_PRELOAD");
  std::printf("%s\n", preload != nullptr ? preload : "-");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}

void start_true(std::string const& preload, char const* column) {
  std::string const variable = "LD_PRELOAD=" + preload;
  std::string path = "PATH=/usr/bin:/bin";
  std::string program = "/bin/true", set = variable;
  char* const argv[] = {program.data(), nullptr};
  char* const with[] = {path.data(), set.data(), nullptr};
  char* const without[] = {path.data(), nullptr};
  uint64_t const begin = clock_ns(CLOCK_MONOTONIC);
  pid_t child;
  if (posix_spawn(&child, argv[0], nullptr, nullptr, argv, preload == "-" ? without : with) != 0)
    die("posix_spawn");
  int status;
  rusage used;
  if (wait4(child, &status, 0, &used) != child || status != 0) die("/bin/true");
  uint64_t const wall = clock_ns(CLOCK_MONOTONIC) - begin;
  long const cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000 +
                      used.ru_utime.tv_usec + used.ru_stime.tv_usec;
  std::printf("%s %.1f %ld\n", column, static_cast<double>(wall) / 1000, cpu_us);
}

int spawn(unsigned times, std::vector<std::string> const& columns) {
  std::mt19937 random(static_cast<unsigned>(clock_ns(CLOCK_MONOTONIC)));
  std::vector<unsigned> order(columns.size());
  for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
  for (unsigned round = 0; round < times; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (unsigned column : order) start_true(columns[column], std::to_string(column).c_str());
  }
  return 0;
}

struct span {
  uint64_t begin, end;
};

std::vector<span> mapped(pid_t who, std::string const& part) {
  std::vector<span> found;
  std::string const maps = "/proc/" + std::to_string(who) + "/maps";
  std::FILE* f = std::fopen(maps.c_str(), "re");
  if (f == nullptr) die(maps.c_str());
  char line[4096], rights[8];
  unsigned long begin, end;
  while (std::fgets(line, sizeof line, f) != nullptr)
    if (std::sscanf(line, "%lx-%lx %7s", &begin, &end, rights) == 3 && rights[2] == 'x' &&
        std::strstr(line, part.c_str()) != nullptr)
      found.push_back({begin, end});
  std::fclose(f);
  return found;
}

// The stepped side: a program of its own, since a forked child is not what programs usually are. It
// stops itself around each call that is to be stepped. The calls before it run as ever, so that the
// library does not take the file system for a slow one, and what it remembers is not too old.
int stepped(std::string const& dir, std::string const& name) {
  loop const op = find(name);
  place const mine(dir, 0);
  for (unsigned i = 0; i < step_calls; ++i) {
    op(mine, calls_between);
    raise(SIGSTOP);
    op(mine, 1);
    raise(SIGSTOP);
  }
  return 0;
}

int next_stop(pid_t child) {
  int status;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) die("the stepped child ended");
  return WSTOPSIG(status);
}

#ifdef __x86_64__
void run_until_stop(pid_t child) {
  do {
    if (ptrace(PTRACE_CONT, child, nullptr, nullptr) != 0) die("ptrace");
  } while (next_stop(child) != SIGSTOP);
}

// Instructions within the spans until it stops itself.
unsigned step_until_stop(pid_t child, std::vector<span> const& spans) {
  unsigned inside = 0;
  for (;;) {
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) die("ptrace");
    if (next_stop(child) == SIGSTOP) return inside;
    user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, nullptr, &registers);
    for (span const& s : spans) inside += registers.rip >= s.begin && registers.rip < s.end;
  }
}
#endif

// The median of the calls: one of 64 is timed as well, and takes more.
int step(char** argv, std::string const& part) {
#ifdef __x86_64__
  pin(0);  // the child, too: to wake another processor at each instruction takes much longer
  pid_t const child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    char verb[] = "stepped";
    char* const command[] = {argv[0], verb, argv[2], argv[3], nullptr};
    execv("/proc/self/exe", command);
    _exit(1);
  }
  next_stop(child);  // it has begun
  std::vector<unsigned> inside;
  for (std::vector<span> spans; inside.size() < step_calls;) {
    run_until_stop(child);
    if (spans.empty()) spans = mapped(child, part);
    inside.push_back(step_until_stop(child, spans));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::nth_element(inside.begin(), inside.begin() + step_calls / 2, inside.end());
  std::printf("%u\n", inside[step_calls / 2]);
  return 0;
#else
  (void)argv, (void)part, (void)mapped;
  return 1;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  std::string const mode = argc > 1 ? argv[1] : "";
  if (mode == "serve" && argc == 3) return serve(argv[2]);
  if (mode == "hold" && argc == 2) return hold();
  if (mode == "spawn" && argc > 3)
    return spawn(static_cast<unsigned>(std::atoi(argv[2])), {argv + 3, argv + argc});
  if (mode == "step" && argc == 5) return step(argv, argv[4]);
  if (mode == "stepped" && argc == 4) return stepped(argv[2], argv[3]);
  std::fprintf(stderr, "usage: calls serve DIR | hold | spawn N P... | step DIR OP PART\n");
  return 2;
}
