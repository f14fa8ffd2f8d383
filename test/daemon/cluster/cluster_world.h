// SPDX-License-Identifier: Apache-2.0
// A cluster in virtual time: the real controllers (arbiter, relay_side, lease::child) under nodes
// that are a few lines each, over a network that delays, loses, doubles and swaps messages. Nothing
// here reads a clock; one step is a millisecond.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cluster/arbiter.h"
#include "cluster/relay_side.h"
#include "lease/child.h"

namespace cluster_world {

using namespace sluice;
using cluster::rate;
using lease::time_ns;

inline constexpr time_ns ms = 1'000'000;
inline constexpr rate k = 1'000'000;  // 1,000 tokens/s in milli-tokens/s

/// One supply for tests: C, classes with these terms, `nodes` names with escrow and floor.
struct shape {
  std::vector<rate> capacity = {100 * k};
  std::vector<std::vector<cluster::terms>> classes;  // [class][supply]
  unsigned nodes = 0;                                // configured
  std::string algorithm = "maxmin";
  time_ns cycle = 100 * ms, lease = 1000 * ms;
  std::optional<rate> lowest = {};  // the first supply is steered from here to its capacity
  bool is_shadow = false;
  rate promisable = policies::unbounded;

  /// What is there in any case.
  rate least(std::size_t supply) const {
    return supply == 0 && lowest && !is_shadow ? *lowest : capacity[supply];
  }
};

inline cluster::policy_table plan_of(shape const& s) {
  cluster::policy_table p;
  p.algorithm = s.algorithm;
  for (std::size_t i = 0; i < s.capacity.size(); ++i) {
    cluster::supply_row row;
    row.resource = i == 0 ? "metadata" : "data";
    row.name = row.resource + "@t" + std::to_string(i);
    row.key = wire::supply_key(row.resource, "t" + std::to_string(i));
    row.capacity = s.capacity[i];
    if (i == 0 && s.lowest) row.steered = policy::auto_capacity{{}, 5 * ms, 100'000, s.is_shadow};
    row.lowest = i == 0 && s.lowest ? *s.lowest : row.capacity;
    row.promisable = s.promisable;
    rate const least = s.least(i);
    rate const e = s.nodes ? least * 29 / 100 / s.nodes : 0;
    rate const f = s.nodes ? least / 100 / s.nodes : 0;
    row.floors = s.nodes * f;
    row.lease.pool = row.capacity - s.nodes * (e + f);
    row.lease.configured = s.nodes;
    row.lease.most_lent = s.nodes * e;
    p.supplies.push_back(row);
  }
  p.classes.push_back({0, "", std::vector<cluster::terms>(s.capacity.size())});
  for (std::size_t c = 0; c < s.classes.size(); ++c)
    p.classes.push_back(
        {static_cast<std::uint32_t>(c + 1), "class" + std::to_string(c + 1), s.classes[c]});
  for (auto const& c : p.classes)
    for (auto const& t : c.by_supply) p.promises_requests = p.promises_requests || t.follows;
  for (unsigned i = 0; i < s.nodes; ++i) p.nodes.push_back("n" + std::to_string(i));
  std::ranges::sort(p.nodes);
  p.text = "{}" + std::to_string(s.capacity[0]) + s.algorithm;
  p.hash = std::hash<std::string>{}(p.text);
  return p;
}

struct weather {
  double loss = 0, twice = 0;
  time_ns least = 1 * ms, most = 3 * ms;  // delay; more than the gap of messages swaps them
};

/// A job on a node. `appetite` is what it would use if nobody held it back.
struct tenant {
  core::job_id job;
  std::uint32_t qos_class = 0;
  std::vector<rate> appetite;
  std::vector<rate> given;    // split of the newest grant
  std::vector<rate> allowed;  // in force now: `given` cut to the lease
  std::vector<bool> blocked;
  rate need = 0;  // as a node's profile says
  rate served(std::size_t s) const { return std::min(appetite[s], allowed[s]); }
};

class world;

struct node {
  std::string name;
  unsigned station = 0;  // index of its parent
  unsigned number = 0;   // as which its parent knows it
  std::unique_ptr<lease::child> up;
  std::uint64_t incarnation = 1;
  std::vector<rate> escrow, floor;
  std::vector<tenant> jobs;
  bool alive = true, cut = false;  // cut: nothing passes the wire
  bool greeted = false, at_once = false, awaiting = false;
  bool streams_due = true;  // else a report only acknowledges
  std::uint64_t parent = 0, parent_life = 0, sequence = 0;
  time_ns reported_at = -1000 * ms, next_report = 0, hello_at = -1000 * ms;

  tenant& add(core::job_id job, std::uint32_t qos_class, std::vector<rate> appetite);
  void remove(core::job_id job);
  tenant* find(core::job_id job);
};

struct station : cluster::outbox {
  world* all = nullptr;
  unsigned self = 0;
  std::unique_ptr<cluster::arbiter> arbiter;
  std::unique_ptr<cluster::relay_side> up;  // relays
  unsigned parent = 0, number = 0;          // relays: whose child, as which
  bool alive = true, is_relay = false;
  std::uint64_t life = 0;  // its incarnation
  time_ns hello_at = -1;   // relay: -1 says hello now
  std::optional<lease::child_memory> disk;
  struct below {
    bool is_relay;
    unsigned index;
  };
  std::vector<below> children;
  bool send(std::uint32_t child, wire::message const& m) override;
};

/// Between two lives: the incarnation of the next is larger, or smaller than all before.
enum class clock_moves : std::uint8_t { on, back };

/// What happens to nodes and jobs at random. Each is one in so many of the events, 0 never.
struct storm_rates {
  unsigned cut = 12, reboot = 12;
  unsigned restart = 0;       // of a station: as kill -9 and a new start
  unsigned remembers = 2;     // of these a relay with its memory: one in so many
  unsigned back = 0;          // a clock went back: of reboots and restarts one in so many
  std::uint32_t classes = 4;  // job number n is of class n up to this, then of class 1
};

class world {
 public:
  world(shape const& s, std::uint64_t seed) : form(s), random(seed) {}

  unsigned add_cluster();
  unsigned add_relay(unsigned parent);
  node& add_node(unsigned parent);
  /// The controller forgets all, but what a relay has on disk if it still has that.
  void restart(unsigned station, bool remembers = false, clock_moves how = clock_moves::on);
  void reboot(node& n, clock_moves how = clock_moves::on);  // it starts again, without memory
  void step();                                              // one millisecond, then `each_step`
  void run(time_ns for_ns) {
    for (time_ns const end = now + for_ns; now < end;) step();
  }
  cluster::arbiter& top() { return *stations[0]->arbiter; }
  /// One millisecond in forty on average something happens: jobs 1 to 4 come, go, change.
  void storm(storm_rates const& rates);

  rate usable(std::size_t supply) const;                     // by all nodes
  rate allowed(core::job_id job, std::size_t supply) const;  // by all nodes that are alive
  rate served(core::job_id job, std::size_t supply) const;

  shape form;
  weather sky;
  time_ns now = 5'000 * ms;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<station>> stations;
  std::vector<std::unique_ptr<node>> nodes;
  std::function<void()> each_step;
  std::function<void(node&, wire::report&)> each_report;  // what a test adds to it
  std::uint64_t messages = 0;

  struct packet {
    bool to_parent;
    bool relay;      // the child of this edge is a relay
    unsigned child;  // index of node or station
    wire::message body;
  };
  void post(packet p);

 private:
  double chance() { return std::uniform_real_distribution<double>(0, 1)(random); }
  void deliver(packet const& p);
  void to_station(station& at, unsigned number, cluster::caller const& who, packet const& p);
  void to_node(node& n, wire::message const& m);
  void to_relay(station& r, wire::message const& m);
  void run_node(node& n);
  void run_station(station& at);
  void enforce(node& n);
  void report(node& n);

  std::multimap<time_ns, packet> wire_;
  // Nanoseconds in life: grant messages are numbered from there.
  std::uint64_t incarnation(clock_moves how) {
    return how == clock_moves::on ? incarnations_ += 1'000'000'000 : backwards_ -= 1'000'000'000;
  }
  std::uint64_t incarnations_ = std::uint64_t{1} << 60, backwards_ = std::uint64_t{1} << 60;
};

/// How long a job that was idle waits for what it is due of the first supply, shortest first.
/// `due`: that, nearly. The nodes of the world want all they can get.
template <class World>
std::vector<time_ns> back_from_idle(World& w, tenant& riser, core::job_id job, rate due) {
  w.run(3000 * ms);  // nodes that start do not lend at once
  std::vector<time_ns> took;
  for (int round = 0; round < 40; ++round) {
    riser.appetite[0] = 0;
    w.run((2000 + 7 * round) * ms);
    riser.appetite[0] = 500 * k;
    time_ns const began = w.now;
    while (w.allowed(job, 0) < due && w.now < began + 1000 * ms) w.run(ms);
    took.push_back(w.now - began);
  }
  std::sort(took.begin(), took.end());
  return took;
}

}  // namespace cluster_world
