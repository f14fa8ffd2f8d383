// SPDX-License-Identifier: Apache-2.0
// Clients of a RocksDB whose load has valleys and peaks, as in the published experiment on its tail
// latency: db_bench tells no percentile over time. Through the C API of the library, which is
// loaded at run time: nothing is needed to build this.
//   rocksdb_clients DB SECONDS KEYS VALLEY PEAK VALLEY_S PEAK_S READ_PERCENT MEMTABLE LIMITER
// One line a second: second, operations, p50, p99, max in µs, files of level 0, bytes of pending
// compactions. Then `all`, operations wanted and done, p50, p99, p99.9, max. MEMTABLE: bytes;
// files are as large, and level 1 four times. LIMITER: RocksDB's own, bytes/s; 0: none.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using clk = std::chrono::steady_clock;
constexpr unsigned clients = 4, steps = 64 * 40;  // 64 steps for each power of two of ns
constexpr std::size_t value_bytes = 1024;

void* library = nullptr;

template <typename Result = void, typename... Args>
Result call(char const* name, Args... args) {
  auto* const at = reinterpret_cast<Result (*)(Args...)>(dlsym(library, name));
  if (at == nullptr) {
    std::fprintf(stderr, "librocksdb has no %s\n", name);
    std::exit(77);
  }
  return at(args...);
}

struct histogram {
  std::vector<std::uint32_t> count = std::vector<std::uint32_t>(steps);
  void add(std::uint64_t ns) {
    unsigned const power = 63 - static_cast<unsigned>(__builtin_clzll(ns | 64));
    unsigned const step = (power - 6) * 64 + static_cast<unsigned>((ns >> (power - 6)) & 63);
    ++count[std::min(step, steps - 1)];
  }
  void add(histogram const& more) {
    for (unsigned i = 0; i < steps; ++i) count[i] += more.count[i];
  }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (auto n : count) sum += n;
    return sum;
  }
  double us(double part) const {
    auto const wanted = static_cast<std::uint64_t>(part * static_cast<double>(total()));
    std::uint64_t seen = 0;
    for (unsigned i = 0; i < steps; ++i)
      if ((seen += count[i]) > wanted || (seen == wanted && seen != 0 && part >= 1))
        return static_cast<double>((std::uint64_t{64 + i % 64}) << (i / 64)) / 1e3;
    return 0;
  }
};

struct load {
  double seconds, valley, peak, valley_s, peak_s;
  std::uint64_t keys;
  unsigned read_percent;
  double at(double t) const { return std::fmod(t, valley_s + peak_s) < valley_s ? valley : peak; }
};

struct database {
  void* db = nullptr;
  void *reads = nullptr, *writes = nullptr;
};

void check(char* error, char const* what) {
  if (error == nullptr) return;
  std::fprintf(stderr, "%s: %s\n", what, error);
  std::exit(1);
}

