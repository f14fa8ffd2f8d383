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
  /// Its file was cut short. Nothing in it means anything any more.
  bool is_broken() const { return is_broken_; }
  /// A look has ended that began after all changes of it.
  bool is_current() const { return is_seen_; }
  /// Is made before the next look.
  void change(memory_change const& c);

 private:
  friend class far_memory;
  far_region(far_memory& of, far_owner& whose, std::uint32_t number, region_kind kind, void* copy)
      : of_(of), whose_(whose), number_(number), kind_(kind), copy_(copy) {}

  far_memory& of_;
  far_owner& whose_;
  std::uint32_t number_;
  region_kind kind_;
  void* copy_;
  bool is_broken_ = false;
  bool is_changed_ = false;    // since the last look began
  bool is_looked_at_ = false;  // a look at it has begun and not ended
  bool is_seen_ = false;       // as it is with all changes
};

class far_memory {
 public:
  /// No look takes longer, nor does the first one of a region.
  static constexpr std::int64_t patience_ns = 50'000'000, first_patience_ns = 200'000'000;
  /// Who owes more has no region looked at for the first time.
  static constexpr std::int64_t most_first_debt_ns = 500'000'000;

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

  /// Of a file as long as its kind, open for reading and writing. Has been looked at whole. Throws
  /// when that takes too long.
  std::unique_ptr<far_region> hold(descriptor file, region_kind kind, uid_t owner);
  /// The same for a segment that was made just now, up to where it is filled. Waits for nobody.
  std::unique_ptr<far_region> hold_new(descriptor file, uid_t owner);

  /// Copies these parts of all. Who has not answered in time is not current then.
  void look(std::span<far_region* const> all, std::uint32_t parts);
  void look(far_region& one, std::uint32_t parts);

 private:
  friend class far_region;
  far_owner& owner_of(uid_t owner);
  std::unique_ptr<far_region> begin(descriptor file, region_kind kind, uid_t owner);
  bool begin_look(far_owner& o, std::span<far_region* const> of_him, std::uint32_t parts);
  void wait_for(std::vector<far_owner*> waited, std::int64_t most_ns);
  void take_answers(far_owner& o);
  void send_waiting(far_owner& o);
  void let_go(far_region const& r);
  void forget_idle();

  descriptor maker_;
  pid_t pid_ = 0;
  std::uint32_t last_number_ = 0;
  std::map<uid_t, std::unique_ptr<far_owner>> owners_;
  payment by_;
};

}  // namespace sluice::segment
