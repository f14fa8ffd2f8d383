// SPDX-License-Identifier: Apache-2.0
// See order/notes.h: the area, and what is noted in it.
#include "order/notes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "attach.h"
#include "sys.h"

namespace sluice::order {

constinit order_state durable;

namespace {

constexpr unsigned pending_fds = 4096;
constinit std::atomic<std::uint64_t> pending[pending_fds / 64];  // a fork child has its own

// By fd, the order_key() of a regular file, while the fd's entry says that its inode is known.
constexpr unsigned known_fds = 4096;
constinit std::atomic<std::uint64_t> known_key[known_fds];

constexpr int by_itself = O_SYNC | O_DSYNC, past_the_log = O_DIRECT | by_itself;
constexpr std::uint64_t most_slack = 1u << 20;  // bytes noted besides those that were written

// Does `note` to the inode's place; without one the daemon has no baseline and nothing is owed.
template <class Note>
void note_file(file_now const& f, Note&& note) {
  bool const is_noted =
      f.key != abi::no_key && abi::note_inode(abi::set_of(*durable.area, f.key), f.key, note);
  if (!is_noted) count(abi::order_count::unnoted);
}

// A change of what the file holds, after the call that made it.
template <class Note>
void note_change(file_now const& f, Note&& note) {
  if (!was_unwatched() && is_watched(f)) note_file(f, note);
}

unsigned entry_now(int fd) { return self.is_vfork_child ? ask_fd(fd, 0) : entry_of_fd(fd); }

bool may_know(int fd) {
  return fd >= 0 && static_cast<unsigned>(fd) < known_fds && may_touch_table();
}

bool swap_entry(int fd, unsigned from, unsigned to) {
  auto seen = static_cast<fd_entry>(from);
  auto& entry = stage.mine->entry_of(static_cast<unsigned>(fd));
  return entry.compare_exchange_strong(seen, static_cast<fd_entry>(to));
}

// Device and inode of a regular file that was written by this fd before: no call is made.
bool recall(int fd, file_now& to) {
  if (!may_know(fd) || (peek_fd(fd) & entry_inode_known) == 0) return false;
  std::uint64_t const key = known_key[fd].load(std::memory_order_acquire);
  if (key == abi::no_key || (peek_fd(fd) & entry_inode_known) == 0) return false;
  to.device = durable.area->head.device[(key >> 56) - 1].load(std::memory_order_relaxed);
  to.inode = key & ((std::uint64_t{1} << 56) - 1);
  to.mode = S_IFREG;
  to.key = key;
  return true;
}

// The kernel is about to be asked for the inode. Whatever gives the number to another file writes
// its entry anew: what was asked for before that is not kept.
struct inode_question {
  explicit inode_question(int of)
      : fd(of), entry(peek_fd(of)), asked(entry | entry_inode_asked), before(known_key[of].load()) {
    may_keep = entry != entry_unknown && (entry == asked || swap_entry(fd, entry, asked));
  }
  // With `now` as its entry.
  bool keep(std::uint64_t key, unsigned now) {
    return may_keep && key != abi::no_key && known_key[fd].compare_exchange_strong(before, key) &&
           swap_entry(fd, asked, (now & ~entry_inode_asked) | entry_inode_known);
  }

