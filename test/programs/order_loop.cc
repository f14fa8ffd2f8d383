// SPDX-License-Identifier: Apache-2.0
// Writes and fsyncs until it is told to stop: order_loop DIR THREADS MS. Every fsync must succeed;
// the longest is printed in ms, with how many there were. Each thread has a file of its own.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

int main(int argc, char** argv) {
  CHECK(argc == 4);
  std::string const dir = argv[1];
  double const until_s = now_s() + atof(argv[3]) / 1000;
  std::atomic<long> longest_us{0}, count{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < atoi(argv[2]); ++t)
    threads.emplace_back([&, t] {
      int const fd = make_file(dir + "/loop" + std::to_string(t), 65536);
      char block[4096];
      memset(block, 'b', sizeof block);
      for (unsigned i = 0; now_s() < until_s; ++i) {
        CHECK(pwrite(fd, block, sizeof block, i % 16 * 4096) == sizeof block);
        double const begin_s = now_s();
        CHECK(fsync(fd) == 0);
        long const took_us = static_cast<long>((now_s() - begin_s) * 1e6);
        long seen = longest_us;
        while (took_us > seen && !longest_us.compare_exchange_weak(seen, took_us)) {
        }
        ++count;
      }
      close(fd);
    });
  for (auto& t : threads) t.join();
  printf("%ld %ld\n", count.load(), longest_us.load() / 1000);
}
