// SPDX-License-Identifier: Apache-2.0
#include "node/process_teller.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "abi/segment.h"
#include "base/clock.h"

namespace sluice::node {

namespace {

constexpr int most_threads_of_a_call = 3;

bool own_thread(std::function<void()> task) {
  try {
    std::thread(std::move(task)).detach();
    return true;
  } catch (std::system_error const&) {
    return false;
  }
}

}  // namespace

/// What no further thread is to read. Whose a process is says /proc/PID itself, which has nothing
/// of its memory. Two of whom that is not known are not of one user.
struct process_teller::avoided {
  std::vector<std::uint32_t> pids, uids;  // that hold up threads now; whose these are

  bool has(std::uint32_t pid, owner const& of) const {
    if (pids.empty()) return false;
    if (std::ranges::find(pids, pid) != pids.end()) return true;
    std::uint32_t const uid = of(pid);
    return uid != no_uid && std::ranges::count(uids, uid) >= std::ptrdiff_t{most_stuck_of};
  }
};

/// Shared with the thread, which alone writes `said` and counts `done`. Of a line the thread finds
/// each next one itself, before it counts.
struct process_teller::batch {
  std::vector<std::uint32_t> pids;
  bool with_uid = false;
  bool is_line = false;
  avoided not_read = {};
  std::vector<answer> said;
  std::atomic<std::size_t> done = 0;
  // Whose process is read, from before that: one that has ended meanwhile is nobody's.
  std::atomic<std::uint32_t> uid = no_uid;

  bool is_over() const { return done.load(std::memory_order_acquire) == pids.size(); }
  std::uint32_t at() const { return pids[std::min(done.load(), pids.size() - 1)]; }

  void read_all(look const& read, owner const& of) {
    for (std::size_t i = 0; i < pids.size(); ++i) {
      uid = of(pids[i]);
      said[i] = {true, read(pids[i], with_uid)};
      uid = no_uid;
      bool const goes_on = !is_line || find_next(i, of);
      done.store(goes_on ? i + 1 : pids.size(), std::memory_order_release);
      if (!goes_on) return;
    }
  }

 private:
  /// False: the line ends with `i`.
  bool find_next(std::size_t i, owner const& of) {
    std::uint32_t const next = said[i].found ? said[i].found->parent : 0;
    if (next <= 1 || i + 1 == pids.size() || not_read.has(next, of)) return false;
    pids[i + 1] = next;
    return true;
  }
};

struct process_teller::desk {
  std::mutex lock;
  std::condition_variable changed;
  std::shared_ptr<batch> work;  // null: none
  bool is_over = false;         // the thread ends when it is back

  void serve(look const& read, owner const& of) {
    std::unique_lock hold(lock);
    while (true) {
      changed.wait(hold, [&] { return is_over || work; });
      // Work that came too late for who asked is done all the same, or its processes were avoided
      // for ever.
      if (!work) return;
      auto const b = std::exchange(work, nullptr);
      hold.unlock();
      b->read_all(read, of);
      hold.lock();
      changed.notify_all();
    }
  }
  void end() {
    std::lock_guard const hold(lock);
    is_over = true;
    changed.notify_all();
  }
};

process_teller::process_teller(starter start, look read, owner of)
    : start_(start ? std::move(start) : own_thread),
      read_(std::move(read)),
      owner_(std::move(of)) {}

process_teller::~process_teller() {
  if (desk_) desk_->end();
}

bool process_teller::has_desk() {
  std::erase_if(stuck_, [](auto const& b) { return b->is_over(); });
  if (desk_) return true;
  if (stuck_.size() >= most_stuck) return false;
  auto fresh = std::make_shared<desk>();
  if (!start_([fresh, read = read_, of = owner_] { fresh->serve(read, of); })) return false;
  desk_ = std::move(fresh);
  return true;
}

process_teller::avoided process_teller::to_avoid() const {
  avoided out;
  for (auto const& b : stuck_) {
    out.pids.push_back(b->at());
    out.uids.push_back(b->uid);
  }
  return out;
}

/// False: it hangs, and is left to itself.
bool process_teller::wait_for(std::shared_ptr<batch> const& b) {
  {
    std::unique_lock hold(desk_->lock);
    desk_->work = b;
    desk_->changed.notify_all();
    auto const patience = std::chrono::nanoseconds(patience_ns);
    if (desk_->changed.wait_for(hold, patience, [&] { return b->is_over(); })) return true;
  }
  std::exchange(desk_, nullptr)->end();
  stuck_.push_back(b);
  return false;
}

std::vector<process_teller::answer> process_teller::ask(std::span<std::uint32_t const> pids,
                                                        bool with_uid) {
  std::vector<answer> out(pids.size());
  std::size_t from = 0;
  for (int thread = 0; thread < most_threads_of_a_call && from < pids.size(); ++thread) {
    if (!has_desk()) break;
    auto const b = std::make_shared<batch>();
    b->with_uid = with_uid;
    std::vector<std::size_t> places;
    avoided const not_read = to_avoid();
    for (std::size_t i = from; i < pids.size(); ++i) {
      if (not_read.has(pids[i], owner_)) continue;
      b->pids.push_back(pids[i]);
      places.push_back(i);
    }
    if (b->pids.empty()) break;
    b->said.resize(b->pids.size());
    bool const is_whole = wait_for(b);
    std::size_t const done = b->done.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < done; ++i) out[places[i]] = b->said[i];
    if (is_whole) break;
    from = done < places.size() ? places[done] + 1 : pids.size();
  }
  return out;
}

process_teller::answer process_teller::ask(std::uint32_t pid) {
  return ask(std::span(&pid, 1)).front();
}

std::optional<process_mark> process_teller::mark_of(std::uint32_t pid) {
  if (pid == 0) return std::nullopt;
  answer const a = ask(pid);
  if (!a.is_said) return process_mark{pid, abi::not_after | abi::ticks_of(boot_ns())};
  if (!a.found) return std::nullopt;
  return process_mark{pid, a.found->start_ticks};
}

std::vector<process_mark> process_teller::line_of(std::uint32_t pid) {
  if (pid <= 1 || !has_desk()) return {};
  auto const b = std::make_shared<batch>();
  b->not_read = to_avoid();
  if (b->not_read.has(pid, owner_)) return {};
  b->is_line = true;
  b->pids.resize(longest_line);
  b->pids.front() = pid;
  b->said.resize(longest_line);
  wait_for(b);
  std::vector<process_mark> out;
  std::size_t const done = b->done.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < done && b->said[i].found; ++i)
    out.push_back({b->pids[i], b->said[i].found->start_ticks});
  return out;
}

bool process_teller::may_live(process_mark const& p) { return may_any_live({p}); }

bool process_teller::may_any_live(std::vector<process_mark> const& all) {
  if (all.empty()) return false;
  std::vector<std::uint32_t> pids;
  for (auto const& p : all) pids.push_back(p.pid);
  auto const said = ask(pids);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].pid == 0) continue;
    if (!said[i].is_said) return true;
    if (said[i].found && abi::is_start(all[i].start_ticks, said[i].found->start_ticks)) return true;
  }
  return false;
}

}  // namespace sluice::node
