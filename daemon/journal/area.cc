// SPDX-License-Identifier: Apache-2.0
#include "journal/area.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "abi/order_slot.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/process_mark.h"

namespace sluice::journal {

namespace {

constexpr std::uint64_t forgotten_ns = 5'000'000'000;    // a slot whose program is no more
constexpr std::uint64_t left_lying_ns = 60'000'000'000;  // or seems to be there still

constexpr long copies_max = 16 * abi::order_slots;  // of requests: each has some eight

using abi::state_in;
using state = abi::order_slot_state;

void wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

unsigned places_taken(abi::order_set const& s) {
  unsigned taken = 0;
  for (auto const& key : s.key) taken += key.load() != abi::no_key;
  return taken;
}

}  // namespace

std::uint64_t device_word(struct stat const& st) {
  return std::uint64_t{major(st.st_dev)} << 32 | minor(st.st_dev);
}

area::area(std::string const& path, std::int64_t owner) : path_(path), was_full_(abi::order_sets) {
  descriptor const fd(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat st = {};
  if (!fd || fstat(fd.get(), &st) != 0)
    throw sluice_error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  if (!S_ISREG(st.st_mode) || (owner >= 0 && st.st_uid != owner))
    throw sluice_error(fmt::format("{}: is not a file of that user", path));
  if (static_cast<std::uint64_t>(st.st_size) < sizeof(abi::order_area))
    throw sluice_error(fmt::format("{}: is too short to be an order area", path));
  owner_ = st.st_uid;
  void* const at =
      mmap(nullptr, sizeof(abi::order_area), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) throw sluice_error(fmt::format("{}: cannot be mapped", path));
  at_ = static_cast<abi::order_area*>(at);
  guard_ = std::make_unique<guarded_memory>(at, sizeof(abi::order_area));
  char const* const wrong = abi::refuse_reason(*at_, static_cast<std::uint64_t>(st.st_size));
  if (wrong == nullptr) return;
  guard_.reset();
  munmap(at, sizeof(abi::order_area));
  throw sluice_error(fmt::format("{}: {}", path, wrong));
}

area::~area() {
  guard_.reset();
  munmap(at_, sizeof(abi::order_area));
}

void area::open_for(superblock const& log, std::uint64_t incarnation, log_place const& at) {
  abi::order_header& h = at_->head;
  h.incarnation.store(0);
  std::memcpy(h.log_id, log.id, sizeof h.log_id);
  h.log_device = at.device;
  h.log_inode = at.inode;
  std::memset(h.log_path, 0, sizeof h.log_path);
  if (at.path.size() < sizeof h.log_path) std::memcpy(h.log_path, at.path.data(), at.path.size());
  h.refused.store(0);
  for (auto& device : h.log_devices) device.store(0);
  h.generation.store(log.generation);
  // Behind the generation: a program that is at it now may have read the one before.
  end_void();
  h.incarnation.store(incarnation);
}

void area::end_void() {
  std::uint32_t seen = at_->head.voided.load();
  if (is_voided()) at_->head.voided.compare_exchange_strong(seen, 0);
}

void area::tell_device(std::uint64_t device) {
  auto& all = at_->head.log_devices;
  for (unsigned i = 0; i + 1 < abi::order_log_devices; ++i) {
    if (all[i].load() == 0) all[i].store(device);
    if (all[i].load() == device) return;
  }
  all[abi::order_log_devices - 1].store(~std::uint64_t{0});
}

bool area::is_voided() const {
  constexpr auto states = abi::order_void | abi::order_void_done | abi::order_void_failed;
  std::uint32_t const seen = at_->head.voided.load();
  return (seen & abi::order_void) != 0 && (seen & ~states) == 0;
}

void area::close_down() { at_->head.incarnation.store(0); }

void area::take_posted(std::vector<request>& to, bool adopt) {
  for (unsigned i = 0; i < abi::order_slots; ++i) {
    abi::order_slot& s = at_->slot[i];
    std::uint32_t word = s.word.load(std::memory_order_acquire);
    bool const left_behind =
        adopt && (state_in(word) == state::taken || state_in(word) == state::held);
    if (state_in(word) != state::posted && !left_behind) continue;
    std::uint32_t const user = word >> 3;
    if (!s.word.compare_exchange_strong(word, word_of(user, state::taken))) continue;
    std::uint32_t const kind = s.kind.load();
    request const r = {this,
                       i,
                       user,
                       static_cast<abi::order_request>(kind & ~abi::order_barrier),
                       (kind & abi::order_barrier) != 0,
                       s.pid.load(),
                       s.fd.load(),
                       s.device.load(),
                       s.inode.load(),
                       counted_};
    if (counted_.use_count() > copies_max)
      answer(r, abi::go_native);
    else
      to.push_back(r);
  }
}

void area::answer(request const& r, int result) {
  abi::order_slot& s = at_->slot[r.slot];
  // What nobody waits for and is durable needs no answer: that the slot is free says so.
  state const to = r.is_barrier && result == 0 ? state::free : state::done;
  std::uint32_t word = s.word.load();
  while (word == word_of(r.user, state::taken) || word == word_of(r.user, state::held)) {
    s.result.store(result);
    if (!s.word.compare_exchange_strong(word, word_of(r.user, to))) continue;
    wake(s.word);
    if (!r.is_barrier || watched_ == 0) return;
    at_->head.doorbell.fetch_add(1);
    return wake(at_->head.doorbell);
  }
  if (word == word_of(r.user, state::abandoned))
    s.word.compare_exchange_strong(word, word_of(r.user, state::free));
}

void area::hold(request const& r) {
  abi::order_slot& s = at_->slot[r.slot];
  std::uint32_t word = word_of(r.user, state::taken);
  if (!r.is_barrier || !s.word.compare_exchange_strong(word, word_of(r.user, state::held))) return;
  // Who waits until it is durable is not woken for this.
  if (s.eager.load() != 0)
    syscall(SYS_futex, &s.word, FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr,
            abi::order_wake_eager);
}

bool area::is_under_way(std::uint64_t slot, std::uint64_t user) const {
  if (slot >= abi::order_slots) return false;
  std::uint32_t const word = at_->slot[slot].word.load();
  state const is = state_in(word);
  return word >> 3 == user && is != state::free && is != state::done && is != state::abandoned;
}

void area::reclaim(std::uint64_t now_ns) {
  at_->head.lone.store(0);  // one that was killed is still counted
  for (unsigned i = 0; i < abi::order_slots; ++i) {
    abi::order_slot& s = at_->slot[i];
    std::uint32_t word = s.word.load();
    if (word != seen_[i].word) seen_[i] = {word, now_ns};
    state const is = state_in(word);
    if (is == state::free || is == state::posted || is == state::taken || is == state::held)
      continue;
    // Whoever comes back to a slot that was taken from him finds another word, and goes alone.
    std::uint64_t const age_ns = now_ns - seen_[i].since_ns;
    if (age_ns < forgotten_ns) continue;
    bool const is_gone = has_process_ended(s.pid.load());
    // What is claimed and not posted says nothing yet of whose it is.
    bool const is_left = is_gone || is == state::claimed || is == state::abandoned;
    if (!is_left && age_ns < left_lying_ns) continue;
    if (is == state::done && (s.kind.load() & abi::order_barrier) != 0) {
      // To be told, however long it takes until the program asks.
      if (!is_gone && s.result.load() > 0) continue;
      if (s.result.load() > 0) at_->head.failed.fetch_add(1);
      at_->head.unsure.fetch_add(1);
    }
    s.word.compare_exchange_strong(word, word_of(word >> 3, state::free));
  }
}

std::uint64_t area::flags(std::uint64_t key) {
  if (key == abi::no_key) return abi::order_bypass;
  abi::order_set& s = abi::set_of(*at_, key);
  std::uint64_t seen = abi::state_of(*at_, s, key);
  bool is_there = false;
  abi::each_way(s, key, [&](unsigned) { is_there = true; });
  bool const lacked =
      was_full_[static_cast<std::size_t>(&s - at_->set)] || places_taken(s) == abi::order_ways;
  if (!is_there && lacked) seen |= abi::order_bypass;
  return seen;
}

void area::raise(std::uint64_t key, std::uint64_t flag) {
  if (key == abi::no_key) return;
  abi::order_set& s = abi::set_of(*at_, key);
  abi::each_way(s, key, [&](unsigned w) { s.way[w].state.fetch_or(flag); });
}

bool area::raise_surely(std::uint64_t key, std::uint64_t flag) {
  if (key == abi::no_key) return false;
  abi::order_set& s = abi::set_of(*at_, key);
  if (abi::find_or_claim(s, key) == abi::order_ways) return false;
  raise(key, flag);
  return true;
}

void area::clear_logged(std::uint64_t key) {
  if (key == abi::no_key) return;
  abi::order_set& s = abi::set_of(*at_, key);
  abi::each_way(s, key, [&](unsigned w) { s.way[w].state.fetch_and(~abi::order_logged); });
}

void area::let_alone(std::uint64_t key, abi::lone_facts const& facts) {
  if (key == abi::no_key) return;
  abi::order_set& s = abi::set_of(*at_, key);
  abi::each_way(s, key, [&](unsigned w) {
    s.way[w].daemon_word.store(abi::lone_word(facts));
    s.way[w].state.fetch_or(abi::order_lone);
  });
}

void area::ask_again(std::uint64_t key) {
  if (key == abi::no_key) return;
  abi::order_set& s = abi::set_of(*at_, key);
  abi::each_way(s, key,
                [&](unsigned w) { s.way[w].state.fetch_and(~(abi::order_lone | abi::order_own)); });
}

bool area::clear_native(std::uint64_t key) {
  if (key == abi::no_key) return false;
  abi::order_set& s = abi::set_of(*at_, key);
  bool all = true;
  abi::each_way(s, key, [&](unsigned w) {
    std::uint64_t seen = s.way[w].state.load();
    std::uint64_t const to = seen & ~(abi::order_native | abi::order_marked);
    all &= abi::fallbacks_of(seen) == 0 && s.way[w].state.compare_exchange_strong(seen, to);
  });
  return all;
}

void area::take(std::uint64_t key, noted& to) {
  if (key == abi::no_key) return;
  abi::order_set& s = abi::set_of(*at_, key);
  abi::each_way(s, key, [&](unsigned w) {
    abi::order_inode& i = s.way[w];
    // Programs of other jobs note nothing of most files: their words are looked at only.
    constexpr std::uint64_t taken = abi::order_whole | abi::order_moved;
    std::uint64_t const was =
        (i.state.load() & taken) != 0 ? i.state.fetch_and(~taken) : std::uint64_t{0};
    to.is_whole |= (was & abi::order_whole) != 0;
    to.is_moved |= (was & abi::order_moved) != 0;
    auto const take_word = [](std::atomic<std::uint64_t>& word) {
      return word.load() == 0 ? 0 : word.exchange(0);
    };
    if (std::uint64_t const cut = take_word(i.cut); cut != 0)
      to.low_size = std::min(to.low_size, cut - 1);
    if (std::uint64_t const birth = take_word(i.created); birth != 0) to.created = birth;
    core::take(i.written, [&](core::page_range r) { to.pages.add(r.first, r.end()); });
  });
}

void area::free_way(abi::order_set& s, unsigned w, std::uint64_t key) {
  if (places_taken(s) == abi::order_ways) was_full_[static_cast<std::size_t>(&s - at_->set)] = true;
  s.key[w].store(abi::busy_key);
  abi::order_inode& i = s.way[w];
  // A program that is inside its fallback counts itself out later: that must find its own count.
  std::uint64_t seen = i.state.load();
  bool const is_held = (seen & abi::order_native) != 0 || abi::fallbacks_of(seen) != 0;
  if (is_held || !i.state.compare_exchange_strong(seen, 0)) return s.key[w].store(key);
  i.cut.store(0);
  i.created.store(0);
  i.daemon_word.store(0);
  core::take(i.written, [](core::page_range) {});
  s.key[w].store(abi::no_key);
}

void area::free(std::uint64_t key) {
  if (key == abi::no_key) return;
  abi::order_set& s = abi::set_of(*at_, key);
  abi::each_way(s, key, [&](unsigned w) { free_way(s, w, key); });
}

bool area::is_tight(std::uint64_t key) {
  return key != abi::no_key && places_taken(abi::set_of(*at_, key)) + 4 > abi::order_ways;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> area::neighbours(std::uint64_t key) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  for (auto const& k : abi::set_of(*at_, key).key) {
    std::uint64_t const seen = k.load(), device = (seen >> 56) - 1;
    if (seen == abi::no_key || seen == abi::busy_key || device >= abi::order_devices) continue;
    found.emplace_back(at_->head.device[device].load(), seen & ((std::uint64_t{1} << 56) - 1));
  }
  return found;
}

}  // namespace sluice::journal
