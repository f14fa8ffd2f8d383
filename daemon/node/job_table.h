// SPDX-License-Identifier: Apache-2.0
// The jobs of this node: made, joined, taken over after a restart, cleared away. A job belongs to
// the uid that asked first; its identity is (uid, name), so nobody can even name another's job
// when joining. Refusals are sentences for the user.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/owners.h"
#include "local/local.h"
#include "node/job.h"
#include "node/journal_watch.h"
#include "node/place_finder.h"
#include "node/process_teller.h"
#include "node/scheduler.h"
#include "node/site_state.h"
#include "policy/mount_table.h"
#include "runtime/log.h"
#include "segment/remains.h"
#include "segment/segment_file.h"

namespace sluice::node {

struct join_request {
  std::optional<std::string> name, qos_class;
  std::vector<std::string> limits;
  std::vector<std::string> orders;              // see limit_wish
  std::vector<std::string> small;               // the same
  std::map<std::string, std::string> costs;     // the same
  std::map<std::string, policy::place> places;  // the same
  bool monitor = false;
  bool policy_channels = true;
  unsigned path_parts = 0;    // note the directories it uses, so many parts of their names; 0: no
  std::int64_t asked_ns = 0;  // how long ago it was asked for first
};

struct joined {
  job* who = nullptr;
  bool created = false;
};

class job_table {
 public:
  static constexpr std::size_t most_jobs = 1024;
  static constexpr std::size_t kept_jobs = most_jobs / 8;  // the last ones, for users without one
  // A segment takes some 7 MB, an order area 10: the jobs of a user stay below half a gigabyte.
  static constexpr std::size_t most_of_an_owner = 32;
  static constexpr std::size_t most_journal_folders_of_an_owner = 8;  // with files of his, too

  /// `tidier`: null: its tasks are done at once. `start`: see process_teller. `owner_of`: whose a
  /// job is, where bounds hold for one user. `read`: how one looks at a process. `far`: who touches
  /// the memory of other users' jobs; null: we.
  job_table(std::string run_dir, std::string library, std::string node_name, runtime::logger& log,
            process_teller::starter start = {}, owner_lookup owner_of = {},
            segment::tidier* tidier = nullptr, process_teller::look read = read_stat,
            segment::far_memory* far = nullptr);

  /// These parts (segment::part) of all jobs, or of one, are seen as they are now. Of a job whose
  /// owner's memory does not come in time they are as before.
  void look(std::uint32_t parts) const;
  void look(std::span<job const* const> some, std::uint32_t parts, std::int64_t debt_ns = 0) const;
  void look(job const& j, std::uint32_t parts, std::int64_t debt_ns = 0) const;
  /// The same whole, for the last time. Its owner may be in debt for that.
  void look_last(std::span<job const* const> some) const;
  void look_last(job const& j) const;
  /// What was written to all is in force, but for those whose memory does not come in time.
  void settle() const { look(0u); }
  /// The same of one. False: it does not come in time.
  bool settle(job const& j) const;

  /// All that an earlier daemon left: the living are taken over, the dead removed. What cannot be
  /// taken over, such as a segment of an earlier version, is left alone while it may live.
  void adopt(site_state const& site);
  /// Takes over what was left alone and can be now (its owner held a lease on the segment, say);
  /// removes those in which nobody is left.
  void look_at_left_alone(site_state const& site);
  /// Folders and owners of those, and what was written down of one.
  std::map<std::string, uid_t> left() const;
  std::optional<job_record> record_of(std::string const& folder) const;
  /// Folders in which a walk through all processes has found one. Those of what was left alone stay
  /// until walks find none: programs of it load the library there.
  void heed_walk(std::set<std::string> const& inhabited);
  /// Cuts back files that their owners let grow. Clears away those of jobs that are over, and of
  /// begun ones that nobody asks for any more.
  void keep_sizes();
  /// To be polled, -1: not; then heed_tidier() says what was done.
  int tidier_fd() const { return tidier_.fd(); }
  void heed_tidier();
  /// Another number: there may be room for a job that had none before.
  std::uint64_t changes_of_room() const { return changes_of_room_; }
  std::size_t free_places() const { return most_jobs - std::min(most_jobs, jobs_.size()); }

  joined join(local::peer const& who, join_request const& request, site_state const& site);

  /// Jobs with durable targets are refused while what a journal of their user has may not be in
  /// their files. The scheduler's wait for a while, then they are made without such targets, and
  /// say so in their note. Nobody to ask: all are fine.
  void asks_home(std::function<home_state(uid_t)> ask) { home_of_ = std::move(ask); }
  /// Of jobs with such targets, see journals_given().
  std::map<uid_t, gid_t> users_of_journals(std::map<uid_t, bool> const& known) const;
  /// Jobs that wait are worth a try.
  void may_have_room() { ++changes_of_room_; }
  /// Whether somebody found no room since, and which jobs are over is to be seen at once.
  bool take_wants_count() { return std::exchange(wants_count_, false); }

  /// Finds the streams of a job in its channels; again when supplies were added.
  static void bind_streams(job& j, site_state const& site, std::int64_t now_ns);
  /// The same for all; a job whose segment was scribbled over stays as it is.
  void bind_all(site_state const& site, std::int64_t now_ns);

