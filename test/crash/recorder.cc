// SPDX-License-Identifier: Apache-2.0
#define FUSE_USE_VERSION 31
#include "recorder.h"

#include <fcntl.h>
#include <fuse3/fuse.h>
#include <linux/falloc.h>
#include <linux/loop.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sluice::crash {

namespace {

constexpr std::uint64_t arena_bytes = 1ull << 30;  // touched as it is used
constexpr std::size_t block = 4096, sector = 512;

// The server process has one disk.
shared* served = nullptr;
std::byte* served_image = nullptr;
std::byte* served_arena = nullptr;
disk_model served_model;

/// Short times by spinning: a sleep is never shorter than some tens of microseconds.
void take_time(unsigned us) {
  if (us >= 50) return void(usleep(us));
  timespec now = {}, begin = {};
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - begin.tv_sec) * 1'000'000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

void append(shared* s, std::byte* arena, entry const& e, void const* bytes) {
  pthread_mutex_lock(&s->mutex);
  std::uint64_t const room = sizeof e + (e.what == entry::write ? (e.bytes + 7) / 8 * 8 : 0);
  if (s->used + room > s->arena_bytes) {
    s->overflow = 1;
  } else {
    std::memcpy(arena + s->used, &e, sizeof e);
    if (e.what == entry::write) {
      std::byte* const to = arena + s->used + sizeof e;
      bytes != nullptr ? std::memcpy(to, bytes, e.bytes) : std::memset(to, 0, e.bytes);
    }
    s->used += room;
    ++s->entries;
  }
  pthread_mutex_unlock(&s->mutex);
}

bool is_disk(char const* path) { return std::strcmp(path, "/disk") == 0; }

int on_getattr(char const* path, struct stat* st, fuse_file_info*) {
  *st = {};
  if (std::strcmp(path, "/") == 0) {
    st->st_mode = S_IFDIR | 0700;
    st->st_nlink = 2;
    return 0;
  }
  if (!is_disk(path)) return -ENOENT;
  st->st_mode = S_IFREG | 0600;
  st->st_nlink = 1;
  st->st_size = static_cast<off_t>(served->image_bytes);
  return 0;
}

int on_open(char const* path, fuse_file_info* file) {
  if (!is_disk(path)) return -ENOENT;
  file->direct_io = 1;
  return 0;
}

std::size_t within(std::size_t bytes, off_t offset) {
  auto const at = static_cast<std::uint64_t>(offset);
  return at >= served->image_bytes ? 0 : std::min<std::uint64_t>(bytes, served->image_bytes - at);
}

int on_read(char const*, char* to, std::size_t bytes, off_t offset, fuse_file_info*) {
  bytes = within(bytes, offset);
  std::memcpy(to, served_image + offset, bytes);
  return static_cast<int>(bytes);
}

void store(void const* from, std::size_t bytes, off_t offset) {
  from != nullptr ? std::memcpy(served_image + offset, from, bytes)
                  : std::memset(served_image + offset, 0, bytes);
  if (served_model.is_on()) return take_time(served_model.write_us);
  append(served, served_arena, {entry::write, 0, static_cast<std::uint64_t>(offset), bytes}, from);
}

int on_write(char const*, char const* from, std::size_t bytes, off_t offset, fuse_file_info*) {
  bytes = within(bytes, offset);
  if (bytes == 0) return -ENOSPC;
  store(from, bytes, offset);
  return static_cast<int>(bytes);
}

int on_fsync(char const*, int, fuse_file_info*) {
  if (served_model.is_on()) {
    pthread_mutex_lock(&served->mutex);
    take_time(served_model.flush_us);
    pthread_mutex_unlock(&served->mutex);
    return 0;
  }
  append(served, served_arena, {entry::flush, 0, 0, 0}, nullptr);
  return 0;
}

/// A hole is zeros, written.
int on_fallocate(char const*, int, off_t offset, off_t bytes, fuse_file_info*) {
  store(nullptr, within(static_cast<std::size_t>(bytes), offset), offset);
  return 0;
}

template <class T>
T* share(std::uint64_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::runtime_error("no memory to record in");
  return static_cast<T*>(at);
}

[[noreturn]] void fail(std::string const& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

}  // namespace

recorder::recorder(std::string const& dir, std::uint64_t image_bytes, disk_model model)
    : dir_(dir), model_(model) {
  shared_ = share<shared>(sizeof(shared));
  image_ = share<std::byte>(image_bytes);
  arena_ = share<std::byte>(arena_bytes);
  shared_->image_bytes = image_bytes;
  shared_->arena_bytes = arena_bytes;
  pthread_mutexattr_t between;
  pthread_mutexattr_init(&between);
  pthread_mutexattr_setpshared(&between, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared_->mutex, &between);
  server_ = fork();
  if (server_ < 0) fail("fork");
  if (server_ == 0) serve();
  for (int i = 0; i < 500; ++i) {
    if (access((dir_ + "/disk").c_str(), F_OK) == 0) return;
    usleep(10'000);
  }
  kill(server_, SIGKILL);
  waitpid(server_, nullptr, 0);
  throw std::runtime_error("the FUSE file system does not appear");
}

void recorder::serve() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_TIMERSLACK, 1);
  served = shared_;
  served_image = image_;
  served_arena = arena_;
  served_model = model_;
  fuse_operations acts = {};
  acts.getattr = on_getattr;
  acts.open = on_open;
  acts.read = on_read;
  acts.write = on_write;
  acts.fsync = on_fsync;
  acts.fallocate = on_fallocate;
  char name[] = "recorder", foreground[] = "-f", single[] = "-s";
  char* words[] = {name, foreground, dir_.data(), nullptr, nullptr};
  if (!model_.is_on()) words[3] = single;  // an order of entries
  _exit(fuse_main(model_.is_on() ? 3 : 4, words, &acts, nullptr));
}