  int fd;
  unsigned entry, asked;
  std::uint64_t before;
  bool may_keep;
};

// The same from the kernel, and kept.
bool look_and_remember(int fd, file_now& to) {
  inode_question q(fd);
  if (!see(fd, to) || !S_ISREG(to.mode)) return false;
  q.keep(to.key, q.asked);
  return true;
}

std::int64_t position_of(int fd) { return sys::call(SYS_lseek, fd, 0, 1 /* SEEK_CUR */); }

}  // namespace

bool look_at_written(int fd, file_now& to) {
  if (!may_be_durable(fd)) return false;
  if (recall(fd, to)) return true;
  return may_know(fd) ? look_and_remember(fd, to) : see(fd, to) && S_ISREG(to.mode);
}

bool sees() {
  if (stage.active.load(std::memory_order_relaxed) != nullptr) return true;
  await_tries();
  if (stage.active.load(std::memory_order_relaxed) != nullptr) return true;
  durable.area->head.blind.fetch_or(1u << 31);
  return false;
}

static bool is_in(unsigned entry, std::uint32_t targets) {
  unsigned const target = (entry & entry_kind_mask) - entry_first_target;
  return target < core::max_targets && (targets >> target & 1) != 0;
}

// The first use of a descriptor asks where it lies, and so what it is: its writes need not.
unsigned verify_durable(int fd, unsigned path_class, unsigned said) {
  sys::file_identity file;
  if (!may_know(fd)) {
    unsigned const entry = ask_fd(fd, path_class, said, file);
    return set_fd(fd, entry), entry;
  }
  inode_question q(fd);
  unsigned const entry = ask_fd(fd, path_class, said, file);
  bool const is_noted = is_in(entry, durable.targets) && S_ISREG(file.mode);
  std::uint64_t const key =
      is_noted ? abi::order_key(*durable.area, file.device, file.inode) : abi::no_key;
  if (!q.keep(key, entry)) set_fd(fd, entry);
  return entry;
}

bool is_durable(int fd) { return sees() && is_in(entry_now(fd), durable.targets); }

bool may_be_durable(int fd) {
  unsigned const entry = may_touch_table() ? peek_fd(fd) : entry_unknown;
  bool const is_newborn = (entry & entry_unverified) != 0 && is_in(entry, durable.targets);
  return is_newborn ? sees() : is_durable(fd);
}

bool is_ordered(int fd) {
  return durable.ordered != 0 && sees() && is_in(entry_now(fd), durable.ordered);
}

static std::uint32_t stream_of_thread() {
  constexpr long get_name = 16;  // PR_GET_NAME
  std::uint64_t name[2] = {};
  sys::call(SYS_prctl, get_name, sys::as_long(name));
  std::uint64_t const h = (name[0] ^ name[1] * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
  return abi::stream_thread + static_cast<std::uint32_t>(h >> 34);
}

std::uint32_t stream_of(int fd) {
  abi::order_header const& h = durable.area->head;
  if ((h.job_streams | h.thread_streams | h.path_streams) == 0) return abi::stream_process;
  unsigned const target = (entry_now(fd) & entry_kind_mask) - entry_first_target;
  std::uint32_t const bit = target < core::max_targets ? 1u << target : 0;
  if ((h.job_streams & bit) != 0) return abi::stream_job;
  if ((h.path_streams & bit) != 0) return abi::stream_path + target;
  return (h.thread_streams & bit) != 0 ? stream_of_thread() : abi::stream_process;
}

bool see(int dir, char const* path, int flags, file_now& to) {
  struct statx seen;
  long const r = sys::call(SYS_statx, dir, sys::as_long(path), flags | sys::at_no_automount,
                           STATX_BASIC_STATS | STATX_BTIME, sys::as_long(&seen));
  if (sys::failed(r)) return false;
  to.device = static_cast<std::uint64_t>(seen.stx_dev_major) << 32 | seen.stx_dev_minor;
  to.inode = seen.stx_ino;
  to.size = seen.stx_size;
  to.mode = seen.stx_mode;
  to.birth = (seen.stx_mask & STATX_BTIME) == 0
                 ? 0
                 : abi::birth_word(seen.stx_ino, seen.stx_btime.tv_sec, seen.stx_btime.tv_nsec);
  to.is_written = seen.stx_ctime.tv_sec == seen.stx_mtime.tv_sec &&
                  seen.stx_ctime.tv_nsec == seen.stx_mtime.tv_nsec;
  to.key = abi::order_key(*durable.area, to.device, to.inode);
  to.word =
      abi::lone_word({seen.stx_size, seen.stx_mode, seen.stx_uid, seen.stx_gid, seen.stx_nlink});
  return true;
}

bool see(int fd, file_now& to) { return see(fd, "", sys::at_empty_path, to); }

bool see_open(int fd, file_now& to, long& flags) {
  flags = sys::call(SYS_fcntl, fd, F_GETFL);
  return !sys::failed(flags) && (flags & O_PATH) == 0 && see(fd, to) &&
         (S_ISREG(to.mode) || S_ISDIR(to.mode));
}

std::uint64_t flags_of(file_now const& f) {
  abi::order_area& a = *durable.area;
  return f.key == abi::no_key ? 0 : abi::state_of(a, abi::set_of(a, f.key), f.key);
}

bool is_logged(file_now const& f) { return (flags_of(f) & abi::order_logged) != 0; }

bool is_watched(file_now const& f) { return (flags_of(f) & abi::order_watched) != 0; }

bool is_logged(int fd) {
  file_now f;
  return sees() && see(fd, f) && is_logged(f);
}

// The daemon takes it for an old one from then on, and has no baseline of it.
bool take_first_sync(file_now const& f) {
  if (f.birth == 0) return false;
  std::uint64_t const once = f.birth & ~std::uint64_t{1};
  bool is_new = false;
  abi::order_set& s = abi::set_of(*durable.area, f.key);
  abi::each_way(s, f.key, [&](unsigned w) {
    std::uint64_t seen = s.way[w].created.load();
    if (seen != f.birth && seen != once) return;
    is_new |= s.way[w].created.compare_exchange_strong(seen, seen == once ? 0 : once);
  });
  return is_new;
}

change change_of(file_now const& f) {
  change found = change::bytes;
  abi::order_set& s = abi::set_of(*durable.area, f.key);
  abi::each_way(s, f.key, [&](unsigned w) {
    std::uint64_t const known = s.way[w].daemon_word.load();
    if (known == f.word || found == change::other) return;
    // Of what the journal never takes it has no word.
    bool const is_size = known == 0 || abi::differ_in_size(known, f.word);
    found = is_size ? change::size : change::other;
  });
  return found;
}

void note_bytes(file_now const& f, std::uint64_t from, std::uint64_t to) {
  core::page_range const r = core::pages_of(from, to);
  if (r.pages == 0) return;
  note_change(f, [&](abi::order_inode& i) {
    if (!core::fits(r) || !core::add(i.written, r)) i.state.fetch_or(abi::order_whole);
  });
}

void note_whole(file_now const& f) {
  note_change(f, [](abi::order_inode& i) { i.state.fetch_or(abi::order_whole); });
}

void note_cut(file_now const& f, std::uint64_t size) {
  note_change(f, [&](abi::order_inode& i) {
    std::uint64_t seen = i.cut.load();
    while ((seen == 0 || size + 1 < seen) && !i.cut.compare_exchange_weak(seen, size + 1)) {
    }
  });
}

void note_moved(file_now const& f) {
  if (f.key == abi::no_key) return;
  abi::order_set& s = abi::set_of(*durable.area, f.key);
  abi::each_way(s, f.key, [&](unsigned w) {
    s.way[w].created.store(0);
    s.way[w].state.fetch_or(abi::order_moved);
  });
}

static void store_given_up(char const* path, std::uint64_t changed_ns) {
  std::string_view name = path;
  while (name.ends_with('/')) name.remove_suffix(1);
  name.remove_prefix(name.rfind('/') + 1);
  std::atomic<std::uint64_t>& last = abi::given_up(*durable.area, name);
  std::uint64_t seen = last.load();
  while (seen < changed_ns && !last.compare_exchange_weak(seen, changed_ns)) {
  }
}

bool note_given_up(int dir, char const* path) {
  struct statx x;
  if (is_unwatched()) return false;
  if (!sees() || !can_read_text(path)) return true;
  long const r = sys::call(SYS_statx, dir, sys::as_long(path), AT_SYMLINK_NOFOLLOW, STATX_CTIME,
                           sys::as_long(&x));
  if (!sys::failed(r)) store_given_up(path, sys::ns_of(x.stx_ctime.tv_sec, x.stx_ctime.tv_nsec));
  return true;
}

// Its ctime is not to be had any more, so the time that is not before it.
void was_given_up(char const* path) {
  timespec t;
  if (was_unwatched() || !sees() || !can_read_text(path)) return;
  if (sys::failed(sys::call(SYS_clock_gettime, CLOCK_REALTIME, sys::as_long(&t)))) return;
  store_given_up(path, sys::ns_of(t.tv_sec, t.tv_nsec));
}

void note_created(file_now const& f) {
  if (f.birth == 0) return;
  note_file(f, [&](abi::order_inode& i) { i.created.store(f.birth); });
}

bool writes_past_the_log(long flags) {
  return (flags & past_the_log) != 0 && (flags & O_ACCMODE) != O_RDONLY;
}

bool may_be_logged(int fd) {
  file_now f;
  if (!is_durable(fd) || !see(fd, f) || !S_ISREG(f.mode)) return false;
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  if (sys::failed(flags) || (flags & past_the_log) != 0) return false;
  return f.key != abi::no_key && (flags_of(f) & abi::order_bypass) == 0;
}

void bypass_if_synced(int fd) {
  file_now f;
  if (!is_durable(fd) || !see(fd, f) || !S_ISREG(f.mode)) return;
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  if (sys::failed(flags) || (flags & by_itself) == 0) return;
  bypass(fd, f);
  count(abi::order_count::own_sync);
}

// A write that the journal does not see, by the descriptor's flags or its own: bypassed. False: it
// is none.
static bool bypass_write(write_view& v, int fd, long flags) {
  int const syncs = v.rwf & (rwf_dsync | rwf_sync);
  if ((flags & past_the_log) == 0 && syncs == 0) return false;
  if (v.file.birth == 0) see(fd, v.file);  // a mark has it
  bypass(fd, v.file);
  v.is_synced = ((flags & by_itself) | syncs) != 0;
  if (v.is_synced) count(abi::order_count::own_sync);
  return true;
}

write_view before_write(int fd, std::int64_t at, int rwf) {
  write_view v = unnoted_write(at, rwf);
  v.is_unwatched = false;
  if (!look_at_written(fd, v.file)) return v;
  v.is_unwatched = !is_watched(v.file);
  if (v.is_unwatched) return v;
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  if (sys::failed(flags) || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0) return v;
  v.ours = true;
  v.appends = ((flags & O_APPEND) != 0 && (rwf & rwf_noappend) == 0) || (rwf & rwf_append) != 0;
  bypass_write(v, fd, flags);
  if (v.appends && v.file.birth == 0) see(fd, v.file);  // where it ends
  if (!v.appends && at < 0) v.position = position_of(fd);
  return v;
}

// It was not watched before the write. What the kernel synced by itself is to be there also when
// the journal has what was there before.
static void note_late(write_view& v, int fd) {
  if (was_unwatched()) return;
  bool const is_known = v.file.inode != 0;
  if (!is_known && !look_at_written(fd, v.file)) return;
  if (!S_ISREG(v.file.mode) || !is_watched(v.file)) return;
  long const flags = sys::call(SYS_fcntl, fd, F_GETFL);
  if (sys::failed(flags) || !bypass_write(v, fd, flags)) note_whole(v.file);
}

// Where the bytes lie is known for pwrite. At the file position, and at the end of the file, others
// may have come between our two looks: then what lies between the looks was written by somebody.
void after_write(write_view& v, int fd, std::int64_t moved) {
  if (v.is_unwatched && moved != 0) note_late(v, fd);
  if (!v.ours) return;
  if (moved <= 0) {
    if (moved < 0 && errno == EIO) note_whole(v.file);
    return;
  }
  auto const n = static_cast<std::uint64_t>(moved);
  if (v.at >= 0 && !v.appends)
    return note_bytes(v.file, static_cast<std::uint64_t>(v.at),
                      static_cast<std::uint64_t>(v.at) + n);
  std::uint64_t from = v.file.size, to = 0;
  if (v.appends) {
    file_now now;
    if (see(fd, now)) to = now.size;
  } else {
    std::int64_t const position = position_of(fd);
    from = static_cast<std::uint64_t>(v.position);
    to = position < 0 || v.position < 0 ? 0 : static_cast<std::uint64_t>(position);
  }
  if (to < from || to - from < n || to - from > n + most_slack)
    note_whole(v.file);
  else
    note_bytes(v.file, from, to);
}

void note_pending(int fd, bool is_pending) {
  file_now f;
  if (fd < 0 || self.is_vfork_child) return;
  if (static_cast<unsigned>(fd) >= pending_fds) {
    if (is_pending && see(fd, f)) bypass(fd, f);
    return;
  }
  std::uint64_t const bit = std::uint64_t{1} << (fd % 64);
  std::atomic<std::uint64_t>& word = pending[fd / 64];
  if (((word.load(std::memory_order_relaxed) & bit) != 0) == is_pending) return;
  if (is_pending)
    word.fetch_or(bit);
  else
    word.fetch_and(~bit);
}

bool is_pending(int fd) {
  return fd >= 0 && static_cast<unsigned>(fd) < pending_fds &&
         (pending[fd / 64].load() >> (fd % 64) & 1) != 0;
}

template <class Each>
static void each_pending(Each&& each) {
  for (unsigned w = 0; w < pending_fds / 64; ++w)
    for (std::uint64_t left = pending[w].load(); left != 0; left &= left - 1) {
      int const fd = static_cast<int>(w * 64) + __builtin_ctzll(left);
      file_now f;
      if (is_durable(fd) && see(fd, f) && S_ISREG(f.mode)) each(fd, f);
    }
}

void pending_flushed() {
  each_pending([](int, file_now const& f) { note_whole(f); });
}

void leave_pending() {
  if (!self.is_vfork_child) each_pending([](int fd, file_now const& f) { bypass(fd, f); });
}

}  // namespace sluice::order
