// SPDX-License-Identifier: Apache-2.0
// Gates: who was asked to sync for a job, and what came of it. See gate_book.h for what stays true.
#include <errno.h>
#include <fmt/format.h>
#include <sodium/crypto_generichash.h>

#include <algorithm>
#include <utility>

#include "epochs/gate_book.h"

namespace sluice::epochs {

namespace {

constexpr time_ns lost_ns = 5'000'000'000;       // not a word for so long
constexpr time_ns find_us_ns = 10'000'000'000;   // children need it after our own start
constexpr time_ns ask_again_ns = 1'000'000'000;  // a message may go with its connection
constexpr char const* too_many = "the controller has too many gates to watch";
constexpr char const* too_fast = "gates of the job come too fast, and take turns";
constexpr char const* nobody_said = "nobody has said here that the job has epochs";
constexpr std::size_t most_gates = 4096;                 // that are open
constexpr std::size_t kept_for_others = most_gates / 8;  // for children that have none
// Each gate is a message to all nodes of its job. As many as a child has places for may come at
// once, then so many a second.
constexpr time_ns places_anew_ns = 8'000'000'000;  // 32 gates a second of a node
constexpr std::size_t busy_jobs = 4;               // of one child: more of them share
// At a time, of one child: half of what its queue holds. What finds a queue full is lost, and all
// that is due at once would be so again.
constexpr unsigned most_syncs = 8;

}  // namespace

wire::gate_id gate_of(std::string const& child, wire::gate_id const& id) {
  wire::gate_id out;
  static_assert(sizeof out == crypto_generichash_BYTES_MIN);
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, sizeof out);
  crypto_generichash_update(&state, reinterpret_cast<unsigned char const*>(&id), sizeof id);
  crypto_generichash_update(&state, reinterpret_cast<unsigned char const*>(child.data()),
                            child.size());
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(&out), sizeof out);
  return out;
}

gate_book::asked* gate_book::gate::find(std::string const& node) {
  auto const at = std::ranges::lower_bound(nodes, node, {}, &asked::node);
  return at != nodes.end() && at->node == node ? &*at : nullptr;
}

std::vector<std::string> gate_book::take_failures() { return std::exchange(failures_, {}); }

gate_book::gate* gate_book::find_gate(wire::gate_id const& id) {
  auto const at =
      std::find_if(gates_.begin(), gates_.end(), [&](gate const& g) { return g.id == id; });
  return at == gates_.end() ? nullptr : &*at;
}

void gate_book::ask_above(std::uint32_t child, wire::gate_ask const& m, time_ns now) {
  wire::gate_id const id = gate_of(standing_[child].name, m.gate);
  if (std::ranges::none_of(routes_, [&](route const& r) { return r.id == id; })) {
    auto const of_child =
        std::ranges::count_if(routes_, [&](route const& r) { return r.child == child; });
    if (static_cast<std::size_t>(of_child) >= standing_[child].most().gates)
      return out_.push_back({child, wire::gate_open{m.gate, number(), EBUSY, too_many}});
    if (!has_turn(child, m.job, now))
      return out_.push_back({child, wire::gate_open{m.gate, number(), EBUSY, too_fast}});
    routes_.push_back({id, m.gate, child, now + m.patience_ns + remembered_ns});
  }
  out_.push_back({above, wire::gate_ask{id, m.job, m.patience_ns}});
}

/// For one gate more of this child.
bool gate_book::has_place(std::uint32_t child) const {
  std::size_t open = 0, of_child = 0;
  for (gate const& g : gates_) {
    if (g.is_over) continue;
    ++open;
    of_child += g.from == child;
  }
  return of_child < standing_[child].most().gates &&
         open < (of_child == 0 ? most_gates : most_gates - kept_for_others);
}

