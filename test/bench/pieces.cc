// SPDX-License-Identifier: Apache-2.0
// Works in small pieces on a file, and says how long it took: for small.py.
//   pieces write FILE PIECE BYTES    from the beginning, over what is there, and close: MB/s
//   pieces files DIR WRITES FILES    new files of so many writes of 64 bytes: microseconds a file
//   pieces reads FILE PIECE BYTES    from the beginning to there, and close: microseconds a read
//   pieces parts FILE READS TIMES    opens, so many reads of 64 bytes, and close: microseconds
//   pieces strides FILE STEP BYTES   reads of 512 bytes every STEP: microseconds a read
// With COLD in the environment nothing of the file is in the cache at the beginning.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::size_t read_bytes = 512;

int fail(char const* what) {
  std::perror(what);
  return 1;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int write_all(int fd, std::size_t piece, long bytes) {
  std::vector<char> const from(piece, 'x');
  auto const begin = std::chrono::steady_clock::now();
  long done = 0;
  for (; done + static_cast<long>(piece) <= bytes; done += static_cast<long>(piece))
    if (write(fd, from.data(), piece) != static_cast<ssize_t>(piece)) return fail("write");
  if (close(fd) != 0) return fail("close");
  std::printf("%.3f\n", static_cast<double>(done) / seconds_since(begin) / 1e6);
  return 0;
}

int read_strides(int fd, long step, long bytes) {
  char to[read_bytes];
  auto const begin = std::chrono::steady_clock::now();
  long reads = 0;
  for (long at = 0; at + static_cast<long>(sizeof to) <= bytes; at += step, ++reads)
    if (pread(fd, to, sizeof to, at) != sizeof to) return fail("pread");
  std::printf("%.3f\n", seconds_since(begin) / static_cast<double>(reads) * 1e6);
  return 0;
}

int read_all(int fd, std::size_t piece, long bytes) {
  std::vector<char> to(piece);
  auto const begin = std::chrono::steady_clock::now();
  long reads = 0;
  for (; (reads + 1) * static_cast<long>(piece) <= bytes; ++reads)
    if (read(fd, to.data(), piece) != static_cast<ssize_t>(piece)) return fail("read");
  if (close(fd) != 0) return fail("close");
  std::printf("%.4f\n", seconds_since(begin) / static_cast<double>(reads) * 1e6);
  return 0;
}

int read_parts(std::string const& path, long reads, long times) {
  char to[64];
  auto const begin = std::chrono::steady_clock::now();
  for (long i = 0; i < times; ++i) {
    int const fd = open(path.c_str(), O_RDONLY);
    if (fd < 0) return fail(path.c_str());
    for (long n = 0; n < reads; ++n)
      if (read(fd, to, sizeof to) != sizeof to) return fail("read");
    if (close(fd) != 0) return fail("close");
  }
  std::printf("%.3f\n", seconds_since(begin) / static_cast<double>(times) * 1e6);
  return 0;
}

int write_files(std::string const& folder, long writes, long files) {
  char const from[64] = {};
  auto const begin = std::chrono::steady_clock::now();
  for (long i = 0; i < files; ++i) {
    std::string const path = folder + "/" + std::to_string(i);
    int const fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) return fail(path.c_str());
    for (long n = 0; n < writes; ++n)
      if (write(fd, from, sizeof from) != sizeof from) return fail("write");
    if (close(fd) != 0) return fail("close");
  }
  std::printf("%.3f\n", seconds_since(begin) / static_cast<double>(files) * 1e6);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  if (std::strcmp(argv[1], "files") == 0)
    return write_files(argv[2], std::atol(argv[3]), std::atol(argv[4]));
  if (std::strcmp(argv[1], "parts") == 0)
    return read_parts(argv[2], std::atol(argv[3]), std::atol(argv[4]));
  bool const writes = std::strcmp(argv[1], "write") == 0;
  int const fd = open(argv[2], writes ? O_WRONLY | O_CREAT : O_RDONLY, 0600);
  if (fd < 0) return fail(argv[2]);
  if (std::getenv("COLD") != nullptr) {
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  }
  long const by = std::atol(argv[3]), bytes = std::atol(argv[4]);
  if (std::strcmp(argv[1], "reads") == 0) return read_all(fd, static_cast<std::size_t>(by), bytes);
  return writes ? write_all(fd, static_cast<std::size_t>(by), bytes) : read_strides(fd, by, bytes);
}
