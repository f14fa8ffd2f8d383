// SPDX-License-Identifier: Apache-2.0
// The children of this controller and their last reports: children, jobs, and one stream per
// (child, job, supply). Everything is a flat array indexed by a small dense number; a report whose
// streams come in the order of the last one is taken in without a single look-up.
//
// Jobs that span nodes have limits that must hold over all nodes, also while grants change. So each
// stream keeps the largest value that its child may still have in force (`held`), and each flow the
// sum of those. A value is out of force when a later grant message was acknowledged, or when a
// later one was sent and all before it have ended: so a child that acknowledges nothing keeps
// nothing.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/absences.h"
#include "cluster/policy_table.h"
#include "verbs/views/overrides.h"
#include "wire/message.h"

namespace sluice::cluster {

inline constexpr std::uint32_t no_bins = ~std::uint32_t{0};

struct stream {
  core::job_id key;  // of the job
  std::uint32_t job = 0;
  std::uint32_t supply = 0;
  std::uint32_t nodes = 1;
  std::uint32_t waiters = 0;
  std::uint32_t class_key = 0;
  std::uint32_t bins = no_bins;  // first of child::bins; none: the stream of a single node
  std::uint32_t bin_count = 0;
  std::uint32_t blocked_nodes = 0;  // of the histogram, with its weight
  std::uint64_t blocked_weight = 0;
  std::uint32_t blocked_ppm = 0;  // share of the cycle in which it waited, for people
  bool blocked = false;
  rate served = 0;
  std::uint64_t waiting = 0;
  rate need = 0;         // of the whole job, for requests that it is promised
  rate wanted = 0;       // by the last allocation
  rate given = 0;        // in the newest grant message
  rate held_old = 0;     // largest sent up to child::mark and not known to be out of force
  rate held_new = 0;     // largest sent after it
  bool unknown = false;  // it may hold more by a former incarnation of ours
  rate held() const { return held_old > held_new ? held_old : held_new; }
};

/// A stream the child no longer names. A grant that names it may still be on its way, and below a
/// relay it may live on, so it counts until a later message was acknowledged, or until all that
/// were sent have ended: what is below a relay ends with them.
struct ghost {
  std::uint32_t job = 0;
  std::uint32_t supply = 0;
  rate held = 0;
  std::uint64_t sequence = 0;  // gone when a later one is applied
  time_ns until = 0;           // no grant that names it is in force from then on
};

/// A job on a child, as job lists say. They come for new jobs and every 10 s. It ends with its last
/// stream; that of a job without streams when no list has named it for long. That of a child that
/// is silent is remembered for a day, since nobody has said that it is over.
struct tenancy {
  std::uint32_t job = 0;
  std::uint32_t processes = 0;
  std::uint32_t escaped = 0;
  std::uint32_t class_key = 0;
  time_ns heard_at = 0;
  bool is_watched = false;
  bool is_away = false;  // its child is silent: it has a vote for the class, and nothing else
  bool has_vote = false;
  bool is_remembered = false;  // away for so long that nothing is left but its name
};

/// What the lists of all children say of a job.
struct job_total {
  std::uint32_t children = 0;
  std::uint32_t watched = 0;  // of these
  std::uint32_t away = 0;     // children that had it and are silent
  std::uint64_t processes = 0;
  std::uint64_t escaped = 0;
  /// By most of them: one alone does not hide that a job waits elsewhere.
  bool is_watched() const { return 2 * watched > children; }
};

/// A class of a job, as children say it in their lists.
struct class_vote {
  std::uint32_t key = 0;
  std::uint32_t children = 0;
  std::string name;
};

struct child {
  bool known = false;  // said hello
  bool is_relay = false;
  bool live = false;  // heard lately (timers::live_ns), by the last allocation
  bool unanswered = false;
  bool hungry = false;         // has less than it should; is in arbiter::hungry_
  bool knows_lacking = false;  // was told that we lack the pool
  std::string name;
  std::uint64_t policy_hash = 0;
  time_ns policy_sent_at = 0;
  time_ns heard_at = 0;
  std::uint64_t incarnation = 0;
  time_ns t_child = 0;         // of the newest report
  std::uint64_t sequence = 0;  // of the newest grant message to it
  std::uint64_t mark = 0;
  std::uint64_t split_from = 0;       // first grant message that said how jobs share; 0: none yet
  bool acknowledged = false;          // has applied one of those
  bool named = false;                 // has named its streams: a report may leave them out
  time_ns given_until = 0;            // no grant to it is in force from then on
  std::vector<std::uint32_t> keys;    // supplies as it lists them
  std::vector<std::uint32_t> supply;  // ours, by its index
  std::vector<stream> streams;
  std::vector<wire::demand_bin> bins;  // of streams that a relay merged, see stream::bins
  std::vector<rate> wanted;            // by supply
  std::vector<tenancy> jobs;
  std::vector<ghost> ghosts;
  time_ns mark_until =
      0;  // nothing sent up to mark is in force from then on; 0: nothing came after
};

/// `live`, `silent` or `gone`.
char const* state_of(child const& c, time_ns now);

/// Of a stream that has one.
policies::demand_bins histogram_of(child const& c, stream const& s);

struct job {
  core::job_id key;  // 0: free row
  std::uint32_t uid = 0;
  std::uint32_t class_key = 0;  // as most of its nodes say; of as many, what gives more
  std::uint32_t row = 0;        // class in force, index into policy_table::classes
  std::uint32_t uses = 0;       // streams and tenancies
  std::string name;
  std::string qos_class;  // of class_key
  std::vector<class_vote> votes;
  bool is_announced = false;                     // relay: the parent was told who it is
  verbs::job_overrides const* forced = nullptr;  // what people changed of it
  std::uint32_t away = 0;                        // of its uses: tenancies of silent children
  bool is_here() const { return key != 0 && uses > away; }
};

/// What a class gives a job, parts of all supplies together: the limit says most, then what is
/// reserved.
struct job_worth {
  std::uint64_t limit = 0, reservation = 0, weight = 0;
  auto operator<=>(job_worth const&) const = default;
};
job_worth worth_of(policy_table const& p, std::uint32_t class_key);

/// Its class in force, as a row of a policy_table.
std::uint32_t row_in(policy_table const& p, job const& j);

/// A job on one supply, over all children: [job * supplies + supply].
struct flow {
  // summed by each allocation
  rate served = 0;
  std::uint64_t waiting = 0;
  rate need = 0;  // the largest that a node says
  std::uint32_t waiters = 0;
  std::uint32_t streams = 0;
  std::uint32_t first = 0;  // of its streams in the order of the last allocation
  std::uint32_t nodes = 0;
  std::uint32_t blocked_ppm = 0;  // of its stream that waited longest
  bool blocked = false;
  bool has_bins = false;
  rate limit = unbounded;  // on all nodes of the cluster; `deal` may have the part of a relay
  rate granted = 0;        // by the last allocation
  terms deal;              // by the last allocation, overrides applied
  // kept
  rate held = 0;                    // sum of stream::held, and of ghosts
  std::uint32_t unknown = 0;        // streams of which we do not know what they hold
  std::optional<rate> limit_above;  // relay: what its parent says that the limit is
  rate amount = 0;                  // relay: what the parent means it to have
  rate most = 0;                    // relay: largest amount since the window was opened
  std::uint64_t most_weight = policies::unbounded;  // of one node, by the last allocation
};

/// What a report brought.
struct news {
  bool is_old = false;  // overtaken by a newer one: nothing was taken in
  bool edge = false;    // a stream came, went, or its demand turned bounded or unbounded
  bool freed = false;   // a job's limit has room that it had not
};

class roster {
 public:
  explicit roster(policy_table p) { set_policy(std::move(p)); }

