// SPDX-License-Identifier: Apache-2.0
#include "segment/far_memory.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace sluice::segment {

/// One process, and what was told it.
struct far_owner {
  far_owner(uid_t of, descriptor&& to) : uid(of), socket(std::move(to)) {}

  uid_t uid;
  descriptor socket;
  std::set<far_region*> regions = {};
  std::deque<memory_words> waiting = {};  // for room in its queue
  bool is_looking = false;                // it has not answered the last look
  bool is_late = false;                   // and we have waited for that
  bool is_asked_to_end = false;           // it has no regions, and is to say so
  bool is_gone = false;
};

namespace {

constexpr char const* too_slow_text = "the memory of jobs of its user comes too slowly";
constexpr char const* no_process_text = "no process is to be had that looks at memory of jobs";
constexpr std::int64_t fork_patience_ms = 2000;

struct socket_ends {
  descriptor ours, its;
};

/// Ours does not wait.
socket_ends make_ends() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw sluice_error(fmt::format("socketpair: {}", std::strerror(errno)));
  socket_ends out{descriptor(ends[0]), descriptor(ends[1])};
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return out;
}

/// Of a kernel that knows no such thing as a memory that is executed, or refuses one.
descriptor make_copy_file() {
  constexpr unsigned no_exec = 8;  // MFD_NOEXEC_SEAL, since Linux 6.3
  int const fd = memfd_create("sluice-copy", MFD_CLOEXEC | no_exec);
  return descriptor(fd >= 0 ? fd : memfd_create("sluice-copy", MFD_CLOEXEC));
}

/// Changes of the same thing, of which the later one stands for both.
bool is_same(memory_words const& a, memory_words const& b) {
  memory_change const &x = a.change, &y = b.change;
  bool const is_same_place = a.what == memory_order::change && b.what == memory_order::change &&
                             a.region == b.region && x.what == y.what && x.index == y.index;
  constexpr touch whole_things[] = {touch::curve, touch::holder, touch::waits_for, touch::known};
  bool const is_whole = std::ranges::find(whole_things, x.what) != std::end(whole_things);
  return is_same_place && (is_whole || (x.word == y.word && x.expected == y.expected));
}

/// False: there is no room, or it is gone.
template <class Words>
bool send_to(far_owner& o, letter<Words>& l) {
  if (l.send_to(o.socket.get())) return true;
  o.is_gone = o.is_gone || errno == EPIPE || errno == ECONNRESET;
  return false;
}

}  // namespace

// ---- a region

far_region::far_region(far_memory& of, far_owner& whose, std::uint32_t number, region_kind kind,
                       void* copy)
    : of_(of),
      whose_(whose),
      number_(number),
      kind_(kind),
      copy_(copy),
      guard_(std::make_unique<guarded_memory>(copy, bytes_of(kind))) {
  whose_.regions.insert(this);
}

far_region::~far_region() {
  of_.let_go(*this);
  guard_.reset();
  munmap(copy_, bytes_of(kind_));
}

void far_region::change(memory_change const& c) {
  ++changed_;
  memory_words w;
  w.what = memory_order::change;
  w.region = number_;
  w.change = c;
  auto const same = std::ranges::find_if(whose_.waiting,
                                         [&](memory_words const& old) { return is_same(old, w); });
  if (same != whose_.waiting.end())
    *same = w;
  else
    whose_.waiting.push_back(w);
  of_.send_waiting(whose_);
}

std::unique_ptr<far_region> far_region::hold_beside(descriptor file, region_kind kind) {
  return of_.hold(std::move(file), kind, whose_.uid);
}

// ---- all

far_memory::far_memory(std::function<void()> const& settle) {
  socket_ends ends = make_ends();
  pid_ = fork();
  if (pid_ == 0) {
    ends.ours = descriptor();
    make_memory_servers(ends.its.release(), settle);
  }
  if (pid_ < 0) throw sluice_error(fmt::format("fork: {}", std::strerror(errno)));
  maker_ = std::move(ends.ours);
}

far_memory::~far_memory() {
  maker_ = descriptor();  // its end
  waitpid(pid_, nullptr, 0);
}

