// SPDX-License-Identifier: Apache-2.0
// See order/barriers.h. Every thread that comes to the gate does what there is to do by itself, and
// the first to be done takes the entry out. Only what the daemon did not do, each does in its turn.
// An entry is written before its request is posted, so nothing is ever outstanding that the table
// does not know.
#include <errno.h>

#include "clock.h"
#include "loaded.h"
#include "meter.h"
#include "order/ask.h"
#include "order/barriers.h"
#include "order/home.h"
#include "order/sync_job.h"
#include "rows.h"
#include "sys.h"

namespace sluice::order {

constinit std::atomic<std::uint64_t> gate_word{0};
constinit std::atomic<std::uint64_t> posted_seen{0};
constinit std::atomic<std::uint32_t> unsure_seen{0};

namespace {

constexpr unsigned most_barriers = 32;  // of a process; the slots are for all of the job
constexpr unsigned most_errors = 16;

struct entry {
  std::atomic<std::uint64_t> word;           // user << 32 | slot + 1; 0: being written
  std::atomic<std::uint64_t> device, inode;  // inode 0: another process's barrier
  std::atomic<std::uint32_t> unsure, failed, kind, stream;
  std::atomic<std::int32_t> fd;
  std::atomic<std::uint32_t> syncer;  // the thread that syncs it by that fd; 0: none
};
constinit entry table[most_barriers];

struct told_late {
  std::atomic<std::uint64_t> file;
  std::atomic<std::int32_t> error;
};
constinit told_late late[most_errors];
constinit std::atomic<bool> has_late;
constinit std::atomic<std::int32_t> late_of_any;  // no room in `late`: the next fsync says it

// With error_untold: for the next change of that stream.
struct untold_error {
  std::atomic<std::int32_t> error;
  std::atomic<std::uint32_t> stream;
};
constinit untold_error untold[most_errors];

// By slot: the user of the barrier there that was looked at, its own or another process's.
constinit std::atomic<std::uint32_t> known_user[abi::order_slots];

constexpr bool meets(std::uint32_t change, std::uint32_t barrier) {
  return change == barrier || change == every_stream || barrier == every_stream;
}

struct known {
  barrier b;
  std::uint64_t device, inode;
  abi::order_request kind;
  int fd;
  std::uint32_t stream;
  std::uint64_t word() const { return std::uint64_t{b.user} << 32 | b.slot; }
};

// False: nobody's, or being written by a call that has not returned.
bool read_entry(unsigned i, known& to) {
  entry const& e = table[i];
  std::uint64_t const word = e.word.load();
  to.b = {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32), e.unsure.load(),
          e.failed.load()};
  to.device = e.device.load();
  to.inode = e.inode.load();
  to.kind = static_cast<abi::order_request>(e.kind.load());
  to.fd = e.fd.load();
  to.stream = e.stream.load();
  return word != 0 && e.word.load() == word;
}

void forget(unsigned i, std::uint64_t word) {
  if (table[i].word.compare_exchange_strong(word, 0)) gate_word.fetch_and(~(std::uint64_t{1} << i));
}

// most_barriers: there is no room.
unsigned take_entry() {
  for (unsigned i = 0; i < most_barriers; ++i) {
    std::uint64_t const bit = std::uint64_t{1} << i;
    if ((gate_word.load() & bit) == 0 && (gate_word.fetch_or(bit) & bit) == 0) return i;
  }
  return most_barriers;
}

void write_entry(unsigned i, known const& k) {
  entry& e = table[i];
  e.device.store(k.device);
  e.inode.store(k.inode);
  e.unsure.store(k.b.unsure);
  e.failed.store(k.b.failed);
  e.kind.store(static_cast<std::uint32_t>(k.kind));
  e.fd.store(k.fd);
  e.stream.store(k.stream);
  e.word.store(k.word());
}

// Never 0, which is nobody.
std::uint64_t name_of(std::uint64_t device, std::uint64_t inode) {
  std::uint64_t const name = device * 0x9e3779b97f4a7c15ull ^ inode;
  return name != 0 ? name : 1;
}

void keep_error(known const& k, int error) {
  std::uint64_t const file = name_of(k.device, k.inode);
  bool is_kept = k.inode == 0;
  for (unsigned i = 0; i < most_errors && !is_kept; ++i) {
    std::uint64_t seen = late[i].file.load();
    if (seen != file && late[i].error.load() != 0) continue;
    is_kept = seen == file || late[i].file.compare_exchange_strong(seen, file);
    if (is_kept) late[i].error.store(error);
  }
  if (!is_kept) late_of_any.store(error);
  has_late.store(true);
  for (auto& one : untold) {
    std::int32_t none = 0;
    if (one.error.load() != 0 && one.stream.load() != k.stream) continue;
    one.stream.store(k.stream);
    one.error.compare_exchange_strong(none, error);
    break;
  }
  gate_word.fetch_or(error_untold);
}

enum class stand { durable, waits, is_posting, failed, sent_back, unknown };

// What the area says of it by now. The slot is looked at before `unsure`, which moves first.
stand look(barrier const& b, int& error) {
  order_slot& s = durable.area->slot[b.slot - 1];
  std::uint32_t const word = s.word.load();
  if (is_under_way(word, b.user)) return stand::waits;
  if (word == word_of(b.user, slot_state::claimed)) return stand::is_posting;
  if (word == word_of(b.user, slot_state::done)) {
    std::int32_t const result = s.result.load();
    if (s.word.load() != word) return look(b, error);
    if (result == 0) return stand::durable;
    error = result;
    return abi::means_native(result) ? stand::sent_back : stand::failed;
  }
  if (word == word_of(b.user, slot_state::abandoned)) return stand::unknown;
  return durable.area->head.unsure.load() == b.unsure ? stand::durable : stand::unknown;
}

// The file may be another's by that number: then nobody here has it open.
bool is_here(known const& k, file_now& f) {
  return k.inode != 0 && see(k.fd, f) && f.device == k.device && f.inode == k.inode;
}

// 0 or the error number, by our own sync.
int make_good(known const& k, bool is_sent_back) {
  file_now f;
  if (is_here(k, f)) {
    int const error =
        is_sent_back ? sync_sent_back(k.fd, f, k.kind) : without_daemon(k.fd, f, k.kind);
    if (is_here(k, f)) return error;
  }
  return sync_everything(k.device);
}

// Waits until it is known what became of the barrier.
stand wait_for(barrier const& b, int& error) {
  order_slot& s = durable.area->slot[b.slot - 1];
  std::int64_t const since_ns = now_ns();
  for (;;) {
    stand const is = look(b, error);
    if (is != stand::waits) return is;
    std::uint32_t const seen = s.word.load();
    if (!is_under_way(seen, b.user) || wait_a_slice(s, seen, since_ns, ~0u)) continue;
    durable.area->head.unsure.fetch_add(1);
    give_up(s, b.user, seen);
  }
}

// A sync under way keeps the program's file open, and its locks with it. So one thread at a time
// makes a barrier good, and who closes the file waits for it. False: it was made good meanwhile.
bool take_turn(unsigned i, known const& k) {
  std::atomic<std::uint32_t>& syncer = table[i].syncer;
  long const process = sys::call(SYS_getpid);
  auto const me = static_cast<std::uint32_t>(sys::call(SYS_gettid));
  for (std::int64_t const since_ns = now_ns(); table[i].word.load() == k.word();) {
    std::uint32_t seen = syncer.load();
    // Left there by a thread of the process that forked us, or by a handler that jumped away.
    bool const is_nobodys =
        seen == 0 || seen == me || sys::call(SYS_tgkill, process, seen, 0) == -ESRCH;
    std::int64_t const at_ns = now_ns();
    if (!is_nobodys && at_ns - since_ns < longest_ns) {
      sys::futex_wait(&syncer, seen, at_ns + slice_ns, ~0u);
      continue;
    }
    if (!syncer.compare_exchange_strong(seen, me)) continue;
    if (table[i].word.load() == k.word()) return true;
    syncer.store(0);
  }
  return false;
}

void leave_turn(unsigned i) {
  table[i].syncer.store(0);
  sys::futex_wake(&table[i].syncer, ~0u);
}

// The barrier is forgotten, and its error kept for who has to be told.
int conclude(unsigned i, known const& k, int error) {
  abi::order_header& h = durable.area->head;
  if (error != 0) keep_error(k, error);
  // Of another process's barrier that one has to see for himself.
  if (error != 0 && k.inode != 0) {
    h.failed.fetch_add(1);
    h.unsure.fetch_add(1);
  }
  if (error == 0 || k.inode != 0)
    swap(durable.area->slot[k.b.slot - 1], k.b.user, slot_state::done, slot_state::free);
  if (i != most_barriers) forget(i, k.word());
  return error;
}

// Waits until it is known what became of the barrier of that entry, and makes good what the daemon
// did not. -1: not yet; else it is forgotten: 0 or the error number. `i` is most_barriers: no
// entry has it.
int settle(unsigned i, known const& k, bool may_wait) {
  std::atomic<std::uint32_t> const& failed = durable.area->head.failed;
  int error = 0;
  stand const is = may_wait ? wait_for(k.b, error) : look(k.b, error);
  if (is == stand::durable || is == stand::failed) return conclude(i, k, error);
  if (is == stand::is_posting || !may_wait) return -1;
  // Whose error it was nobody knows any more: in doubt, of this one.
  auto const in_doubt = [&] { return failed.load() != k.b.failed ? EIO : 0; };
  if (i != most_barriers && !take_turn(i, k)) return in_doubt();
  error = make_good(k, is == stand::sent_back);
  if (error == 0 && is == stand::unknown) error = in_doubt();
  conclude(i, k, error);
  if (i != most_barriers) leave_turn(i);
  return error;
}

bool settle_all(bool may_wait, std::uint32_t stream = every_stream) {
  bool all = true, waited = false;
  for (std::uint64_t left = gate_word.load() & ~error_untold; left != 0; left &= left - 1) {
    auto const i = static_cast<unsigned>(__builtin_ctzll(left));
    known k;
    int ignored = 0;
    if (!read_entry(i, k) || !meets(stream, k.stream)) continue;
    stand const is = look(k.b, ignored);
    if (is == stand::is_posting) continue;  // its fsync has not returned
    waited |= is == stand::waits && may_wait;
    all &= settle(i, k, may_wait) >= 0;
  }
  if (waited) count(abi::order_count::gated);
  return all;
}

int take_untold(std::uint32_t stream = every_stream) {
  if ((gate_word.fetch_and(~error_untold) & error_untold) == 0) return 0;
  int told = 0;
  bool is_left = false;
  for (auto& one : untold) {
    if (one.error.load() == 0) continue;
    if (meets(stream, one.stream.load()))
      told = one.error.exchange(0);
    else
      is_left = true;
  }
  if (is_left) gate_word.fetch_or(error_untold);
  return told;
}

// The entry that knows this barrier; most_barriers: none does.
unsigned find_entry(barrier const& b, known& k) {
  for (unsigned i = 0; i < most_barriers; ++i)
    if (read_entry(i, k) && k.b.slot == b.slot && k.b.user == b.user) return i;
  k = {b, 0, 0, abi::order_request::fsync, -1, every_stream};
  return most_barriers;
}

// The daemon writes to the eventfd when it is done with that barrier. False: it will not. Its word
// is waited for, so that the program may do with its own descriptor what it likes.
bool ask_to_tell(barrier const& b, int fd) {
  std::int64_t const since_ns = now_ns();
  std::uint32_t user = 0;
  order_slot* const s = heart_beats(since_ns) ? claim_slot(user) : nullptr;
  file_now about = {};  // as the slot has it
  about.device = b.slot - 1;
  about.inode = b.user;
  constexpr auto kind = static_cast<std::uint32_t>(abi::order_request::notify) | abi::order_barrier;
  if (s == nullptr || !post(*s, user, kind, fd, about)) return false;
  for (;;) {
    s->eager.store(1);
    std::uint32_t const seen = s->word.load();
    if (seen == word_of(user, slot_state::held)) return true;
    if (!is_under_way(seen, user)) return !swap(*s, user, slot_state::done, slot_state::free);
    if (!wait_a_slice(*s, seen, since_ns, ~0u) && give_up(*s, user, seen)) return false;
  }
}

int ring(int eventfd) {
  std::uint64_t const one = 1;
  long const r = sys::act(SYS_write, eventfd, sys::as_long(&one), sizeof one);
  if (!sys::failed(r)) return 0;
  errno = static_cast<int>(-r);
  return -1;
}

bool is_shared_barrier(order_slot const& s) {
  return abi::is_barrier(s.kind.load()) && abi::is_shared(s.stream.load());
}

// Of another process, in a stream that is ours too. One that failed, or that its own process has
// still to make good, is not durable either.
void learn_of(unsigned slot, std::uint32_t unsure, std::uint32_t failed) {
  order_slot& s = durable.area->slot[slot];
  std::uint32_t const word = s.word.load(), user = word >> 3;
  bool const is_open = is_under_way(word, user) || word == word_of(user, slot_state::done);
  if (!is_open || known_user[slot].load() == user || !is_shared_barrier(s)) return;
  known const k = {{slot + 1, user, unsure, failed},
                   s.device.load(),
                   0,
                   abi::order_request::fsync,
                   -1,
                   s.stream.load()};
  if (s.word.load() >> 3 != user) return;  // another's by now; that one was over
  unsigned i = take_entry();
  if (i == most_barriers && settle_all(true)) i = take_entry();
  if (i == most_barriers)
    settle(i, k, true);
  else
    write_entry(i, k);
  known_user[slot].store(user);
}

void learn_of_others() {
  abi::order_header& h = durable.area->head;
  std::uint32_t unsure = 0;
  do {
    std::uint64_t const posted = h.posted.load();
    unsure = h.unsure.load();
    for (unsigned slot = 0; slot < abi::order_slots; ++slot)
      learn_of(slot, unsure, h.failed.load());
    // One that was given up may be on its way to the disk only now.
    if (unsure != unsure_seen.load()) sync_everything(0);
    unsure_seen.store(unsure);
    posted_seen.store(posted);
  } while (h.unsure.load() != unsure);
}

bool is_token(barrier const& b) { return b.slot != 0 && b.slot <= abi::order_slots; }

}  // namespace

