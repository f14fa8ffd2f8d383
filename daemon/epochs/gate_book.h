// SPDX-License-Identifier: Apache-2.0
// Cluster epochs: which children have written for a job (the book), and which were asked to sync
// before the job goes on (gates). At the cluster a gate opens when all children in the book have
// acknowledged. A relay is asked by its parent, asks its children, and acknowledges for them. Pure:
// time is an argument, messages leave through take().
// What stays true: a child is written down, on disk and further up, before it is told so, and so
// before it writes. Only its own word, that everything is synced, takes it out again. A child that
// is lost, restarted or silent before it acknowledged makes the gate fail, with its name: never
// open.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lease/message.h"
#include "wire/message.h"

namespace sluice::epochs {

using lease::time_ns;

/// That one node has open at a time.
inline constexpr std::size_t most_gates_of_node = 256;
/// A gate is its asker's: what a child numbers as it likes, its parent calls this, after a restart
/// too. 128 bits of BLAKE2b.
wire::gate_id gate_of(std::string const& child, wire::gate_id const& id);

/// A token bucket as one number: when it would be full again.
struct ask_rate {
  time_ns full_at = 0;
  bool has_one(time_ns now, time_ns each_ns, std::size_t burst) const {
    return full_at - now <= each_ns * (static_cast<time_ns>(burst) - 1);
  }
  void take(time_ns now, time_ns each_ns) { full_at = (full_at > now ? full_at : now) + each_ns; }
};

class gate_book {
 public:
  /// `number`: what a book that remembers nothing is called.
  gate_book(bool is_relay, std::uint64_t number, time_ns start);

  // ---- its memory (gate_text.cc)
  /// The number that to_text() was given. Throws sluice_error when it is no book, and has changed
  /// nothing then.
  std::uint64_t from_text(std::string const& text);
  /// What changes() said after that text, in its order. A last line that has no end, or is none, is
  /// left out where it `may_be_torn`. Throws sluice_error for any other line that is none: the book
  /// is not to be used then.
  void replay(std::string const& lines, bool may_be_torn);
  /// All of it. `log`: number of the lines that will follow it.
  std::string to_text(std::uint64_t log = 0) const;
  /// Rows that have changed since kept(), as one line.
  std::string changes() const;
  bool is_dirty() const { return is_new_ || !touched_.empty(); }
  void kept();

  // ---- who is below
  void heard(std::uint32_t child, std::string const& name, wire::role who,
             std::uint64_t incarnation, time_ns now);
  void gone(std::uint32_t child);

  // ---- what children say
  void join(std::uint32_t child, wire::gate_join const& m);
  void ask(std::uint32_t child, wire::gate_ask const& m, time_ns now);
  void done(std::uint32_t child, wire::gate_done const& m, time_ns now);

  // ---- what the parent of a relay says
  void above_anew();  // whoever it is: it is told all again
  void above_known(wire::gate_known const& m);
  void above_sync(wire::gate_sync const& m, time_ns now);
  void above_open(wire::gate_open const& m);

  /// Losses, repeats, patience.
  void tick(time_ns now);

  static constexpr std::uint32_t above = ~std::uint32_t{0};
  struct letter {
    std::uint32_t to;  // child, or `above`
    wire::message m;
  };
  /// What is to be sent. While the book is dirty nobody is told that he is in it.
  std::vector<letter> take();
  /// Gates that failed since: a line for the log each.
  std::vector<std::string> take_failures();
  /// Children that wanted more rows than there are for them, once a minute each.
  std::vector<std::string> take_refused();

  std::size_t rows() const { return rows_; }
  /// Nodes of gates that were looked at so far.
  std::uint64_t looks() const { return looks_; }