database open_database(char const* path, std::size_t memtable, std::uint64_t limiter) {
  using ptr = void*;
  using byte = unsigned char;
  ptr const o = call<ptr>("rocksdb_options_create");
  call("rocksdb_options_set_compression", o, 0);
  call("rocksdb_options_set_write_buffer_size", o, memtable);
  call("rocksdb_options_set_target_file_size_base", o, std::uint64_t{memtable});
  call("rocksdb_options_set_max_bytes_for_level_base", o, std::uint64_t{4 * memtable});
  call("rocksdb_options_set_max_background_jobs", o, 4);
  call("rocksdb_options_set_use_direct_reads", o, byte{1});
  call("rocksdb_options_set_use_direct_io_for_flush_and_compaction", o, byte{1});
  ptr const t = call<ptr>("rocksdb_block_based_options_create");
  call("rocksdb_block_based_options_set_block_cache", t,
       call<ptr>("rocksdb_cache_create_lru", std::size_t{16} << 20));
  call("rocksdb_block_based_options_set_filter_policy", t,
       call<ptr>("rocksdb_filterpolicy_create_bloom", 10.0));
  call("rocksdb_options_set_block_based_table_factory", o, t);
  if (limiter != 0)
    call("rocksdb_options_set_ratelimiter", o,
         call<ptr>("rocksdb_ratelimiter_create", static_cast<std::int64_t>(limiter),
                   std::int64_t{100'000}, std::int32_t{10}));
  char* error = nullptr;
  database d;
  d.db = call<ptr>("rocksdb_open", o, path, &error);
  check(error, "open");
  d.reads = call<ptr>("rocksdb_readoptions_create");
  d.writes = call<ptr>("rocksdb_writeoptions_create");
  call("rocksdb_writeoptions_disable_WAL", d.writes, 1);
  return d;
}

std::uint64_t number_of(database const& d, char const* property) {
  char* const text = call<char*>("rocksdb_property_value", d.db, property);
  std::uint64_t const n = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  std::free(text);
  return n;
}

/// As db_bench writes a key: its number, the high byte first, then zeros as text.
void put_key(char* key, std::uint64_t n) {
  for (int i = 0; i < 8; ++i) key[i] = static_cast<char>(n >> (56 - 8 * i));
  std::memset(key + 8, '0', 8);
}

void work(database const& d, load const& l, unsigned self, clk::time_point begin,
          std::vector<histogram>& seconds) {
  std::mt19937_64 random(self + 1);
  std::string value(value_bytes, 'v');
  char key[16];
  double due_s = 0;
  auto const since = [&] { return std::chrono::duration<double>(clk::now() - begin).count(); };
  while (true) {
    double const now_s = since();
    if (now_s >= l.seconds) return;
    due_s = std::max(due_s, now_s - 1);  // who is late by more has lost those requests
    if (due_s > now_s) std::this_thread::sleep_until(begin + std::chrono::duration<double>(due_s));
    put_key(key, random() % l.keys);
    bool const is_read = random() % 100 < l.read_percent;
    auto const from = clk::now();
    char* error = nullptr;
    if (is_read) {
      std::size_t length = 0;
      std::free(call<char*>("rocksdb_get", d.db, d.reads, +key, sizeof key, &length, &error));
    } else {
      call("rocksdb_put", d.db, d.writes, +key, sizeof key, value.data(), value.size(), &error);
    }
    check(error, "request");
    auto const took = std::chrono::duration_cast<std::chrono::nanoseconds>(clk::now() - from);
    auto const second = static_cast<std::size_t>(since());
    if (second < seconds.size()) seconds[second].add(static_cast<std::uint64_t>(took.count()));
    due_s += clients / l.at(due_s);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 11) return std::fputs("see the source for what it takes\n", stderr), 2;
  for (char const* name :
       {"librocksdb.so.7.8", "librocksdb.so.8.9", "librocksdb.so.9.10", "librocksdb.so"})
    if (library == nullptr) library = dlopen(name, RTLD_NOW);
  if (library == nullptr) return std::fputs("no librocksdb\n", stderr), 77;
  load const l = {atof(argv[2]),          atof(argv[4]), atof(argv[5]),
                  atof(argv[6]),          atof(argv[7]), std::strtoull(argv[3], nullptr, 10),
                  unsigned(atoi(argv[8]))};
  database const d = open_database(argv[1], std::strtoull(argv[9], nullptr, 10),
                                   std::strtoull(argv[10], nullptr, 10));
  auto const seconds = static_cast<std::size_t>(l.seconds) + 1;
  std::vector<std::vector<histogram>> of(clients, std::vector<histogram>(seconds));
  auto const begin = clk::now();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < clients; ++i)
    threads.emplace_back([&, i] { work(d, l, i, begin, of[i]); });
  std::vector<std::uint64_t> files, pending;
  for (std::size_t s = 1; s < seconds; ++s) {
    std::this_thread::sleep_until(begin + std::chrono::seconds(s));
    files.push_back(number_of(d, "rocksdb.num-files-at-level0"));
    pending.push_back(number_of(d, "rocksdb.estimate-pending-compaction-bytes"));
  }
  for (auto& t : threads) t.join();
  histogram all;
  double wanted = 0;
  for (double t = 0; t < l.seconds; t += 0.001) wanted += l.at(t) * 0.001;
  for (std::size_t s = 0; s + 1 < seconds; ++s) {
    histogram sum;
    for (auto const& one : of) sum.add(one[s]);
    all.add(sum);
    std::printf("%zu %llu %.1f %.1f %.1f %llu %llu\n", s, (unsigned long long)sum.total(),
                sum.us(0.5), sum.us(0.99), sum.us(1), (unsigned long long)files[s],
                (unsigned long long)pending[s]);
  }
  std::printf("all %.0f %llu %.1f %.1f %.1f %.1f\n", wanted, (unsigned long long)all.total(),
              all.us(0.5), all.us(0.99), all.us(0.999), all.us(1));
  std::fflush(stdout);
  _Exit(0);  // what is pending is not waited for
}
