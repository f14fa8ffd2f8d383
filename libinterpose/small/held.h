// SPDX-License-Identifier: Apache-2.0
// What gather.cc (writes), reads.cc, strict.cc and leases.cc (those that need a lease) share: the
// slots of held descriptors, and what a process remembers of its descriptors. A child of fork gets
// `state` as zeros: it holds nothing.
#pragma once

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "abi/ring_area.h"
#include "clock.h"
#include "core/gathering.h"
#include "extras.h"
#include "place.h"
#include "plan.h"

namespace sluice::gather {

inline constexpr unsigned slots = 64;
inline constexpr unsigned most_fds = 4096;  // above them no descriptor is held
static_assert(most_fds <= abi::most_leased_fds);

/// For what a descriptor is held.
enum class use : std::uint8_t { gather, read, strict };
/// What needs a lease. Their rows are counted through: those of reads, then those of writes.
enum class lease_kind : std::uint8_t { read, write };
inline constexpr unsigned all_leases = abi::read_leases + abi::write_leases;

/// What is remembered of a lease that was asked for.
struct asked_lease {
  static constexpr unsigned reserved = ~0u;
  std::atomic<unsigned> row;        // plus one; 0: none; reserved: somebody is about to ask
  std::atomic<std::uint64_t> word;  // of the row, then
};

/// One held descriptor. The rest belongs to who has the lock.
struct alignas(64) slot {
  std::atomic<int> fd_after;  // the number after its own; 0: free
  core::gathered bytes;       // of one that is read: how many of the room's were taken
  char* room;                 // kept for the next one
  unsigned until_asks;        // calls until memory is looked at again
  std::atomic<std::uint32_t> lock;
  std::atomic<std::uint64_t> device, inode;
  fd_entry entry;   // as it was in the table
  std::int64_t at;  // of its first byte in the file; -1: appended
  unsigned vain;    // flushes of few writes, one after the other

  std::uint32_t room_bytes;
  use is_for;
  std::atomic<std::uint8_t> doubts;  // questions about memory in a row that helped nothing
  unsigned calls;                    // so many reads were answered, or writes accepted
                                     // (gather: when they are written out)
  std::uint64_t lease_word;          // its row, as long as the lease is held
  std::uint64_t paid_bytes;          // strict: of the ring's
  std::uint32_t holder;              // read: the keeper; strict: the house of the keepers
  std::uint32_t paused_at;           // strict: so many writes were accepted when it paused last;
                                     // gather: the coarse tick when nothing waited last
  std::atomic<unsigned> lease;       // this and the next also read without the lock
  std::atomic<std::uint32_t> paid_flushes;  // strict: of the ring's
};

struct state {
  slot of[slots];
  core::habit habit[slots];
  asked_lease asked[slots];
  std::atomic<unsigned> held;
  std::atomic<unsigned> leases_asked;
  // Small reads, or writes, in a row before a lease is asked for; 0: the least. By lease_kind.
  std::atomic<unsigned> patience[2];
  std::atomic<unsigned> standing_back;
  std::atomic<std::uint64_t> opens;               // how many there were
  std::atomic<std::uint64_t> shared_until;        // those up to this one are shared
  std::atomic<std::uint32_t> holds;               // how often one was held; plus one
  std::atomic<std::uint64_t> opening[most_fds];   // its number, twice; plus is_copied. 0: is shared
  std::atomic<std::uint32_t> known_at[most_fds];  // `holds` when it was no held file
  std::atomic<std::uint8_t> error[most_fds];      // that nobody was told of
  std::atomic<std::uint64_t> stands_at[slots];    // see flush_until(); 0: nobody waited in vain
};

inline constexpr std::uint64_t is_copied = 1;

extern state* mine __attribute__((visibility("hidden")));

/// Written once, before anything is held; a child of fork has it too.
struct settings {
  std::uint32_t written_targets, read_targets, strict_targets;  // masks; the first has the last
  abi::lease_board<abi::read_leases>* reads;
  abi::ring_area* rings;    // null: there is none
  std::uintptr_t data_low;  // the program's own image may be written from there on
  FILE* text_out;           // libc's stdout
  bool copies_by_kernel;
};

extern settings* set __attribute__((visibility("hidden")));

inline bool has_place(int fd) { return fd >= 0 && static_cast<unsigned>(fd) < most_fds; }
inline unsigned place_of(int fd) { return static_cast<unsigned>(fd) % slots; }
inline slot& slot_of(int fd) { return mine->of[place_of(fd)]; }
inline core::habit& habit_of(int fd) { return mine->habit[place_of(fd)]; }
inline bool is_held(int fd) {
  return has_place(fd) && slot_of(fd).fd_after.load(std::memory_order_acquire) == fd + 1;
}
inline bool may_look() { return mine != nullptr && !self.is_vfork_child; }
inline bool has_any() { return may_look() && mine->held.load(std::memory_order_relaxed) != 0; }

/// No signal is handled while it lives.
class undisturbed {
 public:
  undisturbed() {
    std::uint64_t const all = ~std::uint64_t{0};
    sys::call(SYS_rt_sigprocmask, SIG_SETMASK, sys::as_long(&all), sys::as_long(&before_), 8);
  }
  ~undisturbed() { sys::call(SYS_rt_sigprocmask, SIG_SETMASK, sys::as_long(&before_), 0, 8); }
  undisturbed(undisturbed const&) = delete;
  undisturbed& operator=(undisturbed const&) = delete;

