// SPDX-License-Identifier: Apache-2.0
// Problem: whoever owns a file can make each touch of its memory wait, for as long as he likes: a
// page fault waits until a punch of that page has ended, no signal ends the wait, and the puncher
// may have less of a processor than nothing.
// Idea: the loop touches no memory of another user. For each owner a process does
// (memory_server.h): it copies what the loop wants to know into memory of the loop's, and makes the
// loop's changes.
// What stays true: the loop waits for an owner's process within what his owner may cost (a part of
// its time), and not again before that has answered. Until then his jobs are as they were seen
// last. Changes of one region are made in their order.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/descriptor.h"
#include "base/foreign.h"
#include "base/guard.h"
#include "segment/memory_server.h"

namespace sluice::segment {

class far_memory;
struct far_owner;

/// A file of a user, of which we have a copy.
class far_region {
 public:
  ~far_region();
  far_region(far_region const&) = delete;
  far_region& operator=(far_region const&) = delete;

  /// As it was when it was looked at last: zeros before that.
  template <class Area>
  foreign<Area>& copy() const {
    return *static_cast<foreign<Area>*>(copy_);
  }
  void const* bytes() const { return copy_; }
  /// Its file was cut short, or there is no memory for the copy. Nothing in it means anything.
  bool is_broken() const { return is_broken_ || guard_->is_broken(); }
  /// Nobody looks at it now, and the last look began after all changes of it.
  bool is_current() const { return seen_ == changed_ && !is_looked_at_; }
  /// It is not current before a look has ended that begins from now on.
  void ask_anew() { ++changed_; }
  /// Is made before the next look.
  void change(memory_change const& c);
  /// Another file of the same owner: as of far_memory.
  std::unique_ptr<far_region> hold_beside(descriptor file, region_kind kind);

 private:
  friend class far_memory;
  far_region(far_memory& of, far_owner& whose, std::uint32_t number, region_kind kind, void* copy);

  far_memory& of_;
  far_owner& whose_;
  std::uint32_t number_;
  region_kind kind_;
  void* copy_;
  std::unique_ptr<guarded_memory> guard_;  // of the copy
  std::uint64_t changed_ = 1;              // the last change
  std::uint64_t asked_ = 0, seen_ = 0;     // that the last look that began, or ended, has seen
  bool is_held_ = false;                   // by the process
  std::uint32_t owed_parts_ = 0;           // of looks that could not begin
  std::uint32_t asked_parts_ = 0;          // of the last one that did
  bool is_owed_ = false;                   // a look, of no parts perhaps
  bool is_looked_at_ = false;
  bool has_come_ = false;  // with the last answer
  bool is_broken_ = false;
};

class far_memory {
 public:
  /// No look takes longer, nor does one for which an owner may be in debt.
  static constexpr std::int64_t patience_ns = 50'000'000, long_patience_ns = 200'000'000;
  /// With a debt up to this regions are looked at for the first time, and for the last.
  static constexpr std::int64_t most_debt_ns = 1'500'000'000;

  /// Who pays for waits: whether an owner has time left, or owes less, and what he used of it.
  struct payment {
    std::function<bool(uid_t, std::int64_t debt_ns)> has_time = [](uid_t, std::int64_t) {
      return true;
    };
    std::function<void(uid_t, std::int64_t took_ns)> charge = [](uid_t, std::int64_t) {};
  };

  /// Forks the process that makes the others, which first runs `settle`. Call it while there is one
  /// thread. Throws.
  explicit far_memory(std::function<void()> const& settle);
  ~far_memory();
  far_memory(far_memory const&) = delete;
  far_memory& operator=(far_memory const&) = delete;

  void pay_by(payment by) { by_ = std::move(by); }

  /// Of a file at least as long as its kind, open for reading and writing. Has been looked at
  /// whole. Throws when that takes too long.
  std::unique_ptr<far_region> hold(descriptor file, region_kind kind, uid_t owner);
  /// The same for a segment that was made just now, up to where it is filled. Waits for nobody.
  std::unique_ptr<far_region> hold_new(descriptor file, uid_t owner);

  /// Copies these parts of all. Waits for owners who have time left, or owe less than `debt_ns`.
  /// Who has not answered in time is not current until he does. Throws when a process has ended:
  /// the daemon is to be started anew.
  void look(std::span<far_region* const> all, std::uint32_t parts, std::int64_t debt_ns = 0);
  void look(far_region& one, std::uint32_t parts, std::int64_t debt_ns = 0);

 private:
  friend class far_region;
  far_owner& owner_of(uid_t owner);
  std::unique_ptr<far_region> begin(descriptor file, region_kind kind, uid_t owner);
  bool begin_look(far_owner& o, std::span<far_region* const> of_him, std::uint32_t parts);
  void wait_for(std::vector<far_owner*> waited, std::int64_t most_ns);
  void take_answer(far_owner& o);
  void send_waiting(far_owner& o);
  void let_go(far_region& r);
  void forget_idle();
  void check_gone() const;

  descriptor maker_;
  pid_t pid_ = 0;
  std::uint32_t last_number_ = 0;
  std::map<uid_t, std::unique_ptr<far_owner>> owners_;
  payment by_;
};

}  // namespace sluice::segment
