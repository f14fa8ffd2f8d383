// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/requests.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace sluice::calibrate {

namespace {

constexpr std::uint64_t off_page = 512;         // where unaligned requests begin in a page
constexpr std::uint64_t batch_bytes = 1 << 20;  // of buffered writes between two syncs
constexpr unsigned most_batch = 16;

std::uint64_t random_number() {
  std::uint64_t n = 0;
  if (getrandom(&n, sizeof n, 0) != sizeof n) n = 88172645463325252;
  return n;
}

}  // namespace

/// A full cycle of a linear congruence modulo the next power of two; what lies outside is skipped.
shuffle::shuffle(std::uint64_t count, std::uint64_t seed)
    : count_(std::max<std::uint64_t>(1, count)),
      mask_(std::bit_ceil(count_) - 1),
      at_(seed & mask_),
      factor_(((seed >> 20) & ~std::uint64_t{7}) | 5),
      step_((seed >> 8) | 1) {}

std::uint64_t shuffle::next() {
  do at_ = (at_ * factor_ + step_) & mask_;
  while (at_ >= count_);
  return at_;
}

requests::requests(ground const& where, work const& what, unsigned thread, unsigned threads,
                   char* text)
    : where_(where),
      what_(what),
      text_(text),
      fd_(what.kind == writing::overwrite ? where.open_file(what.by == cache::direct)
                                          : where.open_new(what.by == cache::direct)),
      stride_((what.bytes + page_bytes - 1) / page_bytes * page_bytes +
              (what.is_aligned ? 0 : page_bytes)),
      places_(std::max<std::uint64_t>(1, where.can().file_bytes / stride_)),
      shift_(what.is_aligned ? 0 : off_page),
      order_(places_, random_number()) {
  if (!fd_) error_ = errno;
  if (is_batched())
    batch_ =
        static_cast<unsigned>(std::clamp<std::uint64_t>(batch_bytes / what.bytes, 1, most_batch));
  most_grown_ = std::max(what.bytes, where.new_bytes(threads));
  if (what.how == motion::sequential) {
    // Each thread goes through a part of its own.
    places_ = std::max<std::uint64_t>(1, places_ / threads);
    first_ = places_ * thread;
  } else {
    posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_RANDOM);
  }
}

/// A short transfer has no errno: a file that ends too early.
int requests::fail() const { return errno != 0 ? errno : EIO; }

std::uint64_t requests::next_place() {
  std::uint64_t const place =
      what_.how == motion::sequential ? first_ + turn_++ % places_ : order_.next();
  return place * stride_ + shift_;
}

bool requests::is_batched() const {
  return what_.op == "write" && what_.by == cache::cold && what_.kind != writing::new_file;
}

int requests::run() {
  for (unsigned i = 0; i < batch_; ++i)
    if (int const why = one(); why != 0) return why;
  return is_batched() ? settle() : 0;
}

int requests::one() {
  errno = 0;
  if (what_.op == "read") return read_once();
  if (what_.kind == writing::append) return grow();
  if (what_.kind == writing::new_file) return make_new();
  return write_once();
}

int requests::read_once() {
  auto const at = static_cast<off_t>(next_place());
  if (pread(fd_.get(), text_, what_.bytes, at) != static_cast<ssize_t>(what_.bytes)) return fail();
  if (what_.by == cache::cold)
    posix_fadvise(fd_.get(), at & ~off_t{page_bytes - 1}, static_cast<off_t>(stride_),
                  POSIX_FADV_DONTNEED);
  return 0;
}

int requests::write_once() {
  std::uint64_t const at = next_place();
  std::memcpy(text_, &at, sizeof at);  // no two are the same
  if (pwrite(fd_.get(), text_, what_.bytes, static_cast<off_t>(at)) !=
      static_cast<ssize_t>(what_.bytes))
    return fail();
  if (is_batched()) dirty_.push_back(at);
  return 0;
}

/// Afterwards the dirty places are on the device, and out of the cache.
int requests::settle() {
  if (fdatasync(fd_.get()) != 0) return fail();
  for (std::uint64_t const at : dirty_)
    posix_fadvise(fd_.get(), static_cast<off_t>(at & ~(page_bytes - 1)),
                  static_cast<off_t>(stride_), POSIX_FADV_DONTNEED);
  dirty_.clear();
  return 0;
}

int requests::grow() {
  if (grown_ + what_.bytes > most_grown_) {
    if (ftruncate(fd_.get(), 0) != 0) return fail();
    grown_ = 0;
  }
  if (pwrite(fd_.get(), text_, what_.bytes, static_cast<off_t>(grown_)) !=
      static_cast<ssize_t>(what_.bytes))
    return fail();
  grown_ += what_.bytes;
  return 0;
}

int requests::make_new() {
  descriptor const fresh(where_.open_new(what_.by == cache::direct));
  if (!fresh) return fail();
  if (pwrite(fresh.get(), text_, what_.bytes, 0) != static_cast<ssize_t>(what_.bytes))
    return fail();
  return what_.by == cache::direct || fdatasync(fresh.get()) == 0 ? 0 : fail();
}

}  // namespace sluice::calibrate