  /// Makes the job that the scheduler announces, or binds the one its owner has made. What cannot
  /// be (a class he may not use, a limit that is none) is left out and said in its note.
  /// `note`: what is to be said of a new one beside that. Throws, segment::no_room among others.
  job& schedule(announcement const& a, site_state const& site, std::string note = {});
  bool has_scheduled(std::string const& name) const;
  /// The scheduler has done with it: it goes when nobody is left in it.
  void release(job& j);
  /// A process of the scheduler, all below which is the job.
  void add_step(job& j, std::uint32_t pid, bool is_batch);
  /// The scheduler's job that a process is in, by what it cannot write itself: its control group, a
  /// step above it, or that its user has no other; of several the one he names. Null: in none.
  job* scheduled_job_of(local::peer const& who, std::string const& hint);
  /// Joining from inside: the class is the job's.
  joined join_scheduled(job& j, local::peer const& who, join_request const& request,
                        site_state const& site);

  std::optional<process_mark> mark_of(local::peer const& who);
  /// Who asked to join, until it has attached or died.
  void add_joiner(job& j, local::peer const& who);

  void remove(job& j, std::string_view why);

  /// Rewrites job.json.
  void keep(job const& j);

  job* find(uid_t uid, std::string const& name) const;

  std::vector<std::unique_ptr<job>> const& all() const { return jobs_; }
  /// Keys of all, and of those that were left alone.
  std::set<core::job_id> keys() const;
  std::string const& run_dir() const { return run_dir_; }
  place_finder& places() { return places_; }
  process_teller& processes() { return processes_; }
  owner_lookup const& owners() const { return owner_of_; }

 private:
  void adopt_one(std::string const& folder, site_state const& site,
                 segment::job_age age = segment::job_age::older);
  bool can_take_over(std::string const& folder, site_state const& site);
  job& make(local::peer const& who, std::string const& name, join_request const& request,
            site_state const& site, std::string* note = nullptr);
  void keep_scheduled(job const& j);
  job& make_for(announcement const& a, local::peer const& who, std::string const& qos_class,
                site_state const& site, std::string& note);
  job* below_a_step(pid_t pid);
  segment::life_facts facts_of(job_record const& r);
  uid_t owner(uid_t uid) const { return owner_by(owner_of_, uid); }
  void check_room(uid_t uid, std::int64_t asked_ns);
  void check_home(uid_t uid, policy::compiled& limits, std::string* note) const;
  void make_files(segment::new_job const& made, policy::compiled const& limits);
  /// True: a lease keeps us from a file that has grown.
  bool keep_made_size(std::string const& folder, uid_t uid);
  bool cut_back(std::string const& folder, segment::made_sizes const& sizes, uid_t uid);
  void heed_lease(job& j, bool has_lease);
  void keep_left_alone_sizes();
  /// `held`: of its files.
  void retire(std::string const& folder, uid_t uid, segment::held_areas held = {});
  void make_room();
  void check_name(local::peer const& who, std::string const& name) const;
  std::string folder_of(uid_t uid, std::string const& name) const;
  struct whose {
    uid_t uid;
    std::string name;
  };
  static std::optional<whose> named_by(std::string const& folder);
  std::string free_name(local::peer const& who) const;

  std::string run_dir_, library_, node_name_;
  runtime::logger& log_;
  std::vector<std::unique_ptr<job>> jobs_;  // sorted by folder
  place_finder places_;
  std::function<home_state(uid_t)> home_of_;
  process_teller processes_;
  owner_lookup owner_of_;
  segment::far_memory* far_;
  segment::tidier own_tidier_;  // where nobody else is there for it
  segment::tidier& tidier_;
  segment::remains remains_;      // of jobs that are over, and whose files somebody holds
  std::map<uid_t, int> rescues_;  // looks for room since the last keep_sizes(), by owner
  struct begun {
    begun(std::string const& run_dir, std::string const& whose) : files(run_dir, whose) {}
    segment::begun_job files;
    std::int64_t tried_ns = 0;
  };
  std::map<uid_t, begun> begun_;  // jobs that found no room yet, one of an owner
  std::map<std::string, std::int64_t> files_changed_ns_;  // by folder, when looked at last
  std::uint64_t changes_of_room_ = 0;
  bool wants_count_ = false;
  struct left_alone {
    std::string folder;
    uid_t uid = 0;
    unsigned leased_looks = 0;
    unsigned empty_walks = 0;  // in a row
  };
  std::vector<left_alone> left_alone_;  // jobs that could not be taken over, and live
};

/// A process that lives, once in a list of at most so many; of more than that the newest. One that
/// asks again and again costs no look at the others: room is made where there is none, and without
/// /proc, whose cost is up to them.
void keep_mark(std::vector<process_mark>& list, process_mark const& mark, std::size_t most);

/// Whether there is room for one more job of a user who has `of_owner`, beside `all`.
bool has_room(std::size_t all, std::size_t of_owner, bool is_root);

/// Users and groups of jobs that want a journal, in the order of the jobs: who gets one, with the
/// group of his first job. `known`: whose journals or folders are there; true: a journal. Of the
/// uids of one owner only so many do, for journals have a bounded room and their folders are kept.
std::map<uid_t, gid_t> journals_given(std::vector<std::pair<uid_t, gid_t>> const& wanted,
                                      std::map<uid_t, bool> const& known,
                                      owner_lookup const& owner_of);

/// Supplies that a job is not metered by because it began before the policy named them.
std::vector<std::string> not_governed(site_state const& site, job const& j);

/// The class of a new job: the one wished for, else the policy's default. Throws a usage error.
std::string class_for(local::peer const& who, std::optional<std::string> const& wish,
                      site_state const& site);

/// A job that runs gets no other durable or hinted directories. Throws; whoever asks may run by
/// himself.
void check_keeps_targets(job const& j, join_request const& request);

}  // namespace sluice::node
