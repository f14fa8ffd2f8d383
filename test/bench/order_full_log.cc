// SPDX-License-Identifier: Apache-2.0
// A log as a power cut leaves it, full to the brim: order_full_log LOG DIR LOG_MIB RECORD_BYTES.
// Its records are of files in DIR, which are empty spaces, so recovery has to write all of it.
// Prints how many records there are, and the bytes of data in them.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "journal/file_disk.h"
#include "journal/home.h"
#include "journal/service.h"
#include "journal/slots.h"
#include "journal/writer.h"

using namespace sluice::journal;

namespace {

constexpr std::uint64_t mib = 1 << 20, file_bytes = 64 * mib, window_ns = 3'600'000'000'000;
constexpr unsigned files = 16, batch_records = 64;

[[noreturn]] void fail(std::string const& what) {
  fmt::print(stderr, "order_full_log: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

std::vector<file_id> make_files(std::string const& dir) {
  std::vector<file_id> all(files);
  for (unsigned i = 0; i < files; ++i) {
    std::string const path = fmt::format("{}/{}", dir, i);
    int const fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, file_bytes) != 0 || fsync(fd) != 0) fail(path);
    if ((errno = identify(fd, all[i])) != 0) fail(path + ": has no identity");
    close(fd);
  }
  return all;
}

struct filled {
  std::uint64_t records = 0, bytes = 0;
};

/// Records of bytes anywhere in the files, until there is no room for another.
filled fill(writer& log, std::vector<file_id> const& all, std::size_t record_bytes) {
  std::mt19937_64 dice(1);
  std::vector<std::byte> bytes(record_bytes);
  record r;
  r.what = kind::data;
  filled sum;
  std::uint64_t lsn = 0;
  for (int failed = 0; failed == 0;) {
    for (unsigned i = 0; failed == 0 && i < batch_records; ++i) {
      std::uint64_t const word = dice();
      for (std::size_t at = 0; at + sizeof word <= bytes.size(); at += sizeof word)
        std::memcpy(&bytes[at], &word, sizeof word);
      r.file = all[word % files];
      r.offset = (word >> 8) % (file_bytes / record_bytes) * record_bytes;
      r.bytes = bytes;
      r.changed_ns = realtime_ns();
      failed = log.try_append(r, lsn);
      if (failed == 0) ++sum.records, sum.bytes += record_bytes;
    }
    errno = failed;
    if (failed != 0 && failed != ENOSPC) fail("a record");
    if ((errno = log.commit(lsn)) != 0) fail("a commit");
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: order_full_log LOG DIR LOG_MIB RECORD_BYTES\n");
    return 2;
  }
  std::string const path = argv[1];
  auto const record_bytes = std::strtoull(argv[4], nullptr, 10);
  if (record_bytes == 0 || record_bytes > data_bytes_max) fail("RECORD_BYTES");
  auto const all = make_files(argv[2]);
  make_log_file(path, std::strtoull(argv[3], nullptr, 10) * mib, window_ns);
  file_disk disk(path, file_disk::use::write);
  writer log(disk, read_slots(disk).in_force, {realtime_ns, sluice::steady_count_ns});
  filled const sum = fill(log, all, record_bytes);
  fmt::print("{} {}\n", sum.records, sum.bytes);
}
