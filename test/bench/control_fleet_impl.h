// SPDX-License-Identifier: Apache-2.0
// What the simulated children do; see control_fleet.h.
#pragma once

#include <time.h>

#include <algorithm>

#include "test/bench/control_links.h"

namespace sluice::bench {

inline std::string child_name(unsigned i) { return "n" + std::to_string(i); }

inline std::int64_t boot_ns() {
  timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

inline constexpr std::uint64_t the_parent = 1;  // its name as a hash

inline fleet::fleet(fleet_options const& o, std::string const& address)
    : o_(o), links_(connect_links(o, address)) {
  lease::child::own const mine[] = {{1000, 29000, 1}};
  for (unsigned i = 0; i < o_.children; ++i) {
    members_.push_back({lease::child(o_.time, 1)});
    members_.back().lease.set_own(mine);
    auto& jobs = jobs_of_.emplace_back();
    // Neighbours share jobs, as neighbours in a cluster do.
    for (unsigned s = 0; s < o_.streams; ++s)
      jobs.push_back(1 + (std::uint64_t{o_.first + i} * o_.streams / 2 + s) % o_.jobs);
  }
  auto const begin = [this](wire::message& m) {
    std::get<wire::report>(m).supplies = {wire::supply_key("metadata", "t")};
    std::get<wire::report>(m).policy_hash = o_.policy_hash;
  };
  for (member& m : members_) begin(m.said);
  begin(acknowledgement_);
  std::get<wire::report>(acknowledgement_).same_streams = true;
}

inline void fleet::send(unsigned i, wire::message const& m) {
  wire::encode({1, ++members_[i].sequence, 0}, m, bytes_);
  for (unsigned tries = 0; !links_->send(i, bytes_) && tries < 20; ++tries) usleep(500);
}

inline void fleet::send_hello(unsigned i) {
  wire::role const who = o_.relays ? wire::role::relay : wire::role::node;
  send(i, wire::hello{who, o_.policy_hash, child_name(o_.first + i)});
}

inline void fleet::send_report(unsigned i, wire::message& said) {
  auto& r = std::get<wire::report>(said);
  r.lease = members_[i].lease.make_report(the_parent, boot_ns());
  r.applied_sequence = members_[i].applied;
  send(i, said);
}

inline void fleet::prepare() {
  for (unsigned i = 0; i < o_.children; ++i) {
    auto& report = std::get<wire::report>(members_[i].said);
    report.streams.resize(o_.streams);
    report.bins.clear();
    for (unsigned s = 0; s < o_.streams; ++s) {
      wire::stream_report& r = report.streams[s];
      std::uint64_t const dice = random_();
      r.job = jobs_of_[i][s];
      r.served = dice % 200'000;
      r.waiters = dice >> 32 & 7;
      r.blocked_ppm = r.waiters != 0 ? 500'000 : 0;
      r.waiting = r.waiters * 1000;
      if (!o_.relays) continue;
      r.nodes = 10;
      policies::demand_bins bins;
      for (unsigned n = 0; n < 10; ++n)
        policies::add_demand(bins, r.served / 10, n < r.waiters, n < r.waiters);
      wire::put_bins(report, s, bins);
    }
  }
}

inline void fleet::take(unsigned i, std::span<std::byte const> bytes, bool acknowledge) {
  wire::decoded d = wire::decode(bytes);
  if (d.refused != nullptr) return;
  member& m = members_[i];
  if (std::holds_alternative<wire::welcome>(d.body) && !m.is_welcome) {
    m.is_welcome = true;
    ++welcome_;
  }
  if (std::holds_alternative<wire::restart>(d.body)) send_hello(i);
  if (auto const* g = std::get_if<wire::grant>(&d.body)) {
    m.lease.on_grant(the_parent, g->lease, boot_ns());
    m.applied = g->sequence;
    if (!acknowledge) return;
    ++granted_;
    send_report(i, acknowledgement_);
  }
}

inline void fleet::say_hello() {
  auto const hear = [this](unsigned i, std::span<std::byte const> b) { take(i, b, false); };
  for (unsigned from = 0; welcome_ < o_.children; from = 0) {
    for (unsigned i = from; i < o_.children; ++i)
      if (!members_[i].is_welcome) {
        wire::encode({1, ++members_[i].sequence, 0},
                     wire::hello{o_.relays ? wire::role::relay : wire::role::node, o_.policy_hash,
                                 child_name(o_.first + i)},
                     bytes_);
        links_->send(i, bytes_);
      }
    for (std::int64_t const end = boot_ns() + 200'000'000;
         welcome_ < o_.children && boot_ns() < end;)
      links_->receive(1, hear);
  }
}

inline void fleet::round() {
  granted_ = 0;
  auto const hear = [this](unsigned i, std::span<std::byte const> b) { take(i, b, true); };
  for (unsigned i = 0; i < o_.children; ++i) send_report(i, members_[i].said);
  while (granted_ < o_.children) links_->receive(1, hear);
}

inline void fleet::come_back() {
  for (member& m : members_) m.is_welcome = false;
  welcome_ = 0;
  say_hello();
}

}  // namespace sluice::bench