  /// The rows `renewed` are other supplies than before; none of them may be used.
  void set_policy(policy_table p, std::span<std::uint32_t const> renewed = {});
  /// By supply: a stream or a ghost is of it.
  std::vector<bool> used() const;
  policy_table const& policy() const { return policy_; }

  /// The row of a child. Grant messages to a new one are numbered from `first_sequence` on.
  child& meet(std::uint32_t c, std::uint64_t first_sequence);
  news take(std::uint32_t c, wire::report const& r, time_ns now);
  void take(std::uint32_t c, wire::job_list const& l, time_ns now);
  void clear(child& c);  // its streams and jobs are gone
  /// It is silent, and all it was given has ended. Its jobs keep their votes for a while: who is
  /// cut off for a moment must not find that another has chosen.
  void silence(child& c);
  /// It is heard again, and has some time to name its jobs.
  void welcome_back(child& c, time_ns now);
  /// Tenancies that nobody confirmed, ghosts and values whose grants have ended. True: a job's
  /// limit has room that it had not.
  bool expire(child& c, time_ns now, std::int64_t cycle_ns);
  /// Rows at the end that no job has go, and the lowest are taken first. When few are left among
  /// many they get new numbers: one that named very many jobs makes no later cycle longer.
  void trim();
  void sent(stream& s, rate value);  // in the grant message that is being written
  /// That message leaves, and no grant in it is in force from `until` on.
  void sent(child& c, time_ns now, time_ns until);
  /// After a change of overrides: jobs are linked to theirs again.
  void set_overrides(verbs::override_book const* o);
  void relink();