/// Takes it, if the child may begin one more gate of the job now.
bool gate_book::has_turn(std::uint32_t child, core::job_id job, time_ns now) {
  standing& s = standing_[child];
  row* const of = find_row(job, s.name);
  std::size_t const burst = s.most().gates;
  time_ns const each_ns = places_anew_ns / static_cast<time_ns>(burst);
  time_ns const of_all_ns = each_ns / static_cast<time_ns>(busy_jobs);
  if (!s.asks.has_one(now, of_all_ns, burst * busy_jobs)) return false;
  if (of != nullptr && !of->asks.has_one(now, each_ns, burst)) return false;
  s.asks.take(now, of_all_ns);
  if (of != nullptr) of->asks.take(now, each_ns);
  return true;
}

void gate_book::ask(std::uint32_t child, wire::gate_ask const& m, time_ns now) {
  if (child >= standing_.size()) return;
  if (is_relay_) return ask_above(child, m, now);
  wire::gate_id const id = gate_of(standing_[child].name, m.gate);
  if (gate const* const there = find_gate(id)) {
    if (there->job != m.job) return;
    if (there->is_over) return answer(*there);
    // who asks again hears whom he waits for
    return out_.push_back(
        {child, wire::gate_open{m.gate, number(), EINPROGRESS, waits_for(*there)}});
  }
  gate g;
  g.id = id;
  g.asker_id = m.gate;
  g.job = m.job;
  g.from = child;
  g.patience_ns = m.patience_ns;
  bool const fits = has_place(child);
  if (fits && has_turn(child, m.job, now)) return begin(std::move(g), now);
  g.error = EBUSY;  // it is asked again
  g.why = fits ? too_fast : too_many;
  answer(g);
}

void gate_book::above_sync(wire::gate_sync const& m, time_ns now) {
  if (gate const* const there = find_gate(m.gate)) {
    if (there->is_over) answer(*there);
    return;
  }
  gate g;
  g.id = m.gate;
  g.job = m.job;
  g.patience_ns = m.patience_ns;
  begin(std::move(g), now);
}

void gate_book::above_open(wire::gate_open const& m) {
  auto const at =
      std::find_if(routes_.begin(), routes_.end(), [&](route const& r) { return r.id == m.gate; });
  if (at == routes_.end()) return;
  wire::gate_open open = m;
  above_number_ = m.book;
  open.gate = at->asker_id;
  open.book = number();
  out_.push_back({at->child, std::move(open)});
  if (m.error != EINPROGRESS) routes_.erase(at);  // who has lost the answer asks again
}

void gate_book::begin(gate g, time_ns now) {
  g.until = now + g.patience_ns;
  auto const of = jobs_.find(g.job);
  bool const is_known = of != jobs_.end();
  std::string const asks = g.from == above ? "" : standing_[g.from].name;
  if (!asks.empty() &&
      find_row(g.job, asks) == nullptr) {  // remembered by nobody: it costs no room
    g.error = EIO;
    g.why = nobody_said;
    return answer(g);
  }
  if (is_known)
    for (row const& r : of->second.rows)
      if (!r.is_over) g.nodes.push_back({.node = r.node, .at = now - ask_again_ns});
  std::ranges::sort(g.nodes, {}, &asked::node);
  gate& kept = gates_.emplace_back(std::move(g));
  kept.is_unknown = !is_known && asks.empty();
  if (kept.is_unknown) return end(kept, ENOENT, nobody_said, now);
  look_at(kept, now);
}

/// Those that have not acknowledged; as many as fit where it is shown.
std::string gate_book::waits_for(gate const& g) const {
  std::string out;
  for (asked const& a : g.nodes)
    if (!a.has_synced) out += (out.empty() ? "" : " ") + a.node;
  return out.substr(0, wire::most_gate_text);
}

/// Of a loss the next gate of each asker is told, once: who goes on after that error knows, and
/// nobody else does.
bool gate_book::tell_losses(gate& g, time_ns now) {
  auto const of = jobs_.find(g.job);
  if (of == jobs_.end()) return false;
  std::string const asks = g.from == above ? "" : standing_[g.from].name;
  auto const r = std::ranges::find_if(of->second.rows, [&](row const& one) {
    return !one.lost.empty() && !one.told.contains(asks) && (one.is_over || g.find(one.node));
  });
  if (r == of->second.rows.end()) return false;
  std::string const why = fmt::format("node {} {}", r->node, r->lost);
  if (!is_relay_) told(g.job, std::string(r->node), asks);  // see pass_losses
  end(g, EIO, why, now);
  return true;
}

