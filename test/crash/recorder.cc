// SPDX-License-Identifier: Apache-2.0
#include "recorder.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "disk_server.h"

namespace sluice::crash {

namespace {

constexpr std::uint64_t arena_bytes = 1ull << 30;  // touched as it is used
constexpr std::size_t disk_block = 4096, sector = 512;

/// Shared by processes; of a file where one is given.
template <class T>
T* share(std::uint64_t bytes, int file = -1) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
  if (at == MAP_FAILED) throw std::runtime_error("no memory to record in");
  return static_cast<T*>(at);
}

[[noreturn]] void fail(std::string const& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

}  // namespace

recorder::recorder(std::string const& dir, std::vector<std::uint64_t> const& bytes,
                   disk_model model)
    : dir_(dir), model_(model) {
  if (bytes.size() > most_disks) throw std::runtime_error("too many disks to record");
  shared_ = share<shared>(sizeof(shared));
  shared_->disks = static_cast<std::uint32_t>(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    shared_->begin[i + 1] = shared_->begin[i] + bytes[i];
  std::uint64_t const all_bytes = image_bytes();
  image_fd_ = memfd_create("disks", MFD_CLOEXEC);
  if (image_fd_ < 0 || ftruncate(image_fd_, static_cast<off_t>(all_bytes)) != 0) fail("memfd");
  image_ = share<std::byte>(all_bytes, image_fd_);
  base_ = share<std::byte>(all_bytes);
  arena_ = share<std::byte>(arena_bytes);
  shared_->arena_bytes = arena_bytes;
  pthread_mutexattr_t between;
  pthread_mutexattr_init(&between);
  pthread_mutexattr_setpshared(&between, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared_->mutex, &between);
  server_ = fork();
  if (server_ < 0) fail("fork");
  if (server_ == 0) serve_disks(dir_, {shared_, image_fd_, arena_, model_});
  for (int i = 0; i < 500; ++i) {
    if (access((dir_ + "/disk").c_str(), F_OK) == 0) return;
    usleep(10'000);
  }
  kill(server_, SIGKILL);
  waitpid(server_, nullptr, 0);
  throw std::runtime_error("the FUSE file system does not appear");
}

recorder::~recorder() {
  detach();
  umount2(dir_.c_str(), MNT_DETACH);
  kill(server_, SIGKILL);
  waitpid(server_, nullptr, 0);
  munmap(arena_, arena_bytes);
  munmap(image_, image_bytes());
  munmap(base_, image_bytes());
  close(image_fd_);
  munmap(shared_, sizeof(shared));
}

void recorder::attach(unsigned which, memory kept) {
  int const control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  bool const is_image = kept == memory::none;
  int const disk =
      is_image ? dup(image_fd_) : open((dir_ + disk_names[which]).c_str(), O_RDWR | O_CLOEXEC);
  int& loop = loop_[which];
  if (control < 0 || disk < 0) fail("loop");
  for (int tries = 0; tries < 100 && loop < 0; ++tries) {
    int const number = ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) break;
    device_[which] = "/dev/loop" + std::to_string(number);
    int const fd = open(device_[which].c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) break;
    loop_config config = {};
    config.fd = static_cast<std::uint32_t>(disk);
    config.block_size = sector;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (is_image) {
      config.info.lo_offset = shared_->begin[which];
      config.info.lo_sizelimit = shared_->begin[which + 1] - shared_->begin[which];
    }
    if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
      loop = fd;
    else
      close(fd);  // another process was faster
  }
  close(control);
  close(disk);
  if (loop < 0) fail("no loop device");
}

void recorder::wait_until_unused() const {
  for (unsigned which = 0; which < disks(); ++which)
    for (int tries = 0; loop_[which] >= 0; ++tries) {
      int const fd = open(device_[which].c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);
      int const why = errno;
      if (fd >= 0) close(fd);
      if (fd >= 0 || why != EBUSY) break;
      if (tries == 2000) throw std::runtime_error(device_[which] + " stays in use");
      usleep(5000);
    }
}

void recorder::detach() {
  for (int& loop : loop_) {
    if (loop < 0) continue;
    fsync(loop);
    ioctl(loop, LOOP_CLR_FD);
    close(loop);
    loop = -1;
  }
}

void recorder::refuse(unsigned which, refusal what) {
  pthread_mutex_lock(&shared_->mutex);
  shared_->refuses[which] = what;
  pthread_mutex_unlock(&shared_->mutex);
}

void recorder::accept() {
  for (unsigned which = 0; which < disks(); ++which) refuse(which, {});
}

unsigned recorder::refused() const {
  pthread_mutex_lock(&shared_->mutex);
  unsigned const so_many = shared_->refused;
  pthread_mutex_unlock(&shared_->mutex);
  return so_many;
}

/// Which pages of the image are no holes.
std::vector<bool> recorder::pages() const {
  std::vector<bool> found(image_bytes() / disk_block);
  off_t at = 0;
  while ((at = lseek(image_fd_, at, SEEK_DATA)) >= 0) {
    off_t const end = lseek(image_fd_, at, SEEK_HOLE);
    for (; at < end; at += disk_block) found[static_cast<std::size_t>(at) / disk_block] = true;
  }
  return found;
}

void recorder::begin() {
  base_pages_ = pages();
  for (std::size_t i = 0; i < base_pages_.size(); ++i)
    if (base_pages_[i]) std::memcpy(base_ + i * disk_block, image_ + i * disk_block, disk_block);
  pthread_mutex_lock(&shared_->mutex);
  shared_->used = shared_->entries = 0;
  pthread_mutex_unlock(&shared_->mutex);
}

void recorder::mark(std::uint32_t stream, std::uint64_t epoch) {
  append(shared_, arena_, {entry::mark, stream, epoch, 0}, nullptr);
}

void recorder::end() {
  if (shared_->overflow != 0) throw std::runtime_error("the run wrote more than can be recorded");
  recorded_ = shared_->used;
  log_ = list(0);
}

std::vector<entry const*> recorder::list(std::uint64_t from) const {
  std::vector<entry const*> found;
  for (std::uint64_t at = from; at < shared_->used;) {
    auto const* const e = reinterpret_cast<entry const*>(arena_ + at);
    found.push_back(e);
    at += sizeof *e + (e->what == entry::write ? (e->bytes + 7) / 8 * 8 : 0);
  }
  return found;
}

void recorder::put(entry const& e, std::size_t begin, std::size_t bytes) {
  auto const* const from = reinterpret_cast<std::byte const*>(&e + 1) + begin;
  std::memcpy(image_ + e.offset + begin, from, bytes);
}

namespace {

constexpr std::size_t enumerated_max = 3;  // units: eight states

/// What of an entry reaches the disk, or does not, as one.
struct unit {
  entry const* e;
  std::size_t begin, bytes;
};

/// The entries before `count`, parted by the last flush of their disk.
struct parted {
  std::vector<entry const*> safe;
  std::vector<unit> pending;
};

parted part(std::vector<entry const*> const& log, std::size_t count) {
  std::size_t flushed[most_disks] = {};
  for (std::size_t i = 0; i < count; ++i)
    if (log[i]->what == entry::flush) flushed[log[i]->stream] = i;
  parted all;
  for (std::size_t i = 0; i < count; ++i) {
    entry const* const e = log[i];
    if (e->what != entry::write) continue;
    if (i < flushed[e->stream]) all.safe.push_back(e);
    for (std::size_t at = 0; i >= flushed[e->stream] && at < e->bytes; at += disk_block)
      all.pending.push_back({e, at, std::min<std::size_t>(disk_block, e->bytes - at)});
  }
  return all;
}

}  // namespace

int recorder::subsets(std::size_t count) const {
  std::size_t const pending = part(log_, count).pending.size();
  return pending > enumerated_max ? 1 : 1 << pending;
}

/// All before the last flush of its disk; of the rest units of a block, kept by chance, now and
/// then torn, or as they are asked for.
void recorder::apply(std::vector<entry const*> const& log, std::size_t count, std::mt19937_64& rng,
                     int subset) {
  constexpr int all_units = recorder::all;
  parted all = part(log, count);
  for (entry const* e : all.safe) put(*e, 0, e->bytes);
  std::vector<unit>& units = all.pending;
  for (std::size_t i = 0; subset != by_chance && i < units.size(); ++i)
    if (subset == all_units || (subset >> i & 1) != 0)
      put(*units[i].e, units[i].begin, units[i].bytes);
  if (subset != by_chance) return;
  unsigned const policy = rng() % 4;
  double const keep = policy == 0 || policy == 3 ? 0.1 : policy == 1 ? 0.5 : 0.9;
  if (policy == 3) std::shuffle(units.begin(), units.end(), rng);
  std::uniform_real_distribution<> dice(0, 1);
  for (auto& u : units) {
    if (dice(rng) >= keep) continue;
    if (dice(rng) < 0.05) u.bytes = rng() % (u.bytes / sector + 1) * sector;
    put(*u.e, u.begin, u.bytes);
  }
}

/// The image is the base again.
void recorder::restore() {
  std::vector<bool> const now = pages();
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!now[i] && !base_pages_[i]) continue;
    std::byte* const at = image_ + i * disk_block;
    std::byte const* const was = base_ + i * disk_block;
    if (std::memcmp(at, was, disk_block) != 0) std::memcpy(at, was, disk_block);
  }
  pthread_mutex_lock(&shared_->mutex);
  shared_->used = recorded_;
  pthread_mutex_unlock(&shared_->mutex);
}

void recorder::cut(std::size_t count, std::uint64_t seed, int subset) {
  restore();
  std::mt19937_64 rng(seed);
  cut_count_ = count;
  cut_seed_ = seed;
  cut_subset_ = subset;
  apply(log_, count, rng, subset);
}

void recorder::cut_again(std::uint64_t seed) {
  std::vector<std::byte> const kept(arena_ + recorded_, arena_ + shared_->used);
  std::vector<entry const*> since;
  for (std::size_t at = 0; at < kept.size();) {
    auto const* const e = reinterpret_cast<entry const*>(kept.data() + at);
    since.push_back(e);
    at += sizeof *e + (e->what == entry::write ? (e->bytes + 7) / 8 * 8 : 0);
  }
  cut(cut_count_, cut_seed_, cut_subset_);
  std::mt19937_64 rng(seed);
  apply(since, since.empty() ? 0 : rng() % since.size(), rng, cut_subset_ == all ? all : by_chance);
}

}  // namespace sluice::crash