/// The maker touches no memory of users, so it answers at once.
far_owner& far_memory::owner_of(uid_t owner) {
  if (auto const known = owners_.find(owner); known != owners_.end()) {
    known->second->is_asked_to_end = false;
    return *known->second;
  }
  forget_idle();
  socket_ends ends = make_ends();
  letter<std::uint32_t> asked{.words = owner};
  letter<bool> made;
  while (made.take_from(maker_.get())) continue;  // what came too late for who asked
  asked.fds[0] = std::move(ends.its);
  pollfd answer = {maker_.get(), POLLIN, 0};
  bool const is_made = asked.send_to(maker_.get()) && poll(&answer, 1, fork_patience_ms) > 0 &&
                       made.take_from(maker_.get()) && made.words;
  if (!is_made) throw sluice_error(no_process_text);
  auto fresh = std::make_unique<far_owner>(owner, std::move(ends.ours));
  return *owners_.emplace(owner, std::move(fresh)).first->second;
}

/// Its copy is zeros.
std::unique_ptr<far_region> far_memory::begin(descriptor file, region_kind kind, uid_t owner) {
  far_owner& o = owner_of(owner);
  if (o.regions.size() >= most_looked_at) throw error(exit_full, "too many jobs of one owner");
  letter<memory_words> l;
  l.fds = {std::move(file), make_copy_file()};
  std::size_t const bytes = bytes_of(kind);
  if (!l.fds[1] || ftruncate(l.fds[1].get(), static_cast<off_t>(bytes)) != 0)
    throw sluice_error(fmt::format("memory for a copy: {}", std::strerror(errno)));
  void* const copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, l.fds[1].get(), 0);
  if (copy == MAP_FAILED) throw sluice_error("too much memory of jobs is mapped");
  std::unique_ptr<far_region> out(new far_region(*this, o, ++last_number_, kind, copy));
  if (!out->guard_->is_held()) throw sluice_error("too much memory of jobs is mapped");
  l.words.what = memory_order::hold;
  l.words.region = out->number_;
  l.words.kind = kind;
  if (!o.waiting.empty() || !send_to(o, l)) throw error(exit_full, too_slow_text);
  out->is_held_ = true;
  return out;
}

std::unique_ptr<far_region> far_memory::hold(descriptor file, region_kind kind, uid_t owner) {
  auto const known = owners_.find(owner);
  if (known != owners_.end() && known->second->is_looking && !known->second->is_late)
    wait_for({known->second.get()}, long_patience_ns);
  if (known != owners_.end()) take_answer(*known->second);
  bool const is_late = known != owners_.end() && known->second->is_looking;
  if (is_late || !by_.has_time(owner, most_debt_ns)) throw error(exit_full, too_slow_text);
  auto out = begin(std::move(file), kind, owner);
  far_region* const only[] = {out.get()};
  if (begin_look(out->whose_, only, whole)) wait_for({&out->whose_}, long_patience_ns);
  if (!out->is_current()) throw error(exit_full, too_slow_text);
  return out;
}