/// A loss of which all were told that have the job is forgotten. The child that lost something is
/// one of them: it may ask, too, or be a relay that asks for many.
void gate_book::told(core::job_id job, std::string const& node, std::string const& asks) {
  row& lost = *find_row(job, node);
  lost.told.insert(asks);
  touch(job, node);
  bool const is_heard = std::ranges::all_of(
      jobs_[job].rows, [&](row const& r) { return r.is_over || lost.told.contains(r.node); });
  if (!is_heard) return;
  lost.lost.clear();
  lost.told.clear();
  if (lost.is_over) drop_row(job, node);
}

/// False: it has its turn later.
bool gate_book::send_sync(gate const& g, asked& a, time_ns now) {
  standing* const s = standing_of(a.node);
  if (s == nullptr || !s->is_there) return true;
  if (a.incarnation == 0) a.incarnation = s->incarnation;
  if (s->syncs == most_syncs) return false;
  ++s->syncs;
  a.at = now;
  out_.push_back({child_of_.at(a.node), wire::gate_sync{g.id, g.job, g.patience_ns}});
  return true;
}

bool gate_book::is_silent(standing const* s, time_ns now) const {
  time_ns const heard_at = s == nullptr ? 0 : s->heard_at;
  return now - std::max(heard_at, start_ + find_us_ns - lost_ns) > lost_ns;
}

/// Why it will not acknowledge any more, or null.
char const* gate_book::is_lost(asked& a, time_ns now) {
  standing const* const s = standing_of(a.node);
  if (a.incarnation != 0 && !s->is_there) return "left";
  if (a.incarnation != 0 && s->incarnation != a.incarnation) return "was started again";
  if (is_silent(s, now)) return "is silent";
  return nullptr;
}

/// False: not all were asked that are to be.
bool gate_book::look_at(gate& g, time_ns now) {
  // A machine may be back, and the job on it, since it was asked.
  if (tell_losses(g, now)) return true;
  bool are_asked = true;
  for (asked& a : g.nodes) {
    ++looks_;
    if (a.has_synced) continue;
    std::string why;
    if (char const* const how = is_lost(a, now))
      why = fmt::format("node {} {}, and had not acknowledged", a.node, how);
    else if (now >= g.until)
      why = fmt::format("node {} has not acknowledged in time", a.node);
    if (!why.empty()) {
      end(g, EIO, std::move(why), now);
      return true;
    }
    if (now - a.at >= ask_again_ns) are_asked &= send_sync(g, a, now);
  }
  if (g.acknowledged == g.nodes.size()) end(g, 0, {}, now);
  return are_asked;
}

void gate_book::done(std::uint32_t child, wire::gate_done const& m, time_ns now) {
  gate* const g = find_gate(m.gate);
  if (g == nullptr || g->is_over || child >= standing_.size()) return;
  standing const& s = standing_[child];
  asked* const a = g->find(s.name);
  if (a == nullptr || a->incarnation != s.incarnation) return;
  if (m.error != 0)
    return end(*g, m.error, is_relay_ ? m.text : fmt::format("node {}: {}", a->node, m.text), now);
  if (!std::exchange(a->has_synced, true)) ++g->acknowledged;
  // Until all have, tick() looks.
  if (g->acknowledged == g->nodes.size()) look_at(*g, now);
}

void gate_book::end(gate& g, std::uint32_t error, std::string why, time_ns now) {
  g.is_over = true;
  g.nodes = {};
  g.until = now + remembered_ns;
  g.error = error;
  g.why = why.substr(0, wire::most_gate_text);
  if (error != 0 && !g.is_unknown) failures_.push_back(std::move(why));
  answer(g);
}

void gate_book::answer(gate const& g) {
  if (g.from == above)
    out_.push_back({above, wire::gate_done{g.id, g.error, g.why}});
  else
    out_.push_back({g.from, wire::gate_open{g.asker_id, number(), g.error, g.why}});
}

}  // namespace sluice::epochs