// False: it could not be posted, nothing was done.
static bool post_barrier(sync_job const& j, barrier& to) {
  // A vfork child's number of this file is its own; who writes past us cannot be held at the gate.
  constexpr std::uint64_t ungated = abi::order_apart | abi::order_bypass;
  if (self.is_vfork_child || (j.seen & ungated) != 0 || !heart_beats(now_ns())) return false;
  unsigned i = take_entry();
  if (i == most_barriers && settle_all(true)) i = take_entry();
  if (i == most_barriers) return false;
  abi::order_header& h = durable.area->head;
  known k = {{0, 0, h.unsure.load(), h.failed.load()},
             j.file.device,
             j.file.inode,
             j.kind,
             j.fd,
             stream_of(j.fd)};
  order_slot* const s = claim_slot(k.b.user);
  if (s == nullptr) {
    gate_word.fetch_and(~(std::uint64_t{1} << i));
    return false;
  }
  k.b.slot = static_cast<std::uint32_t>(s - durable.area->slot) + 1;
  s->stream.store(k.stream);
  known_user[k.b.slot - 1].store(k.b.user);
  write_entry(i, k);
  if (!post(*s, k.b.user, static_cast<std::uint32_t>(j.kind) | abi::order_barrier, j.fd, j.file)) {
    forget(i, k.word());
    return false;
  }
  if (abi::is_shared(k.stream)) h.posted.fetch_add(1);
  count(abi::order_count::barriers);
  to = k.b;
  return true;
}