  std::uint32_t job_of(core::job_id key) const;  // `nobody` when unknown
  presence presence_of(core::job_id key) const;
  std::uint32_t job_row(core::job_id key);  // made if unknown
  flow& at(std::uint32_t job, std::uint32_t supply) { return flows[job * width_ + supply]; }
  flow const& at(std::uint32_t job, std::uint32_t supply) const {
    return flows[job * width_ + supply];
  }
  std::vector<job_total> totals() const;  // by job
  /// Of all streams together, one of many jobs as often.
  std::uint32_t nodes_below(child const& c, std::uint32_t supply) const;
  std::uint32_t width() const { return width_; }
  terms deal(job const& j, std::uint32_t supply) const;

  static constexpr std::uint32_t nobody = ~std::uint32_t{0};
  std::vector<child> children;
  std::vector<job> jobs;
  std::vector<flow> flows;
  bool has_new_jobs = false;  // some job's name is not announced
  time_ns forgot_until = 0;   // children may hold what a former life of ours gave, up to then

 private:
  void index_supplies(child& c, std::vector<std::uint32_t> const& keys);
  bool is_theirs(wire::job_entry const& e) const;
  bool has_room(child const& c) const;
  void reorder(child& c, wire::report const& r, news& n, time_ns now);
  void take_streams(child& c, wire::report const& r, news& n);
  bool acknowledged(stream& s, bool newest);
  bool acknowledged(child& c, bool newest);
  void drop_held(stream& s);
  void leave_ghost(child& c, stream& s);
  bool lay_ghosts(child& c, std::uint64_t applied, time_ns now);
  void pack();
  void link(job& j);
  void set_class(std::uint32_t row, std::uint32_t class_key);
  void suggest_class(std::uint32_t row, std::uint32_t class_key);
  void drop_streams(child& c);
  void set_away(tenancy& t, bool is_away);
  void vote(tenancy& t, wire::job_entry const& e);
  void withdraw(tenancy& t);
  bool remember(tenancy& t);
  void leave(tenancy& t);
  void end_tenancies(child& c, wire::report const& r, std::span<std::uint32_t const> left);
  void elect(std::uint32_t row);
  void use(std::uint32_t job) { ++jobs[job].uses; }
  void unuse(std::uint32_t job);

  policy_table policy_;
  std::uint32_t width_ = 0;  // supplies per job in `flows`
  verbs::override_book const* overrides_ = nullptr;
  std::map<core::job_id, std::uint32_t> rows_;  // children choose these keys: no hash table
  std::vector<std::uint32_t> free_rows_;
  std::vector<std::uint32_t> slots_;  // scratch by flow: 1 + place of its stream in the last report
  std::vector<stream> scratch_;
  std::vector<std::uint32_t> places_;  // scratch by job: 1 + its place in child::jobs
  std::size_t remembered_ = 0;         // tenancies
};

}  // namespace sluice::cluster
