// SPDX-License-Identifier: Apache-2.0
// The guest of accuracy.py: a closed loop of one operation that stamps every completion into a
// shared file, and the sums over such a file. All workers of all processes of a run share one file,
// so a sliding window sees the aggregate, as the file system would. Must stay true: a record is
// written by one worker after it took its place with one atomic add; a worker killed in between
// leaves a record of zeros, which is skipped.
//   rate new FILE RECORDS                           an empty file of stamps
//   rate run FILE DATA OP SIZE THREADS SECONDS [N]  closed loop until SECONDS after the first
//   worker began,
//                                                   or N operations; status 1 once the time is over
//   rate launch P FILE DATA OP SIZE THREADS SECONDS the same in P processes, each exec'd
//   rate big FILE DATA SIZE THREADS SECONDS         THREADS loop over SIZE; worker 0 reads 1 byte
//   every 10 ms rate sum FILE FROM_S TO_S                       JSON about the time FROM…TO after
//   the first worker began rate steps FILE T_NS STEP_NS N                  operations in each of N
//   steps from T (CLOCK_MONOTONIC) rate watch                                      prints `T_NS
//   LATE_NS` of every stall of a CPU above 3 ms
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::uint32_t;
using std::uint64_t;

constexpr uint64_t ns_per_s = 1'000'000'000;
constexpr uint64_t short_pause_ns = 10'000'000, stall_ns = 3'000'000;

struct record {
  uint64_t end_ns;       // CLOCK_MONOTONIC
  uint64_t duration_ns;  // of the call, its wait included
  uint32_t amount;       // bytes moved, or 1
  uint32_t worker;
};

struct log_head {
  std::atomic<uint64_t> begin_ns;  // the first worker's first look at the clock
  std::atomic<uint64_t> used;
  std::atomic<uint32_t> workers;
  uint32_t unused;
  uint64_t capacity;
};

[[noreturn]] void die(char const* what) {
  std::perror(what);
  std::exit(3);
}

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * ns_per_s + static_cast<uint64_t>(t.tv_nsec);
}

void sleep_until(uint64_t when_ns) {
  timespec const t = {static_cast<time_t>(when_ns / ns_per_s),
                      static_cast<long>(when_ns % ns_per_s)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) != 0) {
  }
}

struct stamps {
  log_head* head;
  record* rows;

  explicit stamps(char const* path) {
    int const fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0) die(path);
    auto const size = static_cast<std::size_t>(about.st_size);
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) die("mmap");
    close(fd);
    head = static_cast<log_head*>(at);
    rows = reinterpret_cast<record*>(head + 1);
  }

  void add(record const& r) const {
    uint64_t const place = head->used.fetch_add(1, std::memory_order_relaxed);
    if (place < head->capacity) rows[place] = r;
  }

  uint64_t begin() const {
    uint64_t none = 0, now = now_ns();
    return head->begin_ns.compare_exchange_strong(none, now) ? now : none;
  }
};

int create(char const* path, uint64_t capacity) {
  int const fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  uint64_t const size = sizeof(log_head) + capacity * sizeof(record);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) die(path);
  log_head head{};
  head.capacity = capacity;
  if (pwrite(fd, &head, sizeof head, 0) != static_cast<ssize_t>(sizeof head)) die(path);
  return 0;
}

struct job {
  std::string data, op;
  std::size_t size;
  unsigned threads;
  uint64_t end_ns, count;
};

/// One operation; what it moved, or -1.
ssize_t perform(job const& j, int fd, char* buffer) {
  if (j.op == "read") return pread(fd, buffer, j.size, 0);
  if (j.op == "write") return pwrite(fd, buffer, j.size, 0);
  if (j.op == "stat") {
    struct stat about;
    return stat(j.data.c_str(), &about) == 0 ? 1 : -1;
  }
  if (j.op == "open") {
    int const opened = open(j.data.c_str(), O_RDONLY);
    return opened >= 0 && close(opened) == 0 ? 1 : -1;
  }
  std::fprintf(stderr, "rate: unknown operation %s\n", j.op.c_str());
  _exit(2);
}

