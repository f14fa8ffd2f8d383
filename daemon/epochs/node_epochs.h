// SPDX-License-Identifier: Apache-2.0
// Cluster epochs on a node: jobs with an `after` area are made known to the parent, and their
// questions are sent up to it. When it asks, a separate process (sync_job.h) syncs here what a job
// has written, because a disk may hang. Without a parent the node answers for itself.
// What stays true: a question is answered 0 only when the parent has opened the gate, or, without
// one, when a sync that began after it ended well. A job that ends is synced before it is
// forgotten. A user whose syncs hang holds up his own questions alone.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/after_area.h"
#include "base/owners.h"
#include "epochs/after_memory.h"
#include "epochs/sync_job.h"
#include "epochs/sync_processes.h"
#include "runtime/log.h"
#include "runtime/uplink.h"
#include "wire/message.h"

namespace sluice::epochs {

/// A rule of a policy's `after`: what a job writes below it is to be durable before it goes on.
struct after_rule {
  std::string root;  // of the target; its file system is synced
  std::int64_t patience_ns = 0;
};

/// What is asked of a job of this node.
struct job_facts {
  std::string_view folder, name;
  core::job_id key;
  std::uint32_t uid = 0;
  std::vector<after_rule> const* after = nullptr;
  bool is_used = false;  // a process was found in it when it was looked at last
};

class node_epochs {
 public:
  /// `owner_of`: see sync_processes. `far`: who touches the areas of other users; null: we.
  node_epochs(std::string run_dir, std::uint64_t incarnation, owner_lookup owner_of,
              segment::far_memory* far, runtime::logger& log);

  /// A parent has let us in: it is told all again.
  void welcomed();
  void hear(wire::message const& m);
  /// Questions, sync jobs, repeats. `jobs`: all of this node. `up` null: there is no parent.
  void turn(std::span<job_facts const> jobs, runtime::uplink* up, std::int64_t now_ns);
  /// A stage waits for an answer, or something is being synced.
  bool is_busy() const;
  /// False: what the job wrote is being synced first.
  bool may_end(std::string_view folder);

 private:
  /// What a stage has asked and is not answered yet.
  struct question {
    unsigned slot = 0;
    std::uint32_t user = 0;
    std::uint64_t id = 0;  // counter of the gate
    std::int64_t until_ns = 0, asked_ns = 0;
    std::string waits_for = {};  // as its slot says
  };
  /// A question that is no more, while the parent may still have its gate open.
  struct taken_back {
    uid_t owner;
    std::uint64_t id;
    std::int64_t until_ns;
  };
  /// Who waits for the next sync: the parent, by a gate; or a question of our own.
  struct waiter {
    std::optional<wire::gate_id> gate;
    std::uint64_t id = 0;
  };
  /// A job with epochs.
  struct member {
    explicit member(sync_processes& processes) : sync(processes) {}
    core::job_id key;
    std::string name;
    std::uint32_t uid = 0;
    std::unique_ptr<after_memory> area;  // null: it has no epochs, or has ended
    std::string order;                   // its order area, by our own link
    std::vector<std::string> roots;
    std::vector<std::int64_t> patience_ns;  // by rule
    std::vector<question> questions;
    std::vector<waiter> waits, served;  // served: by the sync under way
    sync_job sync;
    std::int64_t joined_ns = 0;  // when the parent was told last; 0: never
    std::int64_t ending_ns = 0;  // since when it waits for the last one; 0: it does not
    std::uint64_t book = 0;      // of the cluster, since the job began here
    std::string spoilt;          // why no gate can be opened any more
    bool is_known = false;       // this parent has written us down
    bool is_ending = false, is_last = false, has_ended = false, is_lost = false;
    std::int64_t looked_ns = 0;  // when slots were looked for that nobody comes back for
  };
  struct departed {
    std::uint32_t uid = 0;
    bool is_lost = false;
    std::int64_t told_ns = 0;
  };

  void meet(std::span<job_facts const> jobs);
  bool begin(member& m, std::string const& folder, job_facts const& j);
  void look();
  member* find(core::job_id key);
  static bool is_left(member const& m, unsigned slot, abi::after_state is, std::int64_t now_ns);
  static std::int64_t patience_of(member const& m, unsigned slot);
  void take_questions(member& m, std::int64_t now_ns);
  void take_back(member const& m, question const& q);
  static void waits_for(member& m, question& q, std::string const& whom);
  void put(member& m, question const& q, int error, std::string const& why);
  void ask(member& m, runtime::uplink* up, std::int64_t now_ns);
  bool send(member const& m, question const& q, runtime::uplink& up, std::int64_t now_ns);
  bool has_place(uid_t uid) const;
  void take_turns(runtime::uplink* up, std::int64_t now_ns);
  bool may_depart(member const& m) const;
  uid_t owner(uid_t uid) const { return owner_by(owner_of_, uid); }
  void run_sync(member& m, std::int64_t now_ns);
  void begin_sync(member& m, std::int64_t now_ns);
  void finish(member& m, int error);
  void join(runtime::uplink& up, std::int64_t now_ns);
  void know(member& m, std::uint64_t book);
  void sync(wire::gate_sync const& s);
  void open(wire::gate_open const& o);

  std::string run_dir_;
  std::uint64_t incarnation_, boot_;
  runtime::logger& log_;
  owner_lookup owner_of_;
  segment::far_memory* far_;
  sync_processes processes_;                            // before who has one
  std::map<std::string, member, std::less<>> members_;  // by folder
  std::map<core::job_id, departed> departed_;  // by job: over, and the parent has not taken it out
  std::deque<wire::gate_done> answered_;       // to say again
  std::vector<wire::gate_done> outbox_;
  std::vector<taken_back> taken_back_;
  std::uint64_t last_id_ = 0;
  std::map<uid_t, std::size_t> asked_of_;  // questions that the parent has to answer, by owner
  std::size_t asked_ = 0;                  // of all
  std::string asked_last_;                 // folder of who sent the last one
  bool must_say_all_ = false, has_parent_ = false;
  bool is_taking_ = false;  // questions that were taken, which is to be seen
};

}  // namespace sluice::epochs
