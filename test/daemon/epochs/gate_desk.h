// SPDX-License-Identifier: Apache-2.0
// A book of epochs and the letters it wrote, for the tests of gates.
#pragma once

#include <optional>
#include <set>

#include "epochs/gate_book.h"

namespace sluice::test {

using epochs::gate_book;

inline constexpr std::int64_t ms = 1'000'000, second = 1000 * ms;
inline constexpr std::uint64_t hydro = 77;

/// A book and the letters it wrote. Children are numbered; their names are n0, n1 …
struct desk {
  gate_book book;
  std::int64_t now = second;
  std::vector<gate_book::letter> sent;
  bool is_relay;
  std::uint32_t asker = 0;  // the last one

  explicit desk(bool of_relay = false, std::uint64_t number = 5)
      : book(of_relay, number, second), is_relay(of_relay) {}

  void hear(std::uint32_t child, std::uint64_t incarnation = 1, wire::role who = wire::role::node) {
    book.heard(child, "n" + std::to_string(child), who, incarnation, now);
  }
  /// What the asker's gate is called by the book.
  wire::gate_id id(std::uint64_t counter = 1) const {
    return epochs::gate_of("n" + std::to_string(asker), {9, counter});
  }
  void join(std::uint32_t child, wire::gate_member const& m = {hydro, 1, false, false}) {
    hear(child);
    book.join(child, {false, {m}});
  }
  void settle(bool keeps = true) {
    book.tick(now);
    if (keeps) book.kept();
    for (auto& l : book.take()) sent.push_back(std::move(l));
  }
  void pass(std::int64_t ns, std::set<std::uint32_t> const& heard = {}) {
    for (std::int64_t const end = now + ns; now < end;) {
      for (std::uint32_t c : heard) hear(c);
      look();
    }
  }
  /// A book looks at what it has twenty times a second.
  void look() {
    now += 50 * ms;
    settle();
  }
  template <class M>
  std::vector<M> to(std::uint32_t child) {
    std::vector<M> out;
    for (auto const& l : sent)
      if (auto const* m = std::get_if<M>(&l.m); m != nullptr && l.to == child) out.push_back(*m);
    return out;
  }
  void ask(std::uint32_t child, std::uint64_t counter = 1, std::int64_t patience_ns = 30 * second) {
    ask_for(hydro, child, counter, patience_ns);
    settle();
  }
  void ask_for(std::uint64_t job, std::uint32_t child, std::uint64_t counter = 1,
               std::int64_t patience_ns = 30 * second) {
    asker = child;
    book.ask(child, {{9, counter}, job, patience_ns}, now);
  }
  void done(std::uint32_t child, std::uint64_t counter = 1, std::uint32_t error = 0) {
    wire::gate_id const gate = is_relay ? wire::gate_id{9, counter} : id(counter);
    book.done(child, {gate, error, error == 0 ? "" : "the disk is full"}, now);
    settle();
  }
  /// The answer to the asker; none yet: nothing.
  std::optional<wire::gate_open> answer(std::uint32_t child = 0) {
    auto const all = to<wire::gate_open>(child);
    if (all.empty()) return std::nullopt;
    return all.back();
  }
  std::string why_of(std::uint32_t child) {
    return answer(child) ? answer(child)->text : "no answer";
  }
  std::string why() { return why_of(0); }
};

inline desk three_nodes() {
  desk d;
  for (std::uint32_t c : {0u, 1u, 2u}) d.join(c);
  d.settle();
  return d;
}

}  // namespace sluice::test