int make_ordered(int fd, abi::order_request kind, barrier& to) {
  sync_job j = look_before_sync(fd, kind);
  bool const may_wait = j.where == sync_way::undecided && j.late_error == 0 && is_for_daemon(j);
  return may_wait && post_barrier(j, to) ? 0 : finish(j);
}

int pass_barriers(std::uint32_t stream, bool may_wait) {
  if (!sees()) return 0;
  if (others_posted()) {
    if (!may_wait) return EAGAIN;
    learn_of_others();
  }
  if (!settle_all(may_wait, stream)) return EAGAIN;
  return take_untold(stream);
}

void wait_for_barriers() {
  if (durable.area == nullptr || !has_barriers() || !sees()) return;
  if (others_posted()) learn_of_others();
  settle_all(true);
}

// Until the daemon has the file open itself.
void close_gated(unsigned first, unsigned last) {
  if (self.is_vfork_child || !sees()) return;
  for (std::uint64_t left = gate_word.load() & ~error_untold; left != 0; left &= left - 1) {
    auto const i = static_cast<unsigned>(__builtin_ctzll(left));
    known k;
    file_now f;
    if (!read_entry(i, k) || k.fd < 0 || static_cast<unsigned>(k.fd) < first ||
        static_cast<unsigned>(k.fd) > last || !is_here(k, f))
      continue;
    order_slot& s = durable.area->slot[k.b.slot - 1];
    std::int64_t const since_ns = now_ns();
    int error = 0;
    for (;;) {
      s.eager.store(1);
      std::uint32_t const seen = s.word.load();
      bool const is_open = is_under_way(seen, k.b.user) && state_in(seen) != slot_state::held;
      if (!is_open || !wait_a_slice(s, seen, since_ns, abi::order_wake_eager)) break;
    }
    bool const is_in_hand = state_in(s.word.load()) == slot_state::held;
    if (is_in_hand && look(k.b, error) == stand::waits) continue;
    settle(i, k, true);
  }
}

