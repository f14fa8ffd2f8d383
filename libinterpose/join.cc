// SPDX-License-Identifier: Apache-2.0
#include "join.h"

#include <linux/prctl.h>
#include <sys/auxv.h>
#include <time.h>

#include "name_buffer.h"
#include "roles.h"
#include "sys.h"
#include "waiters.h"

namespace sluice {

namespace {

constexpr std::uint64_t generation_busy = std::uint64_t{1} << 63;  // with the address of who joins
constexpr unsigned slot_probes = 64, near_probes = 8;

std::uint32_t own_pid() { return static_cast<std::uint32_t>(sys::call(SYS_getpid)); }

bool is_dead(std::uint32_t pid) { return sys::call(SYS_kill, pid, 0) == -ESRCH; }

// The number that /proc has for us is ours: it shows our pid namespace.
bool proc_shows(std::uint32_t pid) {
  char text[16];
  long const length = sys::call(SYS_readlink, sys::as_long("/proc/self"), sys::as_long(text),
                                static_cast<long>(sizeof text));
  std::uint32_t number = 0;
  for (long i = 0; i < length; ++i) number = number * 10 + static_cast<unsigned>(text[i] - '0');
  return number == pid;
}

// A child of fork sees the number of its parent only in the pid namespace of both.
bool is_in_space_of_parent() {
  return self.pid != 0 && static_cast<std::uint32_t>(sys::call(SYS_getppid)) == self.pid;
}

// The first process of the job asks for all that see the same /proc. Out of line, for what it needs
// of the stack is more than a child of fork has touched.
[[gnu::noinline]] std::uint64_t pid_space(abi::segment& s, std::uint32_t pid) {
  sys::file_identity proc = {};
  bool const is_there = sys::identify(sys::at_cwd, "/proc", 0, proc);
  if (is_there) stage.proc_device = proc.device;
  bool const is_ours = is_there && proc_shows(pid);
  std::uint64_t shows = s.head.proc_shows.load(std::memory_order_relaxed);
  if (is_ours && abi::shown_by(proc.device, shows & 0xffffffff) == shows && shows != 0)
    return shows & 0xffffffff;
  std::uint64_t const space = own_pid_space();
  if (space != 0 && is_ours && shows == 0)
    s.head.proc_shows.compare_exchange_strong(shows, abi::shown_by(proc.device, space));
  return space;
}

// By a system call: the other way touches three pages, which is dearer when it is the first time.
std::uint64_t ticks_now() {
  timespec t = {};
  sys::call(SYS_clock_gettime, CLOCK_BOOTTIME, sys::as_long(&t));
  return abi::ticks_of(static_cast<std::int64_t>(sys::ns_of(t.tv_sec, t.tv_nsec)));
}

void release_shards(abi::segment& s, std::uint32_t slot) {
  std::uint32_t const used = s.head.shards_used.load();
  for (unsigned i = 0; i < used && i < abi::owned_shards; ++i) {
    std::uint64_t seen = s.shard_owner[i].load(std::memory_order_relaxed);
    if (seen >> 32 != slot) continue;
    if (s.shard_owner[i].compare_exchange_strong(seen, 0)) s.head.threads.fetch_sub(1);
  }
}

// A program that starts was told by the kernel; a child of fork may be another's by now.
std::uint32_t own_uid() {
  bool const starts = stage.active.load(std::memory_order_relaxed) == nullptr;
  return static_cast<std::uint32_t>(starts ? getauxval(AT_UID) : sys::call(SYS_getuid));
}

void describe_slot(abi::segment& s, std::uint32_t slot, std::uint64_t space) {
  abi::process_slot& row = abi::process_of(s, slot - 1);
  row.uid.store(own_uid());
  row.pid_space.store(space);
  row.start_ticks.store(abi::not_after | ticks_now());
  char name[16] = {};
  sys::call(SYS_prctl, PR_GET_NAME, sys::as_long(name));
  for (unsigned i = 0; i < sizeof name; ++i) row.name[i] = name[i];
  row.state.store(1);
}

// A free slot near the pid's place. One with our own pid is ours: exec keeps the pid, and the image
// before left it behind. One whose process is dead is free. Pids of another pid namespace say
// nothing.
std::uint32_t claim_slot(abi::segment& s) {
  std::uint32_t const pid = own_pid();
  if (!is_in_space_of_parent()) stage.pid_space = pid_space(s, pid);
  std::uint64_t const space = stage.pid_space;
  stage.fork_page->pid = self.pid = pid;
  for (unsigned i = 0; i < slot_probes; ++i) {
    unsigned const among = i < near_probes ? abi::near_slots : abi::process_slots;
    std::uint32_t const index = (pid + i * 67) % among;
    abi::process_slot& row = abi::process_of(s, index);
    std::uint32_t seen = 0;  // written without a look before: that may be a page fault more
    bool const is_free = row.pid.compare_exchange_strong(seen, pid);
    bool const comparable = !is_free && space != 0 && row.pid_space.load() == space;
    bool const reusable = comparable && (seen == pid || is_dead(seen));
    if (!is_free && !reusable) continue;
    if (reusable && !row.pid.compare_exchange_strong(seen, pid)) continue;
    if (reusable) release_shards(s, index + 1);  // after it: the slot is ours alone now
    describe_slot(s, index + 1, space);
    if (!reusable) s.head.attached.fetch_add(1);
    s.head.attached_total.fetch_add(1);
    return index + 1;
  }
  return 0;
}

// A number that no thread of this process has from before, and so none of its parent's. Whose
// thread has one goes on from there. That writes no page of the parent's, as a count of the process
// would; the count is only for threads that have none.
std::uint32_t next_generation() {
  constexpr unsigned steps = 0xfffe;
  std::uint32_t const mine = self.generation;
  if (mine != ~0u && (mine & 0xffff) < steps) return mine + 1;
  stage.generations = (stage.generations + 1) & 0x7fff;
  return stage.generations << 16 | 1;
}

// /proc/PID, or a name below it.
struct process_name {
  char text[24] = "/proc/";
  process_name(std::uint32_t pid, std::string_view below) {
    unsigned length = 6;
    append_number(text, length, pid);
    __builtin_memcpy(text + length, below.data(), below.size());
  }
};

// A process that has ended keeps its number until its parent asks for it. It has no program any
// more, and /proc shows it still. What /proc hides, or has of another pid namespace, is not told.
bool is_zombie(std::uint32_t pid) {
  char first;
  process_name const program(pid, "/exe"), itself(pid, "");
  long const r = sys::call(SYS_readlinkat, sys::at_cwd, sys::as_long(program.text),
                           sys::as_long(&first), sizeof first);
  sys::file_identity there;
  return r == -ENOENT && sys::identify(sys::at_cwd, itself.text, 0, there) && proc_shows(self.pid);
}

abi::shard* take_shard(abi::segment& s, unsigned index, std::uint64_t seen, std::uint64_t mark) {
  if (!s.shard_owner[index].compare_exchange_strong(seen, mark)) return nullptr;
  if (seen == 0) s.head.threads.fetch_add(1);
  touch_around(&s.owned[index]);
  abi::waiter& record = s.owned[index].waiting;
  if (std::uint32_t const left = record.channel.exchange(0); left != 0)
    waiters::settle_left(s, record, left);
  std::uint32_t used = s.head.shards_used.load();
  while (used < index + 1 && !s.head.shards_used.compare_exchange_weak(used, index + 1)) {
  }
  return &s.owned[index];
}

abi::shard* claim_shard(abi::segment& s) {
  std::uint32_t const slot = stage.fork_page->slot.load();
  std::uint64_t const mark = shard_mark();
  for (unsigned i = 0; slot != 0 && i < abi::owned_shards; ++i) {
    if (s.shard_owner[i].load(std::memory_order_relaxed) != 0) continue;
    if (abi::shard* const taken = take_shard(s, i, 0, mark)) return taken;
  }
  // All taken: threads that ended leave theirs behind. Look at a few, starting at a different place
  // each.
  for (unsigned i = 0; slot != 0 && i < 16; ++i) {
    unsigned const index = (self.tid * 16 + i) % abi::owned_shards;
    std::uint64_t const seen = s.shard_owner[index].load(std::memory_order_relaxed);
    if (seen == 0 || !is_free_or_left(s, seen)) continue;
    if (abi::shard* const taken = take_shard(s, index, seen, mark)) return taken;
  }
  return nullptr;
}

}  // namespace

std::uint64_t own_pid_space() {
  sys::file_identity space;
  for (char const* const name : {"/proc/self/ns/pid", "/proc/thread-self/ns/pid"})
    if (sys::identify(sys::at_cwd, name, 0, space)) return space.inode;
  return 0;
}

// A number that no thread has any more is that of a process that has ended, too. But one that a
// raw clone() made in the memory of its parent has a number of its own.
bool is_free_or_left(abi::segment& s, std::uint64_t owner) {
  std::uint64_t const slot = owner >> 32;
  if (slot == 0 || slot > abi::process_slots) return true;
  abi::process_slot& row = abi::process_of(s, slot - 1);
  std::uint32_t const pid = row.pid.load();
  if (pid == 0) return true;
  if (stage.pid_space == 0 || row.pid_space.load() != stage.pid_space) return false;
  auto const tid = static_cast<std::uint32_t>(owner);
  return is_dead(tid) || (tid == pid && is_zombie(pid));
}

// After fork the page reads 0. The first thread to see it makes the child a process of its own;
// others that come meanwhile pass through. The same thread may come again: its first try was cut
// short by a signal handler, which may never return to it.
bool join_process(abi::segment& s) {
  std::uint64_t const busy = generation_busy | static_cast<std::uint64_t>(sys::as_long(&self));
  std::uint64_t seen = 0;
  if (!stage.fork_page->generation.compare_exchange_strong(seen, busy) && seen != busy)
    return (seen & generation_busy) == 0;
  stage.fork_page->slot.store(0);
  touch_around(&s);
  std::uint32_t const slot = claim_slot(s);
  stage.fork_page->slot.store(slot);
  if (slot == 0) pass_through(abi::passthrough::no_slot);
  stage.fork_page->generation.store(next_generation(), std::memory_order_release);
  return true;
}

bool join_thread() {
  abi::segment* const s = stage.active.load(std::memory_order_acquire);
  if (s == nullptr) return false;
  if (has_foreign_memory()) {
    pass_through(abi::passthrough::foreign_thread);
    return false;
  }
  if (self.is_vfork_child) {
    pass_through(abi::passthrough::vfork_child);
    return false;
  }
  if (!join_process(*s)) {
    pass_through(abi::passthrough::nested);
    return false;
  }
  self.pid = stage.fork_page->pid;
  self.tid = static_cast<std::uint32_t>(sys::call(SYS_gettid));
  self.counters = claim_shard(*s);
  self.owned = self.counters != nullptr;
  if (self.counters == nullptr) {
    self.counters = &s->common[self.tid % abi::common_shards];
    s->head.commons_used.store(1, std::memory_order_relaxed);
  }
  refresh_caller_rules();
  self.generation =
      static_cast<std::uint32_t>(stage.fork_page->generation.load(std::memory_order_acquire));
  self.settled = self.owned ? self.generation : ~0u;
  return true;
}

void refresh_caller_rules() {
  abi::segment* const s = stage.active.load(std::memory_order_relaxed);
  self.caller_rules = ~std::uint64_t{0};
  self.caller_serial = stage.threads_named.load(std::memory_order_relaxed);
  if (s == nullptr || !stage.has_callers) return;
  char name[17] = {};
  sys::call(SYS_prctl, PR_GET_NAME, sys::as_long(name));
  unsigned length = 0;
  while (length < 16 && name[length] != 0) ++length;
  self.caller_rules = core::caller_rules(stage.mine->rules, {name, length},
                                         static_cast<std::uint32_t>(sys::call(SYS_geteuid)));
  if (stage.has_roles) roles::look_at_thread({name, length});
}

void leave_process() {
  abi::segment* const s = stage.active.load(std::memory_order_acquire);
  if (s == nullptr || self.is_vfork_child) return;
  // A child of fork that has made no call has none.
  std::uint32_t const slot = stage.fork_page->slot.load();
  if (slot == 0 || slot > abi::process_slots) return;
  auto pid = static_cast<std::uint32_t>(sys::call(SYS_getpid));
  if (abi::process_of(*s, slot - 1).pid.load() != pid)
    return;  // a child of clone, in its parent's memory
  stage.fork_page->slot.store(0);
  // Whoever still makes calls (other destructors, threads that go on) joins anew, to the shared
  // counters.
  std::uint64_t const generation = stage.fork_page->generation.load();
  stage.fork_page->generation.store(static_cast<std::uint32_t>(generation) + 1);
  release_shards(*s, slot);
  if (abi::process_of(*s, slot - 1).pid.compare_exchange_strong(pid, 0))
    s->head.attached.fetch_sub(1);
}

}  // namespace sluice
