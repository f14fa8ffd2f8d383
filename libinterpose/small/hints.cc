// SPDX-License-Identifier: Apache-2.0
// Advice to the kernel for programs that write or read small pieces (core/ahead.h): what they are
// about to need is read while they do something else. The program's own calls are made as ever,
// and the bytes that are read are charged to its job. Where the job cannot pay at once, where the
// cache has the bytes already or the disk has none (holes, and what was only allocated), and where
// there is no cache or no disk, no advice is given. These bodies stand before libc only in a job
// that asked for hints.
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/ahead.h"
#include "extras.h"
#include "meter.h"
#include "place.h"
#include "rows.h"
#include "sys.h"

namespace sluice::small {

// The calls that are watched: HINTED(symbol).
#define HINTED_CALLS \
  HINTED(write)      \
  HINTED(pwrite)     \
  HINTED(writev)     \
  HINTED(pwritev)    \
  HINTED(pwritev2)   \
  HINTED(pread)      \
  HINTED(__pread_chk)

namespace next {
#define HINTED(sym) static constinit decltype(real::sym) sym = nullptr;
HINTED_CALLS
#undef HINTED
}  // namespace next

namespace {

/// What is known of one descriptor. Who finds another one in it, or finds it taken, goes without: a
/// thread that is killed while it has it only ends the hints of these descriptors.
struct watch {
  std::atomic<bool> is_taken;
  int fd_after;  // the number after its own; 0: nobody's yet
  core::overwrites writes;
  core::strided_reads reads;
};

constexpr unsigned watches = 64;
watch* watched = nullptr;
constinit std::uint32_t hinted_targets = 0;

bool may_hint() { return !self.is_vfork_child && may_ask() && !is_in_sandbox(); }

watch* take(int fd) {
  if (!in_table(fd) || peek_fd(fd) == entry_outside || !may_hint()) return nullptr;
  watch& w = watched[static_cast<unsigned>(fd) % watches];
  if (w.is_taken.exchange(true, std::memory_order_acquire)) return nullptr;
  if (w.fd_after != fd + 1) w.writes = {}, w.reads = {}, w.fd_after = fd + 1;
  return &w;
}

void give(watch& w) { w.is_taken.store(false, std::memory_order_release); }

void count(abi::hint what, std::uint64_t n) {
  if (abi::segment* const s = stage.active.load(std::memory_order_relaxed); s != nullptr)
    s->hint[static_cast<unsigned>(what)].fetch_add(n, std::memory_order_relaxed);
}

bool is_hinted(int fd) {
  unsigned const kind = entry_of_fd(fd) & entry_kind_mask;
  return kind >= entry_first_target && (hinted_targets >> (kind - entry_first_target) & 1) != 0;
}

/// The cache stands before a disk, or a server. What reads past the cache would read twice, and a
/// file in memory has nothing that could be read; the kernel seals such files alone (F_GET_SEALS).
/// It is asked each time: a number becomes another file's, and F_SETFL changes its flags.
bool goes_through_the_cache(int fd) {
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  if (sys::failed(flags) || (flags & O_DIRECT) != 0) return false;
  return sys::failed(sys::call(SYS_fcntl, fd, F_GET_SEALS));
}

/// False: it is not known. The kernel counts what comes from devices alone.
bool ask_what_was_read(int fd, core::device_work& work) {
  sys::file_identity f;
  return sys::identify(fd, "", sys::at_empty_path, f) && sys::is_on_device(f.device) &&
         ask_device_work(work);
}

bool may_advise(int fd) { return is_hinted(fd) && goes_through_the_cache(fd); }

constexpr std::uint64_t unknown = ~std::uint64_t{0};

/// Bytes of its pages that the cache lacks. cachestat is of Linux 6.5: unknown before.
std::uint64_t counted_missing(int fd, core::file_span s) {
  constexpr long cachestat = 451;
  std::uint64_t const range[2] = {s.from, s.to - s.from};
  std::uint64_t cached[5] = {};
  if (sys::failed(sys::call(cachestat, fd, sys::as_long(range), sys::as_long(cached))))
    return unknown;
  std::uint64_t const first = s.from / core::ahead_page;
  std::uint64_t const pages = (s.to - 1) / core::ahead_page + 1 - first;
  return cached[0] >= pages ? 0 : (pages - cached[0]) * core::ahead_page;
}

/// The same; where it cannot be counted the last byte is asked for, which only a descriptor that
/// may read can be.
std::uint64_t missing(int fd, core::file_span s) {
  if (std::uint64_t const bytes = counted_missing(fd, s); bytes != unknown) return bytes;
  char last;
  iovec const one = {&last, 1};
  long const n =
      sys::call(SYS_preadv2, fd, sys::as_long(&one), 1, static_cast<long>(s.to - 1), 0, rwf_nowait);
  return n == 1 ? 0 : s.to - s.from;
}

/// A question of FS_IOC_FIEMAP (struct fiemap), with room for a few extents of the answer.
struct extents {
  static constexpr unsigned most = 8;
  std::uint64_t from, bytes;
  std::uint32_t flags = 0, count = 0, room = most, reserved = 0;
  fiemap_extent extent[most] = {};
};
static_assert(offsetof(extents, extent) == sizeof(fiemap));

/// Bytes of its pages that the cache lacks and the disk has: the rest is filled with zeros. Where
/// the file system does not say what lies on the disk, all of it does. It is asked once, unless the
/// span is in many extents, and without FIEMAP_FLAG_SYNC: nothing is written out for it. It takes
/// the file's lock, as the program's own write does.
std::uint64_t to_be_read(int fd, core::file_span s) {
  // What waits for its place on the disk is in the cache.
  constexpr std::uint32_t nowhere = FIEMAP_EXTENT_UNWRITTEN | FIEMAP_EXTENT_DELALLOC;
  std::uint64_t sum = 0;
  while (!s.is_empty()) {
    extents told = {.from = s.from, .bytes = s.to - s.from};
    if (sys::failed(sys::call(SYS_ioctl, fd, FS_IOC_FIEMAP, sys::as_long(&told)))) break;
    unsigned const n = std::min(told.count, extents::most);
    std::uint64_t end = s.from;
    for (unsigned i = 0; i < n; ++i) {
      fiemap_extent const& e = told.extent[i];
      end = e.fe_logical + e.fe_length;
      core::file_span const part = {std::max<std::uint64_t>(e.fe_logical, s.from),
                                    std::min(end, s.to)};
      if (!part.is_empty() && (e.fe_flags & nowhere) == 0) sum += missing(fd, part);
    }
    if (n < extents::most) return sum;
    if (end <= s.from) break;
    s.from = end;
  }
  return s.is_empty() ? sum : sum + missing(fd, s);
}

/// `lacks`: of its pages, in bytes; `bytes`: to be paid.
core::ahead_end advise(int fd, core::file_span s, std::uint64_t lacks, std::uint64_t bytes) {
  if (bytes == 0) {
    count(abi::hint::cached, 1);
    return core::ahead_end::was_cached;
  }
  if (!pay_ahead(fd, bytes)) {
    count(abi::hint::unpaid, 1);
    return core::ahead_end::unpaid;
  }
  sys::call(SYS_fadvise64, fd, static_cast<long>(s.from), static_cast<long>(s.to - s.from),
            POSIX_FADV_WILLNEED);
  count(abi::hint::advised, 1);
  count(abi::hint::advised_bytes, bytes);
  // Pages that are being read count. Where nobody counts it is taken to have helped.
  std::uint64_t const left = counted_missing(fd, s);
  bool const stays_away = left != unknown && left >= lacks;
  return stays_away ? core::ahead_end::stays_away : core::ahead_end::has_come;
}

core::ahead_end advise_writer(int fd, core::file_span s) {
  std::uint64_t const lacks = missing(fd, s);
  // Extents may share a page.
  return advise(fd, s, lacks, lacks == 0 ? 0 : std::min(lacks, to_be_read(fd, s)));
}

/// A reader takes no lock of the file, which any of its writers can hold for as long as he likes:
/// where its extents lie is not asked for. That a disk had nothing of it shows afterwards.
core::ahead_end advise_reader(int fd, core::file_span s) {
  std::uint64_t const lacks = missing(fd, s);
  core::device_work before, after;
  bool const is_known = lacks != 0 && ask_what_was_read(fd, before);
  core::ahead_end const end = advise(fd, s, lacks, lacks);
  bool const had_nothing =
      is_known && ask_device_work(after) && after.read_bytes == before.read_bytes;
  return end == core::ahead_end::has_come && had_nothing ? core::ahead_end::stays_away : end;
}

/// `at`: where the next byte goes; -1: where the file stands.
[[gnu::noinline]] void look_at_writes(int fd, core::overwrites& w, std::int64_t at) {
  if (!may_advise(fd)) return w.rest();
  if (at < 0) at = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  if (at < 0) return w.rest();
  // As this client knows it: a server would be asked, and on NFS written to before that.
  std::uint64_t const size = sys::size_of(fd, sys::at_do_not_sync);
  core::file_span const s = w.look(static_cast<std::uint64_t>(at), size);
  if (!s.is_empty()) w.came_of_it(advise_writer(fd, s));
}

[[gnu::noinline]] void look_at_reads(int fd, core::strided_reads& r,
                                     core::strided_reads::advice const& a) {
  if (!may_advise(fd)) return r.rest();
  for (unsigned i = 0; i < a.count; ++i) r.came_of_it(advise_reader(fd, a.span[i]));
}

/// `at` < 0: where the file stood.
ssize_t written(int fd, std::int64_t at, ssize_t n) {
  if (n <= 0) return n;
  if (watch* const w = take(fd)) {
    if (w->writes.wrote(at, static_cast<std::uint64_t>(n)))
      look_at_writes(fd, w->writes, at < 0 ? -1 : at + n);
    give(*w);
  }
  return n;
}

ssize_t has_read(int fd, std::int64_t at, ssize_t n) {
  if (n <= 0) return n;
  if (watch* const w = take(fd)) {
    auto const a = w->reads.read(at, static_cast<std::uint64_t>(n));
    if (a.count != 0) look_at_reads(fd, w->reads, a);
    give(*w);
  }
  return n;
}

}  // namespace

namespace body {

namespace {

ssize_t write(int fd, void const* from, size_t size) {
  return written(fd, -1, next::write(fd, from, size));
}

ssize_t pwrite(int fd, void const* from, size_t size, off_t at) {
  return written(fd, at, next::pwrite(fd, from, size, at));
}

ssize_t writev(int fd, iovec const* parts, int count) {
  return written(fd, -1, next::writev(fd, parts, count));
}

ssize_t pwritev(int fd, iovec const* parts, int count, off_t at) {
  return written(fd, at, next::pwritev(fd, parts, count, at));
}

ssize_t pwritev2(int fd, iovec const* parts, int count, off_t at, int flags) {
  return written(fd, at, next::pwritev2(fd, parts, count, at, flags));
}

ssize_t pread(int fd, void* to, size_t size, off_t at) {
  return has_read(fd, at, next::pread(fd, to, size, at));
}

ssize_t __pread_chk(int fd, void* to, size_t size, off_t at, size_t room) {
  return has_read(fd, at, next::__pread_chk(fd, to, size, at, room));
}

}  // namespace

}  // namespace body

namespace {

bool begin(char*) {
  long const at =
      sys::map(sizeof(watch) * watches, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (sys::failed(at)) return false;
  watched = reinterpret_cast<watch*>(at);
  hinted_targets = stage.active.load(std::memory_order_relaxed)->head.hinted_targets;
  return hinted_targets != 0;
}

void stand_before_libc() {
#define HINTED(sym) STAND_BEFORE_REAL(sym)
  HINTED_CALLS
#undef HINTED
}

}  // namespace

alignas(extra) constinit extra const hooks = {.beside = abi::hints_beside,
                                              .private_pages = extra_pages(sizeof(watch) * watches),
                                              .begin = begin,
                                              .stand_before_libc = stand_before_libc};

}  // namespace sluice::small
