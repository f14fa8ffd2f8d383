// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/ground.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "base/error.h"
#include "base/quantity.h"

namespace sluice::calibrate {

namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t piece_bytes = 4 * mib;  // of filling
constexpr std::uint64_t least_inodes = 10'000;

using aligned_bytes = std::unique_ptr<void, void (*)(void*)>;

aligned_bytes aligned(std::size_t bytes) { return {std::aligned_alloc(4096, bytes), std::free}; }

struct statvfs space_of(int dir, std::string const& path) {
  struct statvfs fs = {};
  if (fstatvfs(dir, &fs) != 0)
    throw sluice_error(
        fmt::format("{}: cannot be asked for its space: {}", path, std::strerror(errno)));
  return fs;
}

room room_of(struct statvfs const& fs) {
  room r;
  r.free_bytes = std::uint64_t{fs.f_bavail} * fs.f_frsize;
  r.all_bytes = std::uint64_t{fs.f_blocks} * fs.f_frsize;
  return r;
}

std::string reopened(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

void check_space(room const& r, struct statvfs const& fs, std::string const& path) {
  if ((fs.f_flag & ST_RDONLY) != 0)
    throw usage_error(fmt::format("{}: is read-only, and a calibration writes", path));
  if (fs.f_files != 0 && fs.f_favail < least_inodes)
    throw usage_error(
        fmt::format("{}: only {} more files fit, {} are needed", path, fs.f_favail, least_inodes));
  if (file_bytes_of(r) == 0)
    throw usage_error(fmt::format(
        "{}: {} are free; a file of {} and as much for new ones are needed, and {} stay free for "
        "others",
        path, size_words(r.free_bytes),
        size_words(std::max<std::uint64_t>(r.wanted_bytes, least_file_bytes)),
        size_words(margin_of(r))));
}

}  // namespace

std::uint64_t margin_of(room const& r) { return std::max(16 * mib, r.all_bytes / 20); }

std::uint64_t file_bytes_of(room const& r) {
  std::uint64_t const margin = margin_of(r);
  std::uint64_t const usable = r.free_bytes > margin ? (r.free_bytes - margin) / 2 : 0;
  std::uint64_t const useful =
      r.wanted_bytes != 0 ? r.wanted_bytes : (r.is_short ? 128 : 1024) * mib;
  if (r.wanted_bytes > usable || usable < least_file_bytes) return 0;
  return std::min(useful, usable) / piece_bytes * piece_bytes;
}

ground::ground(std::string const& path, std::uint64_t wanted_bytes, bool is_short)
    : path_(path), dir_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!dir_) throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  auto const fs = space_of(dir_.get(), path);
  room r = room_of(fs);
  r.wanted_bytes = wanted_bytes;
  r.is_short = is_short;
  check_space(r, fs, path);
  margin_ = margin_of(r);
  can_.is_short = is_short;
  can_.file_bytes = file_bytes_of(r);
  file_ = descriptor(open_new(false));
  if (!file_ && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL)) {
    home_.emplace(path, directory_name);
    file_ = descriptor(open_new(false));
  }
  if (!file_)
    throw usage_error(fmt::format("{}: no file can be made there: {}", path, std::strerror(errno)));
  look_at_direct();
}

void ground::look_at_direct() {
  aligned_bytes const text = aligned(8192);
  if (ftruncate(file_.get(), 8192) != 0) return;
  descriptor const fd(open_file(true));
  can_.direct = fd && pread(fd.get(), text.get(), 4096, 0) == 4096;
  can_.direct_sectors = can_.direct && pread(fd.get(), text.get(), 512, 512) == 512;
}

/// Tried, for no list of file systems knows: a page that the cache lacks is read, and written.
bool ground::counts_device_work() const {
  constexpr long page = 4096, page_blocks = page / 512;
  descriptor const fd(open_file(false));
  aligned_bytes const text = aligned(page);
  rusage before = {}, after = {};
  if (!fd || fdatasync(fd.get()) != 0 || posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) != 0)
    return false;
  getrusage(RUSAGE_THREAD, &before);
  if (pread(fd.get(), text.get(), page, 0) != page) return false;
  if (pwrite(fd.get(), text.get(), page, 0) != page) return false;
  getrusage(RUSAGE_THREAD, &after);
  return after.ru_inblock - before.ru_inblock >= page_blocks &&
         after.ru_oublock - before.ru_oublock >= page_blocks;
}

int ground::open_file(bool direct) const {
  return open(reopened(file_.get()).c_str(), O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0));
}

int ground::open_new(bool direct) const {
  int const flags = O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0);
  if (!home_) return openat(dir_.get(), ".", flags | O_TMPFILE | O_EXCL, 0600);
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return -1;
  std::string const name = fmt::format("{:x}", number);
  int const fd = openat(home_->fd(), name.c_str(), flags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd >= 0) unlinkat(home_->fd(), name.c_str(), 0);
  return fd;
}

std::uint64_t ground::new_bytes(unsigned threads) const {
  std::uint64_t const each = can_.file_bytes / std::max(1U, threads) / piece_bytes * piece_bytes;
  return std::clamp(each, piece_bytes, 16 * piece_bytes);
}

void ground::fill(std::function<bool(std::uint64_t)> const& go_on) {
  aligned_bytes const text = aligned(piece_bytes);
  std::mt19937_64 random(std::random_device{}());
  auto* const words = static_cast<std::uint64_t*>(text.get());
  for (std::size_t i = 0; i < piece_bytes / sizeof *words; ++i) words[i] = random();
  descriptor const fd(open_file(can_.direct));
  for (std::uint64_t at = 0; at < can_.file_bytes && go_on(at); at += piece_bytes) {
    words[0] = at;  // no two pieces are the same
    ssize_t const n = pwrite(fd.get(), text.get(), piece_bytes, static_cast<off_t>(at));
    if (n == static_cast<ssize_t>(piece_bytes)) continue;
    throw sluice_error(fmt::format("{}: cannot be written: {}", path_,
                                   n < 0 ? std::strerror(errno) : "there is no more space"));
  }
  if (fdatasync(fd.get()) != 0)
    throw sluice_error(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

void ground::check_room() const {
  room const r = room_of(space_of(dir_.get(), path_));
  if (r.free_bytes < margin_)
    throw sluice_error(fmt::format(
        "{}: {} are free now, less than the {} that are to stay free; what was measured is kept, "
        "run it again when there is room",
        path_, size_words(r.free_bytes), size_words(margin_)));
}

void ground::on_directory(listener told) {
  told_ = std::move(told);
  if (home_) announce(*home_);
}

void ground::announce(own_directory const& made) const {
  struct stat st = {};
  if (told_ && fstat(made.fd(), &st) == 0) told_(made.path(), st.st_ino);
}

}  // namespace sluice::calibrate
