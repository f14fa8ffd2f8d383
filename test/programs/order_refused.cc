// SPDX-License-Identifier: Apache-2.0
// order_refused DIR: when home has lost bytes of a file that the log has, what the kernel syncs by
// itself is no success: recovery will put what the log has over it.
#include <sys/mman.h>

#include "order_board.h"

using namespace sluice;

int main(int argc, char** argv) {
  std::string const path = folder(argc, argv) + "/lost", block(4096, 'x');
  close(make_file(path, 4096));
  abi::order_area& area = map_order_area();
  int const fd = open(path.c_str(), O_RDWR), synced = open(path.c_str(), O_RDWR | O_DSYNC);
  CHECK(fd >= 0 && synced >= 0 && pwrite(synced, block.data(), 10, 0) == 10);

  raise(area, stat_of(fd), abi::order_logged);
  area.head.refused = EIO;
  CHECK(pwrite(synced, block.data(), 10, 0) == -1 && errno == EIO);
  CHECK(write(synced, block.data(), 10) == -1 && errno == EIO);
  CHECK(lseek(synced, 0, SEEK_CUR) == 0);
  CHECK(pwrite(fd, block.data(), 10, 0) == 10);
  void* const at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED && msync(at, 4096, MS_ASYNC) == 0);
  CHECK(msync(at, 4096, MS_SYNC) == -1 && errno == EIO);

  area.head.refused = 0;
  CHECK(msync(at, 4096, MS_SYNC) == 0 && pwrite(synced, block.data(), 10, 0) == 10);
}
