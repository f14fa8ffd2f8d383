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
  uid_t uid;
  descriptor socket;
  std::set<far_region*> regions = {};
  std::deque<memory_words> waiting = {};  // for room in its queue
  unsigned looks = 0;                     // that it has not answered
  bool is_gone = false;                   // it has ended, or there never was one
};

namespace {

constexpr char const* too_slow_text = "the memory of jobs of its user comes too slowly";

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

/// Changes of the same thing: the later one stands for both.
bool is_same(memory_words const& a, memory_words const& b) {
  return a.what == memory_order::change && b.what == memory_order::change && a.region == b.region &&
         a.change.what == b.change.what && a.change.index == b.change.index;
}

}  // namespace

// ---- a region

far_region::~far_region() {
  of_.let_go(*this);
  munmap(copy_, bytes_of(kind_));
}

void far_region::change(memory_change const& c) {
  is_changed_ = true;
  is_seen_ = false;
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

far_owner& far_memory::owner_of(uid_t owner) {
  forget_idle();
  auto& at = owners_[owner];
  if (at) return *at;
  socket_ends ends = make_ends();
  letter<std::uint32_t> l{.words = owner};
  l.fds[0] = std::move(ends.its);
  if (!l.send_to(maker_.get())) {
    owners_.erase(owner);
    throw sluice_error("no process is to be had that looks at the memory of jobs");
  }
  at = std::make_unique<far_owner>(owner, std::move(ends.ours));
  return *at;
}

/// Its copy is zeros.
std::unique_ptr<far_region> far_memory::begin(descriptor file, region_kind kind, uid_t owner) {
  far_owner& o = owner_of(owner);
  letter<memory_words> l;
  l.fds = {std::move(file), descriptor(memfd_create("sluice-copy", MFD_CLOEXEC))};
  std::size_t const bytes = bytes_of(kind);
  if (!l.fds[1] || ftruncate(l.fds[1].get(), static_cast<off_t>(bytes)) != 0)
    throw sluice_error(fmt::format("memory for a copy: {}", std::strerror(errno)));
  void* const copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, l.fds[1].get(), 0);
  if (copy == MAP_FAILED) throw sluice_error("too much memory of jobs is mapped");
  std::unique_ptr<far_region> out(new far_region(*this, o, ++last_number_, kind, copy));
  o.regions.insert(out.get());
  l.words.what = memory_order::hold;
  l.words.region = out->number_;
  l.words.kind = kind;
  if (!l.send_to(o.socket.get())) throw error(exit_full, too_slow_text);
  return out;
}

std::unique_ptr<far_region> far_memory::hold(descriptor file, region_kind kind, uid_t owner) {
  auto const known = owners_.find(owner);
  if (known != owners_.end()) take_answers(*known->second);
  bool const is_late = known != owners_.end() && known->second->looks != 0;
  if (is_late || !by_.has_time(owner, most_first_debt_ns)) throw error(exit_full, too_slow_text);
  auto out = begin(std::move(file), kind, owner);
  far_region* const only[] = {out.get()};
  if (begin_look(out->whose_, only, whole)) wait_for({&out->whose_}, first_patience_ns);
  if (!out->is_current()) throw error(exit_full, too_slow_text);
  return out;
}

/// A read waits for no punch. Nobody could prepare more.
std::unique_ptr<far_region> far_memory::hold_new(descriptor file, uid_t owner) {
  descriptor const same(fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  auto out = begin(std::move(file), region_kind::segment, owner);
  constexpr std::size_t filled = offsetof(abi::segment, far_process);
  if (pread(same.get(), out->copy_, filled, 0) != ssize_t{filled})
    throw sluice_error(fmt::format("a new segment cannot be read: {}", std::strerror(errno)));
  return out;
}

void far_memory::let_go(far_region const& r) {
  far_owner& o = r.whose_;
  o.regions.erase(const_cast<far_region*>(&r));
  std::erase_if(o.waiting, [&](memory_words const& w) { return w.region == r.number_; });
  memory_words w;
  w.what = memory_order::let_go;
  w.region = r.number_;
  o.waiting.push_back(w);
  send_waiting(o);
}

/// Whose process hangs is kept: he shall not have one after the other.
void far_memory::forget_idle() {
  std::erase_if(owners_, [](auto const& one) {
    far_owner const& o = *one.second;
    return o.regions.empty() && (o.is_gone || (o.waiting.empty() && o.looks == 0));
  });
}

void far_memory::send_waiting(far_owner& o) {
  while (!o.waiting.empty()) {
    letter<memory_words> l{.words = o.waiting.front()};
    if (!l.send_to(o.socket.get())) return;  // no room: later
    o.waiting.pop_front();
  }
}

void far_memory::take_answers(far_owner& o) {
  letter<memory_answer> l;
  while (o.looks != 0 && l.take_from(o.socket.get())) {
    --o.looks;
    for (unsigned i = 0; i < std::min(l.words.count, most_looked_at); ++i)
      for (far_region* const r : o.regions)
        if (r->number_ == l.words.broken[i]) r->is_broken_ = true;
    for (far_region* const r : o.regions)
      if (o.looks == 0 && std::exchange(r->is_looked_at_, false)) r->is_seen_ = !r->is_changed_;
  }
}

/// False: an earlier look has not ended, or there is no room for another one.
bool far_memory::begin_look(far_owner& o, std::span<far_region* const> of_him,
                            std::uint32_t parts) {
  take_answers(o);
  send_waiting(o);
  if (o.looks != 0 || !o.waiting.empty()) return false;
  for (std::size_t from = 0; from < of_him.size(); from += most_looked_at) {
    letter<memory_words> l;
    l.words.what = memory_order::look;
    l.words.parts = parts;
    auto const some =
        of_him.subspan(from, std::min<std::size_t>(most_looked_at, of_him.size() - from));
    for (far_region const* const r : some) l.words.regions[l.words.count++] = r->number_;
    if (!l.send_to(o.socket.get())) return false;
    for (far_region* const r : some) {
      r->is_changed_ = false;
      r->is_looked_at_ = true;
    }
    ++o.looks;
  }
  return true;
}

void far_memory::look(std::span<far_region* const> all, std::uint32_t parts) {
  forget_idle();
  std::map<far_owner*, std::vector<far_region*>> by_owner;
  for (far_region* const r : all) by_owner[&r->whose_].push_back(r);
  std::vector<far_owner*> waited;
  for (auto const& [o, of_him] : by_owner)
    if (begin_look(*o, of_him, parts) && by_.has_time(o->uid, 0)) waited.push_back(o);
  wait_for(std::move(waited), patience_ns);
  // Nobody but the administrator ends it.
  for (auto const& [o, of_him] : by_owner)
    if (o->is_gone) throw sluice_error("a process that looks at the memory of jobs has ended");
}

void far_memory::look(far_region& one, std::uint32_t parts) {
  far_region* const all[] = {&one};
  look(all, parts);
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
    for (std::size_t i = 0; i < waited.size(); ++i) {
      take_answers(*waited[i]);
      waited[i]->is_gone = waited[i]->looks != 0 && (each[i].revents & POLLHUP) != 0;
    }
    std::erase_if(waited, [](far_owner const* o) { return o->looks == 0 || o->is_gone; });
  }
}

}  // namespace sluice::segment