void worker(job const& j, stamps const& log, uint64_t pause_ns) {
  uint32_t const number = log.head->workers.fetch_add(1);
  int const fd = open(j.data.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) die(j.data.c_str());
  std::vector<char> buffer(j.size + 1);
  uint64_t begin = now_ns();
  for (uint64_t done = 0; done < j.count && begin < j.end_ns; ++done) {
    ssize_t const moved = perform(j, fd, buffer.data());
    if (moved <= 0) die(j.op.c_str());
    uint64_t const end = now_ns();
    log.add({end, end - begin, static_cast<uint32_t>(moved), number});
    begin = end;
    if (pause_ns != 0) {
      sleep_until(end + pause_ns);
      begin = now_ns();
    }
  }
  close(fd);
}

// Whoever still waits for a token at the end is left behind: only the main thread ends the process.
int run(job j, stamps const& log, double seconds) {
  j.end_ns = log.begin() + static_cast<uint64_t>(seconds * static_cast<double>(ns_per_s));
  if (now_ns() >= j.end_ns) return 1;
  if (j.count != UINT64_MAX && j.threads == 1) {
    worker(j, log, 0);
    return now_ns() >= j.end_ns;
  }
  for (unsigned i = 0; i < j.threads; ++i) std::thread([&] { worker(j, log, 0); }).detach();
  sleep_until(j.end_ns);
  _exit(0);
}

int big(job j, stamps const& log, double seconds) {
  j.end_ns = log.begin() + static_cast<uint64_t>(seconds * static_cast<double>(ns_per_s));
  job small = j;
  small.size = 1;
  std::thread([&] { worker(small, log, short_pause_ns); }).detach();
  while (log.head->workers.load() == 0) sched_yield();
  for (unsigned i = 0; i < j.threads; ++i) std::thread([&] { worker(j, log, 0); }).detach();
  sleep_until(j.end_ns);
  _exit(0);
}

int launch(unsigned processes, char** argv) {
  for (unsigned i = 0; i < processes; ++i) {
    pid_t const child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
      execv("/proc/self/exe", argv);
      die("execv");
    }
  }
  int worst = 0, status;
  while (wait(&status) > 0)
    if (status != 0) worst = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
  return worst;
}

std::vector<record> load(stamps const& log) {
  uint64_t const n = std::min(log.head->used.load(), log.head->capacity);
  std::vector<record> rows(log.rows, log.rows + n);
  std::erase_if(rows, [](record const& r) { return r.end_ns == 0; });
  std::sort(rows.begin(), rows.end(),
            [](record const& a, record const& b) { return a.end_ns < b.end_ns; });
  return rows;
}

struct window_sums {
  uint64_t ops = 0, amount = 0;              // the most in any window
  uint64_t ops_at_ns = 0, amount_at_ns = 0;  // where that was
  uint64_t ops_p99 = 0;                      // of windows that begin with an operation
};

// Windows are anchored at every operation: no maximum can hide between two fixed borders.
window_sums widest(std::vector<record> const& rows, uint64_t width_ns) {
  window_sums most;
  std::vector<uint64_t> all;
  all.reserve(rows.size());
  uint64_t amount = 0;
  for (std::size_t first = 0, next = 0; first < rows.size(); ++first) {
    for (; next < rows.size() && rows[next].end_ns < rows[first].end_ns + width_ns; ++next)
      amount += rows[next].amount;
    if (next - first > most.ops) most.ops = next - first, most.ops_at_ns = rows[first].end_ns;
    if (amount > most.amount) most.amount = amount, most.amount_at_ns = rows[first].end_ns;
    all.push_back(next - first);
    amount -= rows[first].amount;
  }
  if (!all.empty()) {
    auto const place = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) * 99 / 100);
    std::nth_element(all.begin(), place, all.end());
    most.ops_p99 = *place;
  }
  return most;
}

struct share {
  uint64_t ops = 0, amount = 0;
  std::vector<uint64_t> waits;
};

void print_workers(std::vector<record> const& rows) {
  std::map<uint32_t, share> shares;
  for (record const& r : rows) {
    share& s = shares[r.worker];
    ++s.ops, s.amount += r.amount;
    s.waits.push_back(r.duration_ns);
  }
  std::printf("\"workers\":%zu,\"each\":[", shares.size());
  char const* comma = "";
  if (shares.size() <= 64)
    for (auto& [number, s] : shares) {
      std::sort(s.waits.begin(), s.waits.end());
      double sum = 0;
      for (uint64_t w : s.waits) sum += static_cast<double>(w);
      std::printf(
          "%s{\"worker\":%u,\"ops\":%lu,\"amount\":%lu,\"mean_ns\":%.0f,\"p99_ns\":%lu,"
          "\"max_ns\":%lu}",
          comma, number, s.ops, s.amount, sum / static_cast<double>(s.ops),
          s.waits[(s.waits.size() - 1) * 99 / 100], s.waits.back());
      comma = ",";
    }
  std::printf("]}\n");
}

