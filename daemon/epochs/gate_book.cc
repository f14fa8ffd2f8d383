// SPDX-License-Identifier: Apache-2.0
// The book: who has written for which job. See gate_ask.cc for what is asked of them.
#include "epochs/gate_book.h"

#include <algorithm>
#include <utility>

namespace sluice::epochs {

namespace {

constexpr std::size_t most_rows = 1u << 20;
// The last eighth is for children that have fewer than a node has jobs.
constexpr std::size_t most_rows_of_all = most_rows - most_rows / 8, few_rows = 1024;
constexpr std::size_t jobs_per_message = 2000;
constexpr time_ns look_ns = 60'000'000'000;
constexpr time_ns tell_again_ns = 1'000'000'000, tell_seldom_ns = 32'000'000'000;
constexpr time_ns say_again_ns = 60'000'000'000;
// A loss of a job that is over everywhere waits for a gate of that name so long.
constexpr time_ns loss_kept_ns = 1'800'000'000'000;
// Gates that are over. A node that asks again has the answer within a second.
constexpr std::size_t most_opened_of_child = 128;
constexpr std::size_t most_failed = 64;  // of a child and a job: a node asks for so many at a time
constexpr std::size_t most_over = 4096;
constexpr time_ns young_ns = 5'000'000'000;  // who lacks the answer has asked again meanwhile

}  // namespace

gate_book::gate_book(bool is_relay, std::uint64_t number, time_ns start)
    : is_relay_(is_relay), number_(number), start_(start), expired_at_(start) {}

/// What our children know this book by: the parent's, too, for it has to know of them.
std::uint64_t gate_book::number() const {
  return is_relay_ ? number_ ^ above_number_ * 0x9e3779b97f4a7c15ull : number_;
}

gate_book::standing* gate_book::standing_of(std::string const& node) {
  auto const at = child_of_.find(node);
  return at == child_of_.end() ? nullptr : &standing_[at->second];
}

/// A node has 1024 jobs at most, and 900 that it departed from. What a child changes is written to
/// the disk before anybody is answered: so it may not change more at a time than is soon written.
gate_book::bounds gate_book::standing::most() const {
  constexpr std::size_t k = 1024;
  if (is_relay) return {256 * k, 256 * k, 64 * k, 8 * most_gates_of_node};
  return {4 * k, 64 * k, 4 * k, most_gates_of_node};
}

/// What it has changed is to be written all the same.
void gate_book::standing::owe_nothing() {
  unwritten += owed.size();
  owed.clear();
}

void gate_book::heard(std::uint32_t child, std::string const& name, wire::role who,
                      std::uint64_t incarnation, time_ns now) {
  if (child >= standing_.size()) standing_.resize(child + 1);
  standing& s = standing_[child];
  // What an earlier life of it had asked for would tell this one that it is written down.
  if (s.incarnation != incarnation) s.owe_nothing();
  s.heard_at = now;
  s.is_there = true;
  s.is_relay = who == wire::role::relay;
  s.incarnation = incarnation;
  if (s.name != name) {
    s.name = name;
    child_of_[name] = child;
  }
}

void gate_book::gone(std::uint32_t child) {
  if (child < standing_.size()) standing_[child].is_there = false;
}

gate_book::row* gate_book::find_row(core::job_id job, std::string const& node) {
  auto const of = jobs_.find(job);
  if (of == jobs_.end()) return nullptr;
  auto& rows = of->second.rows;
  auto const at =
      std::find_if(rows.begin(), rows.end(), [&](row const& r) { return r.node == node; });
  return at == rows.end() ? nullptr : &*at;
}

/// Who was told of an earlier loss knows nothing of this one.
void gate_book::row::lose(char const* why) {
  if (lost.empty() || !told.empty()) lost = why;
  told.clear();
}

void gate_book::rows_of_node::add(core::job_id job, row const& r) {
  if (r.is_over)
    ++losses;
  else
    jobs.insert(job);
}

void gate_book::rows_of_node::drop(core::job_id job, row const& r) {
  if (r.is_over)
    --losses;
  else
    jobs.erase(job);
}

void gate_book::add_row(core::job_id job, std::string const& node, std::uint64_t boot) {
  job_rows& of = jobs_[job];
  if (of.rows.empty() && !of.is_leaving) of.is_above = false, of.told_at = 0;
  of.rows.push_back({node, boot, {}, false});
  ++rows_;
  rows_of_[node].add(job, of.rows.back());
  touch(job, node);
}

void gate_book::set_over(core::job_id job, row& r, bool is_over) {
  rows_of_node& all = rows_of_[r.node];
  all.drop(job, r);
  r.is_over = is_over;
  all.add(job, r);
}

void gate_book::drop_row(core::job_id job, std::string const& node) {
  auto const of = jobs_.find(job);
  if (of == jobs_.end()) return;
  auto const all = rows_of_.find(node);
  std::size_t const dropped = std::erase_if(of->second.rows, [&](row const& r) {
    if (r.node != node) return false;
    all->second.drop(job, r);
    return true;
  });
  rows_ -= dropped;
  if (dropped != 0) touch(job, node);
  if (dropped != 0 && all->second.jobs.empty() && all->second.losses == 0) rows_of_.erase(all);
  if (!of->second.rows.empty()) return;
  // A relay that may be written down further up keeps the job until it is taken out there.
  of->second.is_leaving |= of->second.may_be_above;
  of->second.is_above = false;
  of->second.told_at = 0;
  if (!of->second.is_leaving) jobs_.erase(of);
}

/// A relay says of each job that it is over. It never lists all: what it would leave out at a time
/// has no bound.
void gate_book::join(std::uint32_t child, wire::gate_join const& m) {
  if (child >= standing_.size()) return;
  standing& s = standing_[child];
  if (m.is_all && !s.is_relay) {
    s.owe_nothing();
    leave_out(s, m);
  }
  for (wire::gate_member const& one : m.jobs) join_one(child, one);
}

void gate_book::refuse_more(standing& s) {
  if (s.refused_at != 0 && s.heard_at - s.refused_at < say_again_ns) return;
  s.refused_at = s.heard_at;
  refused_.push_back(s.name);
}

std::vector<std::string> gate_book::take_refused() { return std::exchange(refused_, {}); }

void gate_book::join_one(std::uint32_t child, wire::gate_member const& m) {
  standing& s = standing_[child];
  std::string const& node = s.name;
  row* r = find_row(m.job, node);
  bool const owes_most = s.owed.size() + s.unwritten >= s.most().owed;
  if (owes_most && !s.owed.contains(m.job)) return refuse_more(s);
  if (m.is_over) {
    if (r != nullptr && m.is_lost && !r->is_over) r->lose("could not sync what the job wrote");
    if (r != nullptr && r->lost.empty()) {
      drop_row(m.job, node);
    } else if (r != nullptr) {
      set_over(m.job, *r, true);
      touch(m.job, node);
    }
    s.owed[m.job] = true;
    return;
  }
  if (r == nullptr || r->is_over) {
    rows_of_node const& has = rows_of_[node];
    bool const has_most = has.jobs.size() >= s.most().jobs || has.losses >= s.most().losses;
    bool const has_few = has.jobs.size() + has.losses < few_rows;
    bool const is_full = rows_ >= (has_few ? most_rows : most_rows_of_all);
    if (is_full || has_most) return refuse_more(s);
  }
  if (r == nullptr) {
    add_row(m.job, node, m.boot);
  } else if (r->boot != m.boot || r->is_over) {
    if (r->boot != m.boot && !r->is_over)
      r->lose("was started again, and what it had not synced is lost");
    r->boot = m.boot;
    set_over(m.job, *r, false);
    touch(m.job, node);
  }
  s.owed[m.job] = false;
}

/// Rows of a node that does not have the job any more, and never said that it had synced it. None
/// may wait, and they are not many: they count before it may join more.
void gate_book::leave_out(standing& s, wire::gate_join const& m) {
  auto const all = rows_of_.find(s.name);
  if (all == rows_of_.end()) return;
  std::set<core::job_id> left = all->second.jobs;
  for (wire::gate_member const& one : m.jobs) left.erase(one.job);
  for (core::job_id const job : left) {
    row& r = *find_row(job, s.name);
    r.lose("has lost the job, and nobody synced what it wrote");
    set_over(job, r, true);
    touch(job, s.name);
  }
  s.unwritten += left.size();
}

void gate_book::expire_rows(time_ns now) {
  if (now - expired_at_ < look_ns) return;
  expired_at_ = now;
  std::vector<std::pair<core::job_id, std::string>> old;
  for (auto& [key, of] : jobs_) {
    bool const is_over =
        std::all_of(of.rows.begin(), of.rows.end(), [](row const& r) { return r.is_over; });
    if (!is_over || of.over_at == 0) of.over_at = is_over ? now : 0;
    // A relay forgets what its parent has noted, and nothing before: see pass_losses().
    bool const is_told_to_nobody = !is_relay_ && is_over && now - of.over_at >= loss_kept_ns;
    for (row const& r : of.rows) {
      standing const* const s = standing_of(r.node);
      bool const is_silent =
          now - std::max(start_, s != nullptr ? s->heard_at : start_) >= forgotten_ns;
      if (is_silent || is_told_to_nobody) old.emplace_back(key, r.node);
    }
  }
  for (auto const& [key, node] : old) drop_row(key, node);
}

// ---- a relay towards its parent

void gate_book::above_anew() {
  for (auto& [key, of] : jobs_) of.is_above = false, of.told_at = 0;
}

void gate_book::above_known(wire::gate_known const& m) {
  above_number_ = m.book;
  for (wire::gate_row const& one : m.jobs) {
    auto const of = jobs_.find(one.job);
    if (of == jobs_.end()) continue;
    job_rows& rows = of->second;
    // It was about what was before.
    if (rows.is_leaving != one.is_over || rows.told_at == 0) continue;
    if (!one.is_over) {
      rows.is_above = true;
    } else if (rows.rows.empty()) {
      jobs_.erase(of);
    } else {
      rows.is_leaving = rows.may_be_above = false;
      rows.told_at = 0;
    }
  }
}

/// What was lost below: of a gate here nobody may hear, the asker's may have failed already. So the
/// parent notes it, as if we had lost it, and tells a gate of its own; then it is forgotten here.
void gate_book::pass_losses() {
  std::vector<std::pair<core::job_id, std::string>> over;
  for (auto& [key, of] : jobs_) {
    bool is_new = false;
    for (row& r : of.rows) {
      if (r.lost.empty()) continue;
      if (!r.is_passed) {
        is_new = r.is_passed = true;
      } else if (of.is_above) {
        r.lost.clear();
        r.is_passed = false;
        touch(key, r.node);
        if (r.is_over) over.emplace_back(key, r.node);
      }
    }
    if (!is_new) continue;
    ++of.boot;
    of.is_above = false;
    of.told_at = 0;
    touched_[key];
  }
  for (auto const& [key, node] : over) drop_row(key, node);
}

/// Jobs that the parent is to write down, and those that it may forget.
void gate_book::tell_above(time_ns now) {
  wire::gate_join list;
  for (auto& [key, of] : jobs_) {
    bool const is_over = of.is_leaving;
    if (of.is_above || (of.told_at != 0 && now - of.told_at < of.again_ns)) continue;
    of.again_ns = of.told_at == 0 ? tell_again_ns : std::min(2 * of.again_ns, tell_seldom_ns);
    of.told_at = now;
    of.may_be_above = true;
    list.jobs.push_back({key, of.boot, is_over, false});
    if (list.jobs.size() < jobs_per_message) continue;
    out_.push_back({above, std::exchange(list, {})});
  }
  if (!list.jobs.empty()) out_.push_back({above, std::move(list)});
}

std::vector<gate_book::letter> gate_book::take() {
  std::vector<letter> out = std::exchange(out_, {});
  for (standing& s : standing_) s.syncs = 0;
  if (is_dirty()) return out;
  for (std::uint32_t child = 0; child < standing_.size(); ++child) {
    standing_[child].unwritten = 0;
    wire::gate_known m;
    m.book = number();
    std::erase_if(standing_[child].owed, [&](auto const& owed) {
      auto const& [job, is_over] = owed;
      auto const of = jobs_.find(job);
      if (!is_over && is_relay_ && of != jobs_.end() && !of->second.is_above) return false;
      m.jobs.push_back({job, is_over});
      return true;
    });
    for (std::size_t at = 0; at < m.jobs.size(); at += jobs_per_message) {
      auto const from = m.jobs.begin() + static_cast<std::ptrdiff_t>(at);
      std::size_t const count = std::min(jobs_per_message, m.jobs.size() - at);
      out.push_back({child, wire::gate_known{m.book, {from, from + count}}});
    }
  }
  return out;
}

/// Of each child and each job the newest stay; all children have the same room.
void gate_book::forget_over(time_ns now) {
  if (gates_.size() <= most_failed) return;
  std::unordered_map<std::uint32_t, std::size_t> opened, over;
  std::map<std::pair<std::uint32_t, core::job_id>, std::size_t> failed;
  for (gate const& g : gates_)
    if (g.is_over) over.try_emplace(g.from);
  std::size_t const most_of_child = most_over / std::max<std::size_t>(over.size(), 1) + 1;
  for (auto g = gates_.rbegin(); g != gates_.rend(); ++g) {
    if (!g->is_over) continue;
    bool const is_old = g->error == 0 ? ++opened[g->from] > most_opened_of_child
                                      : ++failed[{g->from, g->job}] > most_failed;
    bool const is_young = g->until - now > remembered_ns - young_ns;
    bool const is_beyond = ++over[g->from] > most_of_child && !is_young;
    if (is_old || is_beyond) g->until = std::min(g->until, now);
  }
}

void gate_book::tick(time_ns now) {
  if (now - ticked_at_ < 50'000'000) return;
  ticked_at_ = now;
  expire_rows(now);
  if (is_relay_) {
    pass_losses();
    tell_above(now);
  }
  auto first = gates_.end();  // of the next time
  for (auto g = gates_.begin(); g != gates_.end(); ++g)
    if (!g->is_over && !look_at(*g, now) && first == gates_.end()) first = g;
  std::rotate(gates_.begin(), first, gates_.end());
  forget_over(now);
  std::erase_if(gates_, [&](gate const& g) { return g.is_over && now >= g.until; });
  std::erase_if(routes_, [&](route const& r) { return now >= r.until; });
}

}  // namespace sluice::epochs