recorder::~recorder() {
  detach();
  umount2(dir_.c_str(), MNT_DETACH);
  kill(server_, SIGKILL);
  waitpid(server_, nullptr, 0);
  munmap(arena_, arena_bytes);
  munmap(image_, shared_->image_bytes);
  munmap(shared_, sizeof(shared));
}

void recorder::attach() {
  int const control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  int const disk = open((dir_ + "/disk").c_str(), O_RDWR | O_CLOEXEC);
  if (control < 0 || disk < 0) fail("loop");
  for (int tries = 0; tries < 100 && loop_ < 0; ++tries) {
    int const number = ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) break;
    device_ = "/dev/loop" + std::to_string(number);
    int const fd = open(device_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) break;
    loop_config config = {};
    config.fd = static_cast<std::uint32_t>(disk);
    config.block_size = sector;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
      loop_ = fd;
    else
      close(fd);  // another process was faster
  }
  close(control);
  close(disk);
  if (loop_ < 0) fail("no loop device");
}

void recorder::detach() {
  if (loop_ < 0) return;
  fsync(loop_);
  ioctl(loop_, LOOP_CLR_FD);
  close(loop_);
  loop_ = -1;
}

void recorder::begin() {
  base_.assign(image_, image_ + shared_->image_bytes);
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
  for (std::uint64_t at = 0; at < base_.size(); at += block) touched_.push_back(at);
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
  for (std::uint64_t at = (e.offset + begin) / block * block; at < e.offset + begin + bytes;
       at += block)
    touched_.push_back(at);
}

/// All before the last flush; of the rest units of a block, kept by chance, now
/// and then torn.
void recorder::apply(std::vector<entry const*> const& log, std::size_t count,
                     std::mt19937_64& rng) {
  std::size_t flushed = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (log[i]->what == entry::flush) flushed = i;
  for (std::size_t i = 0; i < flushed; ++i)
    if (log[i]->what == entry::write) put(*log[i], 0, log[i]->bytes);
  struct unit {
    entry const* e;
    std::size_t begin, bytes;
  };
  std::vector<unit> units;
  for (std::size_t i = flushed; i < count; ++i)
    for (std::size_t at = 0; log[i]->what == entry::write && at < log[i]->bytes; at += block)
      units.push_back({log[i], at, std::min<std::size_t>(block, log[i]->bytes - at)});
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
  for (entry const* e : list(recorded_)) {
    if (e->what != entry::write) continue;
    for (std::uint64_t at = e->offset / block * block; at < e->offset + e->bytes; at += block)
      touched_.push_back(at);
  }
  for (std::uint64_t const at : touched_) std::memcpy(image_ + at, base_.data() + at, block);
  touched_.clear();
  pthread_mutex_lock(&shared_->mutex);
  shared_->used = recorded_;
  pthread_mutex_unlock(&shared_->mutex);
}

void recorder::cut(std::size_t count, std::uint64_t seed) {
  restore();
  std::mt19937_64 rng(seed);
  cut_count_ = count;
  cut_seed_ = seed;
  apply(log_, count, rng);
}

void recorder::cut_again(std::uint64_t seed) {
  std::vector<std::byte> const kept(arena_ + recorded_, arena_ + shared_->used);
  std::vector<entry const*> since;
  for (std::size_t at = 0; at < kept.size();) {
    auto const* const e = reinterpret_cast<entry const*>(kept.data() + at);
    since.push_back(e);
    at += sizeof *e + (e->what == entry::write ? (e->bytes + 7) / 8 * 8 : 0);
  }
  cut(cut_count_, cut_seed_);
  std::mt19937_64 rng(seed);
  apply(since, since.empty() ? 0 : rng() % since.size(), rng);
}

}  // namespace sluice::crash
