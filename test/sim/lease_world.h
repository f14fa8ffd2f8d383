// SPDX-License-Identifier: Apache-2.0
// Clusters, relays and nodes with the real lease::parent and lease::child, in virtual time. A
// message may be lost, doubled, late or overtaken; each process has its own clock; processes crash,
// restart, reboot, stop and are cut off from each other. After every event the sum of what nodes
// may use is compared with the capacity. Same seed, same run.
#pragma once

#include <array>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "lease/relay.h"
#include "random.h"

namespace sluice::sim {

using lease::rate;
using ns = std::int64_t;
inline constexpr ns ms = 1'000'000;

/// What a run is made of. Drawn from its seed; `shape` fixes the tree.
struct world_config {
  std::string shape = "flat";  // flat | relay | deep | mixed
  unsigned clusters = 1, relays = 0, nodes = 4, supplies = 1;
  lease::pool_owner owner = lease::pool_owner::single;
  lease::timers time;
  std::int64_t clock_ppm = 1000;  // true deviation of clocks
  std::uint32_t escrow_ppm = 290'000, floor_ppm = 10'000;
  std::uint32_t lost_ppm = 50'000, doubled_ppm = 50'000, late_ppm = 10'000;
  ns delay_most = 20 * ms;
  unsigned asks = 0;          // what parents want to give: 0 by demand, 1 anything, 2 everything
  ns fault_mean = 4000 * ms;  // between two faults
  bool calms = true;          // now and then all is well, and full share must come in time
  lease::rules obeys{};
};
world_config draw_config(random& dice, std::string const& shape, lease::rules const& obeys);

struct clock_of {
  ns offset = 0;
  std::int64_t ppm = 0;
  ns at(ns t) const { return offset + t + t / 1'000'000 * ppm; }
};

struct process {
  enum class kind : std::uint8_t { cluster, relay, node };
  kind what = kind::node;
  unsigned level = 0;      // relays away from the top
  bool is_running = true;  // the daemon
  bool is_booted = true;   // the machine
  bool may_return = true;
  ns stopped_until = 0;
  ns far = 0, far_until = 0;  // its messages take so much longer, each way
  clock_of clock;
  std::uint64_t incarnation = 1;
  std::uint64_t lives = 1;
  std::optional<lease::child> up;
  std::optional<lease::parent> down;
  std::optional<lease::child_memory> disk;
  std::vector<unsigned> parents;  // processes it may report to
  unsigned at = 0;                // index into parents
  std::vector<unsigned> children;
  std::vector<rate> demand;  // node: per supply
  ns reported = 0;
};

struct message {
  unsigned from = 0, to = 0;
  bool is_report = false;
  lease::report up;
  lease::grant down;
};

struct violation {
  std::string what;
  ns at = 0;
};

class world {
 public:
  world(world_config const& c, std::uint64_t seed);

  /// Runs for `cycles` control cycles or until something is violated.
  void run(std::uint64_t cycles);

  std::optional<violation> const& broken() const { return broken_; }
  std::vector<std::string> last_events() const;
  std::uint64_t cycles_run() const {
    return static_cast<std::uint64_t>(now_ / config_.time.cycle_ns);
  }

  struct counters {
    std::uint64_t events = 0, faults = 0, calms = 0;
    unsigned __int128 usable = 0, capacity = 0;  // summed over looks, for the mean
  };
  counters const& counts() const { return counts_; }

 private:
  enum class event_kind : std::uint8_t { deliver, report, cycle, look, fault, heal, revive, calm };
  struct event {
    ns at;
    std::uint64_t order;
    event_kind kind;
    unsigned who;  // process, or slot of a message
    bool operator<(event const& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  struct trace {
    ns at;
    char const* what;
    unsigned a, b;
    std::int64_t value;
  };

  // lease_world.cc: processes and messages
  void build();
  void make_capacity();
  std::vector<lease::supply_terms> terms() const;
  lease::timers timers_at(unsigned level) const;
  void start(unsigned id);
  void schedule(ns at, event_kind k, unsigned who);
  bool reaches(unsigned a, unsigned b) const;
  void send(message&& m);
  void handle(event const& e);
  void deliver(unsigned slot);
  void report_of(unsigned id);
  void on_report(process& p, unsigned id, message const& m);
  void on_grant(process& p, unsigned id, message const& m);
  void answer(unsigned id, unsigned child, bool again);
  void answer_all(unsigned id);
  void cycle_of(unsigned id);
  rate demand_below(unsigned id, unsigned supply) const;
  void wanted(process const& p, unsigned child, std::vector<rate>& out);
  ns far_of(unsigned id) const;
  ns local(process const& p) const { return p.clock.at(now_); }

  // lease_check.cc: what must hold
  void check_sum();
  void look();
  void check_lends();
  void check_ledgers();
  void check_answer(process const& p, unsigned child, lease::grant const& g,
                    std::vector<rate> const& before);
  void fail(std::string what);
  void note(char const* what, unsigned a = 0, unsigned b = 0, std::int64_t value = 0);

  // lease_faults.cc: what happens to them
  void fault();
  void crash(unsigned id, ns for_ns);
  void revive(unsigned id);
  void reboot(unsigned id, ns for_ns);
  void cut(ns for_ns);
  void move_away(unsigned id, ns for_ns);
  void shrink();
  void change_demand();
  void begin_calm();
  void end_calm();
  ns patience() const;

  world_config config_;
  random dice_;
  ns now_ = 0;
  std::uint64_t order_ = 0;
  std::priority_queue<event> queue_;
  std::vector<process> processes_;
  std::vector<message> messages_;
  std::vector<unsigned> spare_;
  std::vector<std::vector<bool>> cut_;
  std::vector<rate> capacity_, allowed_, escrow_, floor_, pool_;
  ns allowed_until_ = 0;  // a lowered capacity must be kept from then on
  bool calm_ = false;
  unsigned chosen_ = 0;  // in a calm: the node that wants everything
  std::array<trace, 256> traces_{};
  std::uint64_t traced_ = 0;
  counters counts_;
  std::optional<violation> broken_;
};

}  // namespace sluice::sim