 private:
  std::uint64_t before_ = 0;
};

inline constexpr std::int64_t for_ever_ns = std::int64_t{1} << 62;

/// The lock of a slot, for a thread that is undisturbed(). It is waited for until then.
class locked {
 public:
  explicit locked(std::atomic<std::uint32_t>& word, std::int64_t until_ns = for_ever_ns)
      : word_(word) {
    std::uint32_t seen = 0;
    if (word_.compare_exchange_strong(seen, 1)) return;
    while (word_.exchange(2) != 0) {
      if (until_ns != for_ever_ns && now_ns() >= until_ns) {
        has_it_ = false;
        return;
      }
      sys::futex_wait(&word_, 2, until_ns, ~0u);
    }
  }
  ~locked() {
    if (has_it_ && word_.exchange(0) == 2) sys::futex_wake(&word_, ~0u);
  }
  locked(locked const&) = delete;
  locked& operator=(locked const&) = delete;
  bool has_it() const { return has_it_; }

 private:
  std::atomic<std::uint32_t>& word_;
  bool has_it_ = true;
};

struct file {
  std::uint64_t device = 0, inode = 0;
  bool is_regular = false;
  bool has_privilege = false;  // a write takes it away, or does not: that depends on who makes it
};

inline file file_of(int fd) {
  sys::file_identity f;
  if (!sys::identify(fd, "", sys::at_empty_path, f)) return {};
  return {f.device, f.inode, S_ISREG(f.mode), (f.mode & (S_ISUID | S_ISGID)) != 0};
}

/// A file that the kernel knows by this name: no server is asked, and nothing is waited for. Before
/// Linux 5.12 none is.
bool identify_cached(place const& where, file& f);

/// A descriptor of these targets.
inline bool is_of(std::uint32_t targets, unsigned entry) {
  unsigned const kind = entry & entry_kind_mask;
  return kind >= entry_first_target && (targets >> (kind - entry_first_target) & 1) != 0;
}
/// It was opened here, and no other process has it.
inline bool is_own(int fd) { return mine->opening[fd].load() / 2 > mine->shared_until.load(); }
/// It has another number as well.
bool has_copies(int fd);
/// It stays so: no call ends it.
bool must_not_hold();
/// Another slot than `own` has gathered for this file, or holds a copy of `fd`.
bool is_held_elsewhere(slot const* own, int fd, file const& f);
/// The number is still of the file for which it was held. Else libc gave it away, and nobody saw
/// it. A file that cannot be looked at any more is taken for the same: a FUSE shows itself to its
/// own user alone, and whoever was root may write to it all the same.
bool is_still(slot const& s, int fd);
/// The program was linked with liburing or libaio, which read and write without libc: they would
/// see nothing of what waits. Or a library after us has a read or write of its own: it may change
/// the bytes, and would not see them.
bool has_other_ways();
/// With the lock: the slot holds it from now on, with room, and nothing in it. False: it cannot.
bool begin_to_hold(slot& s, int fd, file const& f, fd_entry entry, use is_for);
/// With the lock: it is not held any more. `error`: what nobody was told of, or 0.
void release(slot& s, int fd, int error);
/// False: it was not held.
bool let_go(int fd);
/// The same; some time passes until it is tried again. Whoever calls it counts why.
void end_for_a_while(int fd);
/// Memory that only this process changes, and tells us when it takes it away.
bool is_safe(void const* from, std::size_t size);
/// The same after the kernel was asked for it, once in so many times.
bool becomes_safe_rarely(slot& s, void const* from, std::size_t size);
/// The program's buffers lie where the kernel is to be asked each time (memory that libc maps and
/// unmaps). That costs about as much as the call that is saved, where no server is asked.
inline bool is_costly(slot const& s) {
  return s.doubts.load(std::memory_order_relaxed) >= core::most_doubts;
}
/// False: nothing is to be relied on at `to`.
bool copy(slot& s, char* to, void const* from, std::size_t size);
/// Why writes of it cannot wait; abi::gather::count: they can. `at`: its position, -1: the end.
abi::gather why_not_held(int fd, file& f, std::int64_t& at);

/// How much is written out.
enum class amount : std::uint8_t {
  whole_windows,  // it is full: what comes after the last multiple stays
  all,            // somebody looks: and it goes on
  all_of_late,    // the same, for it has waited long
  all_and_let_go,
  all_and_pause  // the same, and why is counted already
};
constexpr bool lets_go(amount how) { return how >= amount::all_and_let_go; }
struct sent {
  std::uint64_t bytes = 0;
  int error = 0;
};
struct flushed {
  bool was_held = false;
  fd_entry entry = entry_unknown;
  unsigned calls = 0;
  sent out;
  unsigned writes = 0;  // of the kernel, which it has made; another one failed if there is an error
};
bool flush(slot& s, int fd, amount how);
/// With the lock.
flushed flush_locked(slot& s, int fd, amount how);
void pay(flushed const& f);
sent send(int fd, char const* from, std::uint64_t bytes);
void count(abi::gather what, std::uint64_t n);

// Of reads.cc. With the lock, of a slot that reads: the program has its position again, and the
// lease ends. `is_asked`: a call needs that.
void end_reading(slot& s, int fd, core::gathered::contents const& was, bool is_asked);

}  // namespace sluice::gather