/// A read waits for no punch, and nobody could prepare more.
std::unique_ptr<far_region> far_memory::hold_new(descriptor file, uid_t owner) {
  descriptor const same(fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  auto out = begin(std::move(file), region_kind::segment, owner);
  constexpr std::size_t filled = offsetof(abi::segment, far_process);
  if (pread(same.get(), out->copy_, filled, 0) != ssize_t{filled})
    throw sluice_error(fmt::format("a new segment cannot be read: {}", std::strerror(errno)));
  return out;
}

void far_memory::let_go(far_region& r) {
  far_owner& o = r.whose_;
  o.regions.erase(&r);
  if (!r.is_held_) return;
  std::erase_if(o.waiting, [&](memory_words const& w) { return w.region == r.number_; });
  memory_words w;
  w.what = memory_order::let_go;
  w.region = r.number_;
  o.waiting.push_back(w);
  send_waiting(o);
}

/// Whose process hangs is kept: he shall not have one after the other. So it answers a look at
/// nothing first.
void far_memory::forget_idle() {
  std::erase_if(owners_, [this](auto const& one) {
    far_owner& o = *one.second;
    if (!o.regions.empty()) return false;
    if (o.is_gone) return true;
    take_answer(o);
    if (!o.is_looking && o.is_asked_to_end) return true;
    o.is_asked_to_end = begin_look(o, {}, 0) || o.is_asked_to_end;
    return false;
  });
}

void far_memory::send_waiting(far_owner& o) {
  while (!o.waiting.empty()) {
    letter<memory_words> l{.words = o.waiting.front()};
    if (!send_to(o, l)) return;  // no room: later
    o.waiting.pop_front();
  }
}

void far_memory::take_answer(far_owner& o) {
  letter<memory_answer> l;
  errno = 0;
  if (!l.take_from(o.socket.get())) {
    o.is_gone = o.is_gone || errno == 0 || errno == ECONNRESET;  // 0: the end
    return;
  }
  o.is_looking = o.is_late = false;
  for (far_region* const r : o.regions) {
    r->has_come_ = std::exchange(r->is_looked_at_, false);
    if (r->has_come_) r->seen_ = r->asked_;
    auto const all = std::span(l.words.broken).first(std::min(l.words.count, most_looked_at));
    r->is_broken_ = r->is_broken_ || std::ranges::find(all, r->number_) != all.end();
  }
}

/// False: an earlier look has not ended, or there is no room for another one. What it would have
/// seen is seen by the next one, whatever that is for.
bool far_memory::begin_look(far_owner& o, std::span<far_region* const> of_him,
                            std::uint32_t parts) {
  bool const was_looking = o.is_looking;
  take_answer(o);
  send_waiting(o);
  // Nobody waits for a look of him: so what has come is to be seen before the next one begins.
  bool const has_come =
      was_looking && !o.is_looking && std::ranges::all_of(of_him, [parts](far_region const* r) {
        return r->has_come_ && r->is_current() && (parts & ~r->asked_parts_) == 0;
      });
  if (has_come && !by_.has_time(o.uid, 0)) return false;
  for (far_region* const r : of_him) r->owed_parts_ |= parts, r->is_owed_ = true;
  if (o.is_looking || !o.waiting.empty()) return false;
  letter<memory_words> l;
  l.words.what = memory_order::look;
  for (far_region const* const r : o.regions)
    if (r->is_owed_) l.words.looks[l.words.count++] = {r->number_, r->owed_parts_};
  if (!send_to(o, l)) return false;
  o.is_looking = true;
  for (far_region* const r : o.regions) {
    if (!std::exchange(r->is_owed_, false)) continue;
    r->asked_parts_ = std::exchange(r->owed_parts_, 0);
    if (r->asked_parts_ != 0) r->asked_ = r->changed_;
    r->is_looked_at_ = true;
  }
  return true;
}

void far_memory::look(std::span<far_region* const> all, std::uint32_t parts, std::int64_t debt_ns) {
  forget_idle();
  std::map<far_owner*, std::vector<far_region*>> by_owner;
  for (far_region* const r : all) by_owner[&r->whose_].push_back(r);
  std::vector<far_owner*> waited;
  for (auto const& [o, of_him] : by_owner) {
    bool const is_waited = by_.has_time(o->uid, debt_ns);
    if (debt_ns != 0 && is_waited && o->is_looking && !o->is_late) wait_for({o}, long_patience_ns);
    if (begin_look(*o, of_him, parts) && is_waited) waited.push_back(o);
  }
  wait_for(std::move(waited), debt_ns == 0 ? patience_ns : long_patience_ns);
  check_gone();
}

void far_memory::look(far_region& one, std::uint32_t parts, std::int64_t debt_ns) {
  far_region* const all[] = {&one};
  look(all, parts, debt_ns);
}

/// Nobody but the administrator ends one.
void far_memory::check_gone() const {
  bool const is_any = std::ranges::any_of(
      owners_, [](auto const& one) { return one.second->is_gone && !one.second->regions.empty(); });
  if (is_any || waitpid(pid_, nullptr, WNOHANG) != 0)  // or somebody else has seen its end
    throw sluice_error("a process that looks at the memory of jobs has ended");
}

/// Those it still waits for share what each wait costs.
void far_memory::wait_for(std::vector<far_owner*> waited, std::int64_t most_ns) {
  std::int64_t const begun_ns = steady_ns();
  std::int64_t seen_ns = begun_ns;
  while (!waited.empty() && seen_ns - begun_ns < most_ns) {
    std::vector<pollfd> each;
    for (far_owner const* o : waited) each.push_back({o->socket.get(), POLLIN, 0});
    std::int64_t const left_ms = (begun_ns + most_ns - seen_ns) / 1'000'000;
    poll(each.data(), each.size(), static_cast<int>(left_ms) + 1);
    std::int64_t const took_ns = steady_ns() - seen_ns;
    seen_ns += took_ns;
    for (far_owner const* o : waited)
      by_.charge(o->uid, took_ns / static_cast<std::int64_t>(waited.size()));
    for (std::size_t i = 0; i < waited.size(); ++i)
      if (each[i].revents != 0) take_answer(*waited[i]);
    std::erase_if(waited, [](far_owner const* o) { return !o->is_looking || o->is_gone; });
  }
  for (far_owner* const o : waited) o->is_late = true;
}

}  // namespace sluice::segment
