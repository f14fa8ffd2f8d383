// SPDX-License-Identifier: Apache-2.0
// Two threads write one file where the log does not see it: order_apart DIR. While the daemon has
// not said that nothing of the file is live in the log, neither write may return.
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "abi/order_area.h"
#include "check.h"

using namespace sluice;

namespace {

abi::order_area& map_area() {
  std::string preload = getenv("LD_PRELOAD");
  preload = preload.substr(0, preload.find(':'));
  std::string const path = preload.substr(0, preload.rfind('/')) + "/order";
  int const fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  void* const at =
      mmap(nullptr, sizeof(abi::order_area), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  close(fd);
  return *static_cast<abi::order_area*>(at);
}

}  // namespace

int main(int argc, char** argv) {
  std::string const path = folder(argc, argv) + "/apart";
  close(make_file(path, 8192));
  abi::order_area& area = map_area();
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
  area.head.count[abi::order_count_slots - 1] = 1;
  first.join();
  second.join();
  area.head.count[abi::order_count_slots - 1] = 0;
  // From now on nobody has to ask.
  write_through();
  return 0;
}