int sum(stamps const& log, double from_s, double to_s) {
  std::vector<record> rows = load(log);
  uint64_t const begin = log.head->begin_ns;
  auto const at = [&](double s) {
    return begin + static_cast<uint64_t>(s * static_cast<double>(ns_per_s));
  };
  std::erase_if(rows,
                [&](record const& r) { return r.end_ns < at(from_s) || r.end_ns >= at(to_s); });
  uint64_t amount = 0;
  for (record const& r : rows) amount += r.amount;
  window_sums const w10 = widest(rows, 10'000'000);
  std::printf(
      "{\"ops\":%zu,\"amount\":%lu,\"lost\":%d,\"begin_ns\":%lu,\"w10_ops\":%lu,"
      "\"w10_ops_at_ns\":%lu,\"w10_amount\":%lu,\"w10_amount_at_ns\":%lu,"
      "\"w10_ops_p99\":%lu,\"first_ns\":%lu,\"last_ns\":%lu,\"first_amount\":%u,",
      rows.size(), amount, log.head->used > log.head->capacity, begin, w10.ops, w10.ops_at_ns,
      w10.amount, w10.amount_at_ns, w10.ops_p99, rows.empty() ? 0 : rows.front().end_ns,
      rows.empty() ? 0 : rows.back().end_ns, rows.empty() ? 0 : rows.front().amount);
  print_workers(rows);
  return 0;
}

int steps(stamps const& log, uint64_t from_ns, uint64_t step_ns, unsigned count) {
  std::vector<uint64_t> ops(count);
  uint64_t first = 0;
  for (record const& r : load(log)) {
    if (r.end_ns < from_ns) continue;
    if (first == 0) first = r.end_ns - from_ns;
    if ((r.end_ns - from_ns) / step_ns < count) ++ops[(r.end_ns - from_ns) / step_ns];
  }
  std::printf("{\"first_ns\":%lu,\"ops\":[", first);
  for (unsigned i = 0; i < count; ++i) std::printf("%s%lu", i == 0 ? "" : ",", ops[i]);
  std::printf("]}\n");
  return 0;
}

int watch() {
  auto body = [](int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    for (uint64_t due = now_ns();;) {
      due += 1'000'000;
      sleep_until(due);
      uint64_t const now = now_ns();
      if (now - due > stall_ns) std::printf("%lu %lu\n", due, now - due), std::fflush(stdout);
      due = now;
    }
  };
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) std::thread(body, cpu).detach();
  while (std::getchar() != EOF) {
  }
  _exit(0);
}

job job_of(char** a) {
  return {a[0],
          a[1],
          std::strtoul(a[2], nullptr, 10),
          static_cast<unsigned>(std::strtoul(a[3], nullptr, 10)),
          0,
          UINT64_MAX};
}

}  // namespace

int main(int argc, char** argv) {
  std::string const mode = argc > 1 ? argv[1] : "";
  auto const number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  if (mode == "watch" && argc == 2) return watch();
  if (mode == "new" && argc == 4) return create(argv[2], number(3));
  if (mode == "launch" && argc == 9) {
    unsigned const processes = static_cast<unsigned>(number(2));
    std::string verb = "run";
    argv[2] = verb.data();
    argv[1] = argv[0];
    return launch(processes, argv + 1);
  }
  if (mode == "run" && (argc == 8 || argc == 9)) {
    job j = job_of(argv + 3);
    if (argc == 9) j.count = number(8);
    return run(j, stamps(argv[2]), std::atof(argv[7]));
  }
  if (mode == "big" && argc == 7) {
    char op[] = "read";
    char* shaped[] = {argv[3], op, argv[4], argv[5]};
    return big(job_of(shaped), stamps(argv[2]), std::atof(argv[6]));
  }
  if (mode == "sum" && argc == 5)
    return sum(stamps(argv[2]), std::atof(argv[3]), std::atof(argv[4]));
  if (mode == "steps" && argc == 6)
    return steps(stamps(argv[2]), number(3), number(4), static_cast<unsigned>(number(5)));
  std::fprintf(stderr, "usage: rate new|run|launch|big|sum|steps|watch …\n");
  return 2;
}