int late_error(file_now const& f) {
  if (has_barriers()) settle_all(false);  // nobody may have passed the gate since
  if (!has_late.load()) return 0;
  std::uint64_t const file = name_of(f.device, f.inode);
  for (auto& one : late)
    if (one.file.load() == file)
      if (int const error = one.error.exchange(0); error != 0) return error;
  return late_of_any.exchange(0);
}

}  // namespace sluice::order

// --- sluice_order.h

#define EXPORT __attribute__((visibility("default")))

namespace sluice {

using order::barrier;

namespace {

bool is_active() {
  return order::durable.area != nullptr && stage.active.load(std::memory_order_relaxed) != nullptr;
}

}  // namespace

extern "C" EXPORT int sluice_order_barrier(int fd, barrier* to);
int sluice_order_barrier(int fd, barrier* to) {
  *to = {};
  if (!is_active() || !order::is_durable(fd)) return real::fsync(fd);
  charge(call::fsync, core::op::fsync, on_fd(fd), 1);
  loaded::end_if_cancelled();
  return order::make_ordered(fd, abi::order_request::fsync, *to);
}

extern "C" EXPORT int sluice_order_wait(barrier const* what);
int sluice_order_wait(barrier const* what) {
  if (!order::is_token(*what) || !is_active()) return 0;
  order::known k;
  unsigned const i = order::find_entry(*what, k);
  int const error = order::settle(i, k, true);
  if (error == 0) return 0;
  // Told now: not once more at the gate, nor by the file.
  order::take_untold(k.stream);
  order::file_now f = {};
  f.device = k.device;
  f.inode = k.inode;
  if (k.inode != 0) order::late_error(f);
  errno = error;
  return -1;
}

extern "C" EXPORT int sluice_order_after(barrier const* what);
int sluice_order_after(barrier const* what) {
  order::known k;
  if (!order::is_token(*what) || !is_active()) return 0;
  if (order::find_entry(*what, k) != order::most_barriers) return 0;
  int error = 0;
  if (order::look(k.b, error) == order::stand::durable) return 0;
  unsigned const i = order::take_entry();
  if (i == order::most_barriers) return sluice_order_wait(what);
  order::write_entry(i, k);
  return 0;
}

extern "C" EXPORT int sluice_order_notify(barrier const* what, int eventfd);
int sluice_order_notify(barrier const* what, int eventfd) {
  int error = 0;
  bool const waits =
      order::is_token(*what) && is_active() && order::look(*what, error) == order::stand::waits;
  return waits && order::ask_to_tell(*what, eventfd) ? 0 : order::ring(eventfd);
}

}  // namespace sluice
