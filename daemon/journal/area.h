// SPDX-License-Identifier: Apache-2.0
// The daemon's side of one area: requests out of its slots, answers into them, and the notes of its
// processes about an inode. The area can be scribbled over by the job: no index, size or number in
// it is believed, and a file cut short makes an area of zeros (base/guard.h).
#pragma once

#include <sys/stat.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "abi/order_area.h"
#include "base/guard.h"
#include "journal/format.h"
#include "journal/page_set.h"
#include "journal/processes.h"

namespace sluice::journal {

class area;

struct request {
  area* from = nullptr;
  unsigned slot = 0;
  std::uint32_t user = 0;  // of the slot: an answer for another one is not given
  abi::order_request kind = abi::order_request::fsync;
  bool is_barrier = false;  // nobody waits yet
  std::uint32_t pid = 0;
  int fd = -1;
  std::uint64_t device = 0, inode = 0;
  std::shared_ptr<char const> counted = {};  // by the area, as long as there is a copy
};

/// What was noted of an inode, in one or more areas, and has been taken.
struct noted {
  page_set pages;
  std::uint64_t low_size = ~std::uint64_t{0};
  std::uint64_t created = 0;  // abi::birth_word
  bool is_whole = false;
  bool is_moved = false;
};

std::uint64_t device_word(struct stat const& st);

/// Where programs find the journal, to say on it that it is void.
struct log_place {
  std::string path;  // from the root; empty: they do not
  std::uint64_t device = 0, inode = 0;
};

class area {
 public:
  /// Throws sluice::error when it is none of ours. `owner`: whose it must be; -1: anybody's.
  explicit area(std::string const& path, std::int64_t owner = -1);
  ~area();
  area(area const&) = delete;
  area& operator=(area const&) = delete;

  std::string const& path() const { return path_; }
  bool is_broken() const { return guard_->is_broken(); }
  uid_t owner() const { return owner_; }
  /// Of the loop: its processes that asked.
  processes& asking() { return asking_; }
  abi::order_area& memory() const { return *at_; }

  /// Says who serves it. From now on programs ask.
  void open_for(superblock const& log, std::uint64_t incarnation, log_place const& at = {});
  /// Nobody serves it, and the journal holds nothing of it.
  void close_down();
  void beat(std::uint64_t now_ns) { at_->head.heart_ns.store(now_ns); }
  /// The journal may hold files of that device.
  void tell_device(std::uint64_t device);
  /// A program made all of home safe without us, and is done with that: the journal must begin
  /// anew.
  bool is_voided() const;
  /// What they made safe without us recovery does not write over any more.
  void end_void();
  /// Whether programs have to note anything: not while no file is held.
  void rest(bool does) { at_->head.unwatched.store(does ? 1 : 0); }
  bool is_resting() const { return at_->head.unwatched.load() != 0; }
  /// Its programs perhaps did not note which names they took away, until then (CLOCK_REALTIME).
  void noted_nothing_until(std::uint64_t at_ns) { unnoted_until_ns_ = at_ns; }
  std::uint64_t unnoted_until_ns() const { return unnoted_until_ns_; }
  bool is_watched(std::uint64_t key) { return abi::is_watched(*at_, key); }
  /// Home lost bytes that the journal has.
  void refuse(int error) { at_->head.refused.store(static_cast<std::uint32_t>(error)); }

  /// Whoever writes his slots anew while they are served is sent back: what waits is bounded.
  void take_posted(std::vector<request>& to, bool adopt = false);
  void answer(request const& r, int result);
  /// Of a barrier: its program may close the file, we make it durable.
  void hold(request const& r);
  /// The request of that slot and user has no answer yet.
  bool is_under_way(std::uint64_t slot, std::uint64_t user) const;
  /// Somebody wants to know when barriers are: then an answer to one wakes the loop. +1, -1.
  void watch(int change) { watched_ += change; }
  /// Slots that nobody will use become free: of programs that are no more, or that left them lying.
  void reclaim(std::uint64_t now_ns);

  std::uint64_t key_of(std::uint64_t device, std::uint64_t inode) {
    return abi::order_key(*at_, device, inode);
  }
  bool is_bypassed(std::uint64_t key) {
    return (abi::state_of(*at_, abi::set_of(*at_, key), key) & abi::order_bypass) != 0;
  }
  /// Flags of all its places, and bypass where something may have gone unnoted.
  std::uint64_t flags(std::uint64_t key);
  void raise(std::uint64_t key, std::uint64_t flag);
  /// Claims a place if need be; false: there is none.
  bool raise_surely(std::uint64_t key, std::uint64_t flag);
  void clear_logged(std::uint64_t key);
  /// A program that alone overwrites what such a file holds may sync it itself.
  void let_alone(std::uint64_t key, abi::lone_facts const& facts);
  /// The journal is of no use to it.
  void let_go(std::uint64_t key) { raise(key, abi::order_own); }
  /// Nor to the files that are made in that directory. It needs a place.
  void let_go_directory(std::uint64_t key) {
    if (raise_surely(key, abi::order_own)) at_->head.own_directories.store(1);
  }
  /// Until then its programs ask.
  void ask_again(std::uint64_t key);
  /// After a drain. False while a program is inside its fallback.
  bool clear_native(std::uint64_t key);
  void take(std::uint64_t key, noted& to);
  /// What was taken was not made durable after all.
  void give_back(std::uint64_t key) { raise(key, abi::order_whole); }
  void free(std::uint64_t key);
  /// The inodes that share its set.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> neighbours(std::uint64_t key);
  /// Its set has few places left.
  bool is_tight(std::uint64_t key);

 private:
  void free_way(abi::order_set& s, unsigned w, std::uint64_t key);

  std::string path_;
  uid_t owner_ = 0;
  processes asking_;
  std::atomic<int> watched_ = 0;
  std::uint64_t unnoted_until_ns_ = 0;
  abi::order_area* at_ = nullptr;
  std::unique_ptr<guarded_memory> guard_;
  std::vector<std::atomic<bool>> was_full_;  // sets in which a writer may have found no place
  struct slot_seen {
    std::uint32_t word = 0;
    std::uint64_t since_ns = 0;
  };
  std::array<slot_seen, abi::order_slots> seen_ = {};                     // of the loop
  std::shared_ptr<char const> const counted_ = std::make_shared<char>();  // by copies of requests
};

/// An inode in an area.
struct place {
  area* in = nullptr;
  std::uint64_t key = 0;
};

}  // namespace sluice::journal
