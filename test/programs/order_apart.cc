// SPDX-License-Identifier: Apache-2.0
// Two threads write one file where the log does not see it: order_apart DIR. While the daemon has
// not said that nothing of the file is live in the log, neither write may return.
#include <atomic>
#include <thread>

#include "order_board.h"

using namespace sluice;

int main(int argc, char** argv) {
  std::string const path = folder(argc, argv) + "/apart";
  close(make_file(path, 8192));
  abi::order_area& area = map_order_area();
  struct stat st;
  CHECK(stat(path.c_str(), &st) == 0);
  raise(area, st, 0);
  std::atomic<int> returned{0};
  auto const write_through = [&] {
    int const fd = open(path.c_str(), O_WRONLY | O_DSYNC);
    CHECK(fd >= 0 && pwrite(fd, "text", 4, 0) == 4);
    ++returned;
    close(fd);
  };
  std::thread first(write_through);
  nap_ms(200);
  std::thread second(write_through);
  nap_ms(300);
  CHECK(returned == 0);
  wish_word(area) = 1;
  first.join();
  second.join();
  wish_word(area) = 0;
  // From now on nobody has to ask.
  write_through();
  return 0;
}
