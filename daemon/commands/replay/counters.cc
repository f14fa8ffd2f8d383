// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/counters.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace sluice::replay {

namespace {

constexpr std::size_t round_up(std::size_t n) { return (n + 4095) / 4096 * 4096; }

std::size_t before_workers(counters_shape const& s) {
  return round_up(sizeof(counters_head)) + round_up(s.processes * sizeof(process_page)) +
         round_up(s.jobs * sizeof(std::atomic<unsigned>));
}

}  // namespace

std::size_t counters_shape::page_bytes() const {
  return round_up(sizeof(worker_page) + ring_records * ops_most * sizeof(tally));
}

std::size_t counters_shape::bytes() const { return before_workers(*this) + workers * page_bytes(); }

shared_counters::shared_counters(counters_shape const& s) : shape_(s) {
  // Without MFD_CLOEXEC: a job that is started under another command maps it again.
  fd_ = memfd_create("sluice-replay", 0);
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(s.bytes())) != 0)
    throw sluice_error(
        fmt::format("cannot make shared memory of {} bytes: {}", s.bytes(), std::strerror(errno)));
  map();
}

shared_counters::shared_counters(counters_shape const& s, int fd) : shape_(s), fd_(fd) { map(); }

void shared_counters::map() {
  void* const at = mmap(nullptr, shape_.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED)
    throw sluice_error(fmt::format("cannot map shared memory: {}", std::strerror(errno)));
  base_ = static_cast<std::byte*>(at);
}

shared_counters::~shared_counters() {
  munmap(base_, shape_.bytes());
  close(fd_);
}

process_page& shared_counters::process(unsigned i) const {
  auto* const first = base_ + round_up(sizeof(counters_head));
  return reinterpret_cast<process_page*>(first)[i];
}

std::atomic<unsigned>& shared_counters::under_way(unsigned job) const {
  auto* const first =
      base_ + round_up(sizeof(counters_head)) + round_up(shape_.processes * sizeof(process_page));
  return reinterpret_cast<std::atomic<unsigned>*>(first)[job];
}

worker_page& shared_counters::worker(unsigned i) const {
  return *reinterpret_cast<worker_page*>(base_ + before_workers(shape_) + i * shape_.page_bytes());
}

tally* shared_counters::record(unsigned worker, std::uint64_t number) const {
  auto* const page = base_ + before_workers(shape_) + worker * shape_.page_bytes();
  return reinterpret_cast<tally*>(page + sizeof(worker_page)) +
         number % ring_records * shape_.ops_most;
}

}  // namespace sluice::replay
