// SPDX-License-Identifier: Apache-2.0
// model_disk DIR IOPS BYTES_PER_S MIB NAME...: a file system at DIR with files of so many MiB in
// memory, on a disk whose every request takes a known time. Reads, writes, looks at names and
// flushes stand in one queue, so they do meet. Waiting takes no processor time. Requests of N bytes
// cost the larger of 1 and N * IOPS / BYTES_PER_S of the IOPS there are in a second; a write costs
// 1.5 times that; one that begins or ends within a page reads that page first; a look at a name
// costs 0.5, a flush 4. The experiments know the same numbers: scripts/experiments/model.py.
// Ends when it is told to (SIGTERM), or with its parent.
// build: -lfuse3
#define FUSE_USE_VERSION 314
#include <fuse3/fuse.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>

namespace {

constexpr off_t page_bytes = 4096;
constexpr unsigned most_bytes = 1 << 20;  // of one request of the kernel's
constexpr double write_factor = 1.5, look_cost = 0.5, flush_cost = 4;
constexpr std::int64_t second_ns = 1'000'000'000;

struct file {
  std::string path;  // "/NAME"
  char* memory = nullptr;
};

std::deque<file> files;
std::size_t file_bytes = 0;
double iops = 0, bytes_per_s = 0;
std::mutex queue;
std::int64_t free_ns = 0;  // when all requests so far are served

[[noreturn]] void fail(char const* what) {
  std::fprintf(stderr, "model_disk: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

std::int64_t now_ns() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * second_ns + t.tv_nsec;
}

double moved(off_t bytes) { return std::max(1.0, static_cast<double>(bytes) * iops / bytes_per_s); }

double written(off_t at, off_t bytes) {
  off_t const from = at / page_bytes * page_bytes;
  off_t const to = (at + bytes + page_bytes - 1) / page_bytes * page_bytes;
  bool const is_first_partial = at != from;
  bool const is_last_partial = at + bytes != to && (to - from > page_bytes || !is_first_partial);
  return write_factor * moved(to - from) + (is_first_partial + is_last_partial) * moved(page_bytes);
}

/// Until it is served.
void wait_for(double cost) {
  std::int64_t done_ns = 0;
  {
    std::lock_guard const hold(queue);
    auto const takes_ns = static_cast<std::int64_t>(cost / iops * second_ns);
    done_ns = free_ns = std::max(free_ns, now_ns()) + takes_ns;
  }
  timespec const until = {done_ns / second_ns, done_ns % second_ns};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

file* find(char const* path) {
  auto const at =
      std::find_if(files.begin(), files.end(), [path](file const& f) { return f.path == path; });
  return at == files.end() ? nullptr : &*at;
}

file& opened(fuse_file_info const* info) { return *reinterpret_cast<file*>(info->fh); }

// Attributes stay known for a moment, names do not: a stat is one request.
void* on_init(fuse_conn_info* conn, fuse_config* config) {
  conn->max_write = most_bytes;
  config->entry_timeout = config->negative_timeout = 0;
  config->attr_timeout = 1;
  return nullptr;
}

int on_getattr(char const* path, struct stat* st, fuse_file_info*) {
  *st = {};
  bool const is_root = std::strcmp(path, "/") == 0;
  if (!is_root) wait_for(look_cost);
  if (!is_root && find(path) == nullptr) return -ENOENT;
  st->st_mode = is_root ? S_IFDIR | 0755 : S_IFREG | 0666;
  st->st_nlink = is_root ? 2 : 1;
  st->st_size = is_root ? 0 : static_cast<off_t>(file_bytes);
  return 0;
}

int on_open(char const* path, fuse_file_info* info) {
  file* const f = find(path);
  if (f == nullptr) return -ENOENT;
  info->fh = reinterpret_cast<std::uintptr_t>(f);
  info->direct_io = 1;
  return 0;
}

/// Of so many bytes from there, those that are.
std::size_t there(std::size_t bytes, off_t at) {
  auto const from = static_cast<std::size_t>(at);
  return from >= file_bytes ? 0 : std::min(bytes, file_bytes - from);
}

int on_read(char const*, char* to, std::size_t bytes, off_t at, fuse_file_info* info) {
  std::size_t const n = there(bytes, at);
  wait_for(moved(static_cast<off_t>(n)));
  if (n != 0) std::memcpy(to, opened(info).memory + at, n);
  return static_cast<int>(n);
}

int on_write(char const*, char const* from, std::size_t bytes, off_t at, fuse_file_info* info) {
  std::size_t const n = there(bytes, at);
  if (n < bytes) return -ENOSPC;
  wait_for(written(at, static_cast<off_t>(n)));
  std::memcpy(opened(info).memory + at, from, n);
  return static_cast<int>(n);
}

int on_fsync(char const*, int, fuse_file_info*) {
  wait_for(flush_cost);
  return 0;
}

void make_file(char const* name) {
  void* const memory = mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail("memory");
  files.push_back({std::string("/") + name, static_cast<char*>(memory)});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: model_disk DIR IOPS BYTES_PER_S MIB NAME...\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  prctl(PR_SET_TIMERSLACK, 1);
  iops = std::atof(argv[2]);
  bytes_per_s = std::atof(argv[3]);
  file_bytes = static_cast<std::size_t>(std::atol(argv[4])) << 20;
  if (iops <= 0 || bytes_per_s <= 0 || file_bytes == 0) {
    std::fprintf(stderr, "model_disk: rates and sizes are above 0\n");
    return 2;
  }
  for (int i = 5; i < argc; ++i) make_file(argv[i]);
  fuse_operations acts = {};
  acts.init = on_init;
  acts.getattr = on_getattr;
  acts.open = on_open;
  acts.read = on_read;
  acts.write = on_write;
  acts.fsync = on_fsync;
  std::string const options = "fsname=model_disk,allow_other,max_threads=64";
  char* words[] = {argv[0],
                   const_cast<char*>("-f"),
                   const_cast<char*>("-o"),
                   const_cast<char*>(options.c_str()),
                   argv[1],
                   nullptr};
  return fuse_main(5, words, &acts, nullptr);
}
