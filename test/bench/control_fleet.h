// SPDX-License-Identifier: Apache-2.0
// Many simulated children of one controller, in one process: each speaks the real protocol (hello,
// report, acknowledgement; lease::child keeps its grants) over a connection of its own. What they
// will say is made up before the clock starts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "lease/child.h"
#include "wire/codec.h"
#include "wire/keys.h"

namespace sluice::bench {

struct fleet_options {
  unsigned first = 0;  // number of the first child of this process
  unsigned children = 100;
  unsigned streams = 10;            // per child
  unsigned jobs = 100;              // in all
  bool relays = false;              // the children are relays: their streams carry histograms
  std::string transport = "curve";  // plain, curve, epoll
  std::uint64_t policy_hash = 0;
  lease::timers time;
  wire::key server{};                // curve
  std::vector<wire::key_pair> keys;  // curve: one per child, from number 0 on
};

/// N connections; messages are whole.
class links {
 public:
  virtual ~links() = default;
  virtual bool send(unsigned child, std::span<std::byte const> bytes) = 0;
  /// Hands on what has arrived; waits up to `wait_ms` when nothing has.
  virtual void receive(int wait_ms,
                       std::function<void(unsigned, std::span<std::byte const>)> const& take) = 0;
};

class fleet {
 public:
  fleet(fleet_options const& o, std::string const& address);

  void say_hello();  // until all are welcome
  void prepare();    // makes up the streams of the next reports
  void round();      // all report, and acknowledge the grants
  /// Reports until all are welcome again, after the controller was away.
  void come_back();

 private:
  struct member {
    lease::child lease;
    std::uint64_t sequence = 0;
    std::uint64_t applied = 0;
    bool is_welcome = false;
    wire::message said = wire::report{};
  };

  void send(unsigned i, wire::message const& m);
  void send_hello(unsigned i);
  void send_report(unsigned i, wire::message& said);
  void take(unsigned i, std::span<std::byte const> bytes, bool acknowledge);

  fleet_options o_;
  std::unique_ptr<links> links_;
  std::vector<member> members_;
  std::mt19937_64 random_{1};
  wire::message acknowledgement_ = wire::report{};
  std::vector<std::vector<std::uint64_t>> jobs_of_;
  std::vector<std::byte> bytes_;
  unsigned granted_ = 0, welcome_ = 0;
};

}  // namespace sluice::bench
