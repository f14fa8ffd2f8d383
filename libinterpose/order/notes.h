// SPDX-License-Identifier: Apache-2.0
// Durable targets: the stage's notes of writes, and how it asks for an fsync. (An ordered target is
// one as well; order/barriers.h has the changes that wait there instead of the fsync.) Where a job
// has such a target, order/calls.cc stands between the wrappers and libc (see stand_between), so a
// program without one runs the same instructions as ever. abi/README.md has the rules.
// Must stay true: a write is noted before its call returns to the program; an fsync is acknowledged
// by the daemon's answer or by the kernel's, never by a guess.
#pragma once

#include <cstdint>

#include "abi/order_area.h"
#include "place.h"
#include "state.h"

namespace sluice::order {

struct order_state {
  abi::order_area* area = nullptr;  // null: no target of this job is durable
  std::uint32_t targets = 0;        // a copy: bit t, target t is durable
  std::uint32_t ordered = 0;        // those of them where fsync is a barrier
  std::uint32_t shared = 0;         // those whose stream other processes have part in
};
extern order_state durable;

/// verify_and_remember() of a job with such a target.
unsigned verify_durable(int fd, unsigned path_class, unsigned said);

/// Puts the bodies of order/calls.cc in the place of libc's functions.
void stand_between();

/// False in a process that no longer sees its own calls, a sandbox for one: no system call of ours
/// may be made there. What it writes is noted by nobody, so no fsync may trust the notes any more.
bool sees();

/// The file is in a durable target, as far as the fd table says (it asks the kernel about an fd it
/// does not know).
bool is_durable(int fd);
/// As far as its name says, of one that nobody has looked at yet. Enough to note what is written:
/// notes of a file elsewhere are of no consequence.
bool may_be_durable(int fd);
bool is_ordered(int fd);
/// Of what is changed through it: see abi::stream_process.
std::uint32_t stream_of(int fd);
/// Its inode has records in the journal, wherever its name is by now.
bool is_logged(int fd);

/// What the kernel says of a file.
struct file_now {
  std::uint64_t device, inode, size, birth;
  unsigned mode;
  bool is_written;     // its ctime is its mtime: nothing was changed after its bytes
  std::uint64_t key;   // abi::order_key(); no_key: nobody can note it, or log it
  std::uint64_t word;  // abi::lone_word()
};
bool see(int dir, char const* path, int flags, file_now& to);
bool see(int fd, file_now& to);
/// The same of a file or directory that can be synced, and its descriptor's flags (F_GETFL).
bool see_open(int fd, file_now& to, long& flags);
/// A regular file of a durable target, as far as its name says: device, inode and mode. The kernel
/// is asked the first time that it is written by this descriptor.
bool look_at_written(int fd, file_now& to);
/// Of its inode, as the daemon and other stages left them: abi::order_logged and others.
std::uint64_t flags_of(file_now const& f);
bool is_logged(file_now const& f);
/// What was changed of it since the daemon knew all of it durable. All but bytes, and a size, needs
/// more than an fdatasync.
enum class change : std::uint8_t { bytes, size, other };
change change_of(file_now const& f);
/// One of the first two syncs of a file that a program of the job made.
bool take_first_sync(file_now const& f);

/// The daemon holds no file, so nothing has to be noted.
inline bool is_unwatched() { return durable.area->head.unwatched.load() != 0; }
/// The same after a call, for what was not noted before it: if the daemon holds files by now, it
/// perhaps read this one before the call was over.
inline bool was_unwatched() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return is_unwatched();
}
/// What is written to it is to be noted.
bool is_watched(file_now const& f);

inline void count(abi::order_count what) {
  durable.area->head.count[static_cast<unsigned>(what)].fetch_add(1, std::memory_order_relaxed);
}

/// Notes that bytes [from, to) were written, if it is watched. Empty: nothing.
void note_bytes(file_now const& f, std::uint64_t from, std::uint64_t to);
void note_whole(file_now const& f);
void note_cut(file_now const& f, std::uint64_t size);
void note_created(file_now const& f);
void note_moved(file_now const& f);
/// What the path names is about to be removed, or to be moved away. False: that is not noted now;
/// was_given_up() then has to follow, after the call.
bool note_given_up(int dir, char const* path);
void was_given_up(char const* path);

/// A write that goes to the file past the page cache or without a call of its own is to come: the
/// inode is native for good, and the journal has no live record of it when this returns.
void bypass(int fd, file_now const& f);
/// What is written through a descriptor with such flags (F_GETFL) goes to the disk by itself; with
/// O_DIRECT, without pages.
bool writes_past_the_log(long flags);
inline constexpr int no_fd = -1;  // the file is known by its name alone
/// The journal has no live record of it when this returns, if it has any; but it may have others
/// later.
void let_go(int fd, file_now const& f);
/// bypass() when the kernel syncs by itself what is changed through this descriptor.
void bypass_if_synced(int fd);

/// This process goes where we see nothing: sandboxes, rings. +1 and the journal is emptied; -1: it
/// did not go after all.
void go_blind();
void see_again();

/// fsync, fdatasync: 0 or -1 with errno. No cancellation point.
int make_durable(int fd, abi::order_request kind);
/// Of a file that the journal has: the error with which home lost bytes, 0 for none. What the
/// kernel syncs by itself is not durable then, for recovery will put what the journal has over it.
int refused_at_home(file_now const& f);
/// Its writes may go through the journal: nobody writes it where nobody notes it, this descriptor
/// too.
bool may_be_logged(int fd);
/// syncfs, raw. -EROFS for a file system that is read-only: the kernel says 0 of one that it has
/// made so because its disk failed.
long sync_file_system(int fd);
/// Around sync and syncfs: records of the journal must not undo what they make durable. Without a
/// daemon that empties it, before_sync says true, and after_sync marks the journal; `was_all`:
/// sync(2) returned.
bool before_sync();
void after_sync(bool is_void, bool was_all);

/// One write in flight: what is known before, for what is to be noted after.
struct write_view {
  bool ours;
  bool is_unwatched;  // nothing is noted, unless that changes meanwhile
  bool appends;
  bool is_synced;  // by the kernel, when it returns
  int rwf;
  std::int64_t at;  // -1: at the file position
  std::int64_t position;
  file_now file;
};
inline constexpr int rwf_dsync = 2, rwf_sync = 4, rwf_append = 16, rwf_noappend = 32;

write_view before_write(int fd, std::int64_t at, int rwf);
/// The same where nothing was noted before the call.
inline write_view unnoted_write(std::int64_t at, int rwf) {
  write_view v = {};
  v.at = at;
  v.rwf = rwf;
  v.is_unwatched = true;
  return v;
}
/// `moved`: what the call returned.
void after_write(write_view& v, int fd, std::int64_t moved);

/// Streams of stdio that keep written bytes back, by fd.
void note_pending(int fd, bool is_pending);
bool is_pending(int fd);
void pending_flushed();  // fflush(NULL): nobody says which
void leave_pending();    // the process ends: libc writes what is left behind our back

}  // namespace sluice::order