 private:
  /// A child that has the job.
  struct row {
    std::string node;
    std::uint64_t boot = 0;
    std::string lost;        // why something of it may be; the next gate of each asker is told
    bool is_over = false;    // and nothing of the job is there any more
    bool is_passed = false;  // relay: that loss is among those of job_rows::boot
    std::set<std::string> told = {};  // askers, of that loss
    ask_rate asks = {};               // for gates of the job
    void lose(char const* why);
  };
  struct job_rows {
    std::vector<row> rows;
    bool is_above = false;      // relay: the parent has written us down
    bool may_be_above = false;  // relay: it may have, or an earlier life of ours told it to
    bool is_leaving = false;  // relay: and is to take us out first, for all that was before is over
    time_ns told_at = 0;      // relay: when it was told last; 0: of what is now it was not
    time_ns again_ns = 0;     // relay: after so long it is told again
    time_ns over_at = 0;      // when no node was seen to have it; 0: one has, or nobody looked
    std::uint64_t boot = 0;   // relay: grows with losses below, so that the parent notes them
  };
  /// How much one child may have: a relay speaks for many.
  struct bounds {
    std::size_t jobs, losses, owed, gates;
  };
  struct rows_of_node {
    std::set<core::job_id> jobs = {};  // that are not over
    std::size_t losses = 0;            // of jobs that are
    void add(core::job_id job, row const& r);
    void drop(core::job_id job, row const& r);
  };
  struct standing {
    std::string name;
    std::uint64_t incarnation = 0;
    time_ns heard_at = 0;
    bool is_there = false;
    bool is_relay = false;
    std::map<core::job_id, bool> owed;  // to be told that it is in the book; true: out of it
    time_ns refused_at = 0;             // when that was said last
    std::size_t unwritten = 0;          // rows it has changed since, and is owed no word of
    unsigned syncs = 0;                 // that it was asked for since take()
    ask_rate asks = {};                 // for gates of all its jobs
    bounds most() const;
    void owe_nothing();
  };
  struct asked {
    std::string node;
    std::uint64_t incarnation = 0;  // 0: it was not there yet
    time_ns at = 0;                 // when it was asked last
    bool has_synced = false;
  };
  struct gate {
    wire::gate_id id;        // here and below
    wire::gate_id asker_id;  // what the asker calls it
    core::job_id job;
    std::uint32_t from = above;
    time_ns until = 0;  // its patience; when it is over, how long it is remembered
    std::int64_t patience_ns = 0;
    std::vector<asked> nodes;      // sorted by name
    std::size_t acknowledged = 0;  // of these
    asked* find(std::string const& node);
    bool is_unknown = false;  // relay: nobody below is written down for the job
    bool is_over = false;
    std::uint32_t error = 0;
    std::string why;
  };
  struct route {
    wire::gate_id id;        // above
    wire::gate_id asker_id;  // what the child calls it
    std::uint32_t child;
    time_ns until;
  };

  static nlohmann::json text_of(row const& r);
  void read_job(nlohmann::json const& j, bool is_change);
  void count_rows();
  void touch(core::job_id job, std::string const& node) { touched_[job].insert(node); }
  row* find_row(core::job_id job, std::string const& node);
  void set_over(core::job_id job, row& r, bool is_over);
  void add_row(core::job_id job, std::string const& node, std::uint64_t boot);
  void drop_row(core::job_id job, std::string const& node);
  void join_one(std::uint32_t child, wire::gate_member const& m);
  void leave_out(standing& s, wire::gate_join const& m);
  void refuse_more(standing& s);
  void expire_rows(time_ns now);
  void forget_over(time_ns now);
  standing* standing_of(std::string const& node);
  gate* find_gate(wire::gate_id const& id);
  void begin(gate g, time_ns now);
  bool send_sync(gate const& g, asked& a, time_ns now);
  std::string waits_for(gate const& g) const;
  bool tell_losses(gate& g, time_ns now);
  void told(core::job_id job, std::string const& node, std::string const& asks);
  char const* is_lost(asked& a, time_ns now);
  bool look_at(gate& g, time_ns now);
  void end(gate& g, std::uint32_t error, std::string why, time_ns now);
  void answer(gate const& g);
  void tell_above(time_ns now);
  void pass_losses();
  std::uint64_t number() const;

  void ask_above(std::uint32_t child, wire::gate_ask const& m, time_ns now);
  bool has_place(std::uint32_t child) const;
  bool has_turn(std::uint32_t child, core::job_id job, time_ns now);
  bool is_silent(standing const* s, time_ns now) const;

  static constexpr time_ns remembered_ns = 60'000'000'000;     // who asked may ask again
  static constexpr time_ns forgotten_ns = 86'400'000'000'000;  // not heard of for a day
  bool is_relay_;
  std::uint64_t number_, above_number_ = 0;
  time_ns start_;
  bool is_new_ = true;                                     // nothing of it was kept
  std::map<core::job_id, std::set<std::string>> touched_;  // nodes, by job, since it was kept
  std::map<core::job_id, job_rows> jobs_;  // children choose these numbers: no hash table
  std::size_t rows_ = 0;
  std::vector<standing> standing_;  // by child
  std::unordered_map<std::string, std::uint32_t> child_of_;
  std::unordered_map<std::string, rows_of_node> rows_of_;
  std::vector<gate> gates_;
  std::vector<route> routes_;
  std::vector<letter> out_;
  std::vector<std::string> failures_, refused_;
  time_ns ticked_at_ = 0, expired_at_ = 0;
  std::uint64_t looks_ = 0;
};

}  // namespace sluice::epochs
