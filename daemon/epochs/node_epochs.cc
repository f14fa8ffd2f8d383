// SPDX-License-Identifier: Apache-2.0
// Questions of stages, and what answers them: see node_epochs.h.
#include "epochs/node_epochs.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/process_mark.h"
#include "base/shared_places.h"
#include "base/whole_file.h"
#include "epochs/gate_book.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"

namespace sluice::epochs {

namespace {

using abi::after_state;

constexpr std::int64_t s_ns = 1'000'000'000;
constexpr std::int64_t again_ns = s_ns;  // a message may be lost with its connection
constexpr std::int64_t dead_claim_ns = 5 * s_ns;
// A stage that runs takes its answer at once. One that was stopped comes back for it, if it lives.
constexpr std::int64_t stopped_ns = 3660 * s_ns, unseen_ns = 10 * s_ns;
constexpr std::size_t most_answered = 256;
// With the 1024 jobs that a node has at most they fit one message of a node.
constexpr std::size_t most_departed = 900;
constexpr std::size_t most_departed_of_an_owner = 128;
constexpr std::size_t most_waits = 4096;
constexpr shared_places gates_above = {most_gates_of_node, 32, most_gates_of_node / 8};

constexpr after_state state_in(std::uint32_t word) { return static_cast<after_state>(word & 7); }

/// The memory is the user's: what it says decides on this slot alone.
enum class life { seen, over, unseen };
life life_of(foreign<abi::after_slot>& s) {
  static std::uint64_t const own_space = segment::own_pid_space();
  if (own_space == 0 || s.pid_space.load() != own_space) return life::unseen;
  return has_process_ended(s.pid.load()) ? life::over : life::seen;
}

/// For people. What has room for the beginning alone has that.
segment::memory_change text_change(segment::touch what, unsigned slot, std::string const& text) {
  segment::memory_change c = {.what = what, .index = slot};
  text.copy(c.text, sizeof c.text - 1);
  return c;
}

std::uint64_t boot_word() {
  auto const text = read_file("/proc/sys/kernel/random/boot_id");
  return text ? wire::peer_key(0, *text) : 0;
}

std::string why_of(int error) {
  if (error == ENOTCONN) return "the daemon of its journal does not answer";
  if (error == ETIMEDOUT) return "its disks take too long";
  return std::string("sync: ") + std::strerror(error);
}

}  // namespace

node_epochs::node_epochs(std::string run_dir, std::uint64_t incarnation, owner_lookup owner_of,
                         segment::far_memory* far, runtime::logger& log)
    : run_dir_(std::move(run_dir)),
      incarnation_(incarnation),
      boot_(boot_word()),
      log_(log),
      owner_of_(std::move(owner_of)),
      far_(far),
      processes_(owner_of_) {}

void node_epochs::meet(std::span<job_facts const> jobs) {
  for (job_facts const& j : jobs) {
    auto const [at, is_new] = members_.try_emplace(std::string(j.folder), processes_);
    member& m = at->second;
    // Somebody has joined it since: what he writes is to be synced as well.
    if (j.is_used) {
      m.is_ending = m.is_last = m.has_ended = false;
      m.ending_ns = 0;
    }
    if (is_new && !begin(m, at->first, j)) members_.erase(at);  // in the next turn
  }
  std::erase_if(members_, [&](auto const& one) {
    bool const is_gone = std::none_of(jobs.begin(), jobs.end(),
                                      [&](job_facts const& j) { return j.folder == one.first; });
    for (question const& q : one.second.questions)
      if (is_gone) take_back(one.second, q);
    return is_gone;
  });
}

/// What the area says of roots is the user's to change, and root would sync any path for him.
/// False: its memory does not come.
bool node_epochs::begin(member& m, std::string const& folder, job_facts const& j) try {
  m.key = j.key;
  m.name = j.name;
  m.uid = j.uid;
  if (j.after->empty()) return true;
  std::string const own = segment::own_links(segment::job_dir(run_dir_, folder));
  m.order = own + "/order";
  m.area = after_memory::open(own + "/after", j.uid, owner(j.uid), far_);
  if (!m.area) return true;
  for (after_rule const& rule : *j.after) {
    m.roots.push_back(rule.root);
    m.patience_ns.push_back(std::clamp(rule.patience_ns, s_ns, 3600 * s_ns));
  }
  m.book = (*m.area)->head.book.load();
  return true;
} catch (error const&) {
  return false;
}

/// Areas of other users are seen as they are now.
void node_epochs::look() {
  std::vector<segment::far_region*> all;
  for (auto const& [folder, m] : members_)
    if (m.area && m.area->far() != nullptr && !m.area->is_broken()) all.push_back(m.area->far());
  if (!all.empty()) far_->look(all, segment::whole);
}

node_epochs::member* node_epochs::find(core::job_id key) {
  for (auto& [folder, m] : members_)
    if (m.key == key && m.area) return &m;
  return nullptr;
}

// ---- questions

/// Nobody comes back for what is in this slot.
bool node_epochs::is_left(member const& m, unsigned slot, after_state is, std::int64_t now_ns) {
  foreign<abi::after_slot>& s = (*m.area)->slot[slot];
  std::int64_t const age_ns = now_ns - static_cast<std::int64_t>(s.since_ns.load());
  if (is == after_state::abandoned) return true;
  if (is == after_state::claimed) return age_ns > dead_claim_ns;
  if (is != after_state::taken && is != after_state::done) return false;
  life const of = life_of(s);
  if (is == after_state::taken || of == life::over) return of == life::over;
  return age_ns > (of == life::seen ? stopped_ns : patience_of(m, slot) + unseen_ns);
}

std::int64_t node_epochs::patience_of(member const& m, unsigned slot) {
  std::size_t const rule = (*m.area)->slot[slot].rule.load();
  return m.patience_ns[std::min(rule, m.patience_ns.size() - 1)];
}

void node_epochs::take_questions(member& m, std::int64_t now_ns) {
  bool const is_time = now_ns - m.looked_ns >= s_ns;
  if (is_time) m.looked_ns = now_ns;
  for (unsigned i = 0; i < abi::after_slots; ++i) {
    foreign<abi::after_slot>& s = (*m.area)->slot[i];
    std::uint32_t word = s.word.load();
    std::uint32_t const user = word >> 3;
    if (is_time && is_left(m, i, state_in(word), now_ns)) {
      m.area->change({.what = segment::touch::free_slot, .index = i, .expected = word});
      word = s.word.load();
    }
    auto const is = state_in(word);
    auto const known = std::find_if(m.questions.begin(), m.questions.end(),
                                    [&](question const& q) { return q.slot == i; });
    if (known != m.questions.end() && (known->user != user || is != after_state::taken)) {
      take_back(m, *known);
      m.questions.erase(known);
    } else if (known != m.questions.end()) {
      continue;
    }
    if (is != after_state::posted && is != after_state::taken) continue;
    if (is == after_state::posted) {
      m.area->change({.what = segment::touch::take_slot, .index = i, .expected = word});
      bool const is_seen = s.word.load() == word_of(user, after_state::taken);
      is_taking_ = is_taking_ || !is_seen;
      if (!is_seen) continue;  // in the next turn, or never
    }
    m.area->change(text_change(segment::touch::waits_for, i, {}));
    m.questions.push_back({i, user, ++last_id_, now_ns + patience_of(m, i), 0});
  }
}

/// Its place with the parent is its owner's until the parent has answered, or had to.
void node_epochs::take_back(member const& m, question const& q) {
  if (q.asked_ns != 0 && has_parent_) taken_back_.push_back({owner(m.uid), q.id, q.until_ns});
}

void node_epochs::waits_for(member& m, question& q, std::string const& whom) {
  if (std::exchange(q.waits_for, whom) != whom)
    m.area->change(text_change(segment::touch::waits_for, q.slot, whom));
}

/// The answer of one question; its place in the list stays with the caller.
void node_epochs::put(member& m, question const& q, int error, std::string const& why) {
  if (error != 0) log_.warning("a gate stays closed", {{"job", m.name}, {"why", why}});
  segment::memory_change c = text_change(segment::touch::answer, q.slot, why);
  c.expected = word_of(q.user, after_state::taken);
  c.result = error;
  m.area->change(c);
}

void node_epochs::ask(member& m, runtime::uplink* up, std::int64_t now_ns) {
  std::erase_if(m.questions, [&](question& q) {
    std::string why;
    if (!m.spoilt.empty())
      why = m.spoilt;
    else if (now_ns >= q.until_ns)
      why = up == nullptr       ? "the disks of this node take too long"
            : !up->is_welcome() ? "the controller of the cluster is not heard"
            : !m.is_known       ? "the controller has not written down that the job runs here"
                                : "the controller of the cluster has not answered in time";
    if (!why.empty()) {
      put(m, q, EIO, why);
      take_back(m, q);
      return true;
    }
    if (up == nullptr || !m.is_known || !up->is_welcome())
      waits_for(m, q, up == nullptr ? "the disks" : "the controller");
    if (up == nullptr && q.asked_ns == 0) {
      m.waits.push_back({std::nullopt, q.id});
      q.asked_ns = now_ns;
    }
    // Not all at once: what is dropped of a burst would be dropped of the next.
    std::int64_t const pause_ns = again_ns + static_cast<std::int64_t>(q.id % 32) * again_ns / 32;
    if (up == nullptr || !m.is_known || (q.asked_ns != 0 && now_ns - q.asked_ns < pause_ns))
      return false;
    if (send(m, q, *up, now_ns)) q.asked_ns = now_ns;
    return false;
  });
}

bool node_epochs::has_place(uid_t uid) const {
  auto const at = asked_of_.find(owner(uid));
  return gates_above.has_one(asked_, at == asked_of_.end() ? 0 : at->second);
}

/// False: later. The queue to the parent is short, and a user has so many places there.
bool node_epochs::send(member const& m, question const& q, runtime::uplink& up,
                       std::int64_t now_ns) {
  bool const is_again = q.asked_ns != 0;
  if (!is_again && !has_place(m.uid)) return false;
  std::int64_t const left_ns = std::max<std::int64_t>(q.until_ns - now_ns, 1'000'000);
  if (!up.send_gate(wire::gate_ask{{incarnation_, q.id}, m.key, left_ns})) return false;
  if (!is_again) ++asked_of_[owner(m.uid)], ++asked_;
  return true;
}

void node_epochs::open(wire::gate_open const& o) {
  if (o.gate.node != incarnation_) return;
  if (o.error != EINPROGRESS)
    std::erase_if(taken_back_, [&](taken_back const& t) { return t.id == o.gate.counter; });
  for (auto& [folder, m] : members_)
    std::erase_if(m.questions, [&, &m = m](question& q) {
      if (q.id != o.gate.counter) return false;
      if (o.error == EINPROGRESS || o.error == EBUSY) {  // busy: it is asked again
        waits_for(m, q, o.text);
        return false;
      }
      if (o.error == 0 && o.book != m.book)
        m.spoilt = "the cluster's controller, or its memory, is another since the job began";
      if (o.error == 0 && m.spoilt.empty())
        put(m, q, 0, {});
      else
        put(m, q, EIO, o.error != 0 ? o.text : m.spoilt);
      return true;
    });
}

// ---- syncing

void node_epochs::sync(wire::gate_sync const& s) {
  auto const said = std::find_if(answered_.begin(), answered_.end(),
                                 [&](wire::gate_done const& d) { return d.gate == s.gate; });
  if (said != answered_.end()) return outbox_.push_back(*said);
  member* const m = find(s.job);
  if (m == nullptr) {
    auto const left = departed_.find(s.job);
    bool const is_safe = left != departed_.end() && !left->second.is_lost;
    return outbox_.push_back(
        {s.gate, is_safe ? 0u : unsigned(EIO),
         is_safe ? "" : "it has lost the job, and nobody synced what it wrote"});
  }
  // Until then its book may speak of an earlier life of this machine. It asks again.
  if (!m->is_known) return;
  auto const is_it = [&](waiter const& w) { return w.gate && *w.gate == s.gate; };
  if (std::any_of(m->waits.begin(), m->waits.end(), is_it) ||
      std::any_of(m->served.begin(), m->served.end(), is_it))
    return;
  // Who waits without a place may be waiting in vain. Of a gate that is still shut we hear again.
  if (m->waits.size() >= most_waits) m->waits.erase(m->waits.begin());
  m->waits.push_back({s.gate, 0});
}

/// One at a time; who comes while it runs waits for the next, which begins after he came.
void node_epochs::run_sync(member& m, std::int64_t now_ns) {
  if (m.sync.is_under_way()) {
    int const error = m.sync.look(now_ns);
    if (error < 0) return;
    finish(m, error);
  }
  // Who asked has got his answer: his patience was over before there was a place.
  std::erase_if(m.waits, [&](waiter const& w) {
    return !w.gate && std::none_of(m.questions.begin(), m.questions.end(),
                                   [&](question const& q) { return q.id == w.id; });
  });
  bool const is_ending = m.is_ending && !m.has_ended;
  if (is_ending && m.ending_ns == 0) m.ending_ns = now_ns;
  if (is_ending || !m.waits.empty()) begin_sync(m, now_ns);
}

/// Without a place its questions wait as long as they have patience. A job that is over waits
/// longer when it has to, but not for disks that let no process end.
void node_epochs::begin_sync(member& m, std::int64_t now_ns) {
  std::int64_t const patience_ns = *std::max_element(m.patience_ns.begin(), m.patience_ns.end());
  bool const has_place = processes_.has_place(m.uid);
  bool const is_hopeless =
      m.is_ending && now_ns - m.ending_ns >= patience_ns && processes_.is_stuck(m.uid);
  if (!has_place && !is_hopeless) return;
  m.served = std::exchange(m.waits, {});
  m.is_last = m.is_ending;
  if (!has_place) return finish(m, ETIMEDOUT);
  if (!m.sync.begin(m.uid, m.order, m.roots, patience_ns, now_ns)) finish(m, EAGAIN);
}

void node_epochs::finish(member& m, int error) {
  std::string const why = error == 0 ? "" : why_of(error);
  for (waiter const& w : std::exchange(m.served, {})) {
    if (w.gate) {
      answered_.push_back({*w.gate, static_cast<std::uint32_t>(error), why});
      outbox_.push_back(answered_.back());
      if (answered_.size() > most_answered) answered_.pop_front();
      continue;
    }
    std::erase_if(m.questions, [&](question const& q) {
      if (q.id != w.id) return false;
      put(m, q, error == 0 ? 0 : EIO, why);
      return true;
    });
  }
  if (!m.is_last) return;
  m.has_ended = true;
  m.is_lost = error != 0;
}

/// Of a job that is not among those its cluster says that we have lost it.
bool node_epochs::may_depart(member const& m) const {
  if (departed_.contains(m.key)) return true;
  auto const is_his = [&](auto const& one) { return owner(one.second.uid) == owner(m.uid); };
  return departed_.size() < most_departed &&
         std::count_if(departed_.begin(), departed_.end(), is_his) <
             static_cast<long>(most_departed_of_an_owner);
}

bool node_epochs::may_end(std::string_view folder) {
  auto const at = members_.find(folder);
  if (at == members_.end()) return true;
  member& m = at->second;
  if (has_parent_ && m.area) {
    m.is_ending = true;
    if (!m.has_ended) return false;
    if (may_depart(m)) {
      departed& l = departed_[m.key];  // of an earlier job of that name the parent may not know yet
      l = {m.uid, l.is_lost || m.is_lost, 0};
    }
  }
  for (question const& q : m.questions) take_back(m, q);
  members_.erase(at);  // the next job of that name has an area of its own
  return true;
}

// ---- the parent

void node_epochs::welcomed() {
  must_say_all_ = true;
  for (auto& [folder, m] : members_) m.is_known = false;
}

void node_epochs::know(member& m, std::uint64_t book) {
  if (m.book != 0 && m.book != book)
    m.spoilt = "the cluster's controller, or its memory, is another since the job began";
  if (m.book == 0) m.book = book;
  m.is_known = true;
  m.area->change({.what = segment::touch::known, .word = m.book});
}

void node_epochs::hear(wire::message const& message) {
  if (auto const* sync_for = std::get_if<wire::gate_sync>(&message)) return sync(*sync_for);
  if (auto const* opened = std::get_if<wire::gate_open>(&message)) return open(*opened);
  auto const* const known = std::get_if<wire::gate_known>(&message);
  if (known == nullptr) return;
  for (wire::gate_row const& row : known->jobs) {
    member* const m = find(row.job);
    if (row.is_over) departed_.erase(row.job);
    if (!row.is_over && m != nullptr && !departed_.contains(row.job)) know(*m, known->book);
  }
}

void node_epochs::join(runtime::uplink& up, std::int64_t now_ns) {
  if (!up.is_welcome()) return;
  wire::gate_join list;
  std::vector<std::int64_t*> told;
  list.is_all = must_say_all_;
  for (auto& [folder, m] : members_) {
    // What the parent says of an earlier job of that name must not count for this one.
    if (departed_.contains(m.key)) continue;
    bool const is_due = !m.is_known && (m.joined_ns == 0 || now_ns - m.joined_ns >= again_ns);
    if (!m.area || (!must_say_all_ && !is_due)) continue;
    told.push_back(&m.joined_ns);
    list.jobs.push_back({m.key, boot_, false, false});
  }
  for (auto& [key, l] : departed_) {
    if (!must_say_all_ && l.told_ns != 0 && now_ns - l.told_ns < again_ns) continue;
    told.push_back(&l.told_ns);
    list.jobs.push_back({key, boot_, true, l.is_lost});
  }
  if (list.jobs.empty() && !list.is_all) return;
  if (!up.send_gate(list)) return;  // the queue is full: in the next turn
  must_say_all_ = false;
  for (std::int64_t* const at : told) *at = now_ns;
}

bool node_epochs::is_busy() const {
  return is_taking_ || std::any_of(members_.begin(), members_.end(), [](auto const& one) {
           member const& m = one.second;
           return !m.questions.empty() || !m.waits.empty() || !m.served.empty() || m.is_ending;
         });
}

/// Who comes after the one that asked last is the first now.
void node_epochs::take_turns(runtime::uplink* up, std::int64_t now_ns) {
  asked_of_.clear();
  std::erase_if(taken_back_, [now_ns](taken_back const& t) { return now_ns >= t.until_ns; });
  for (taken_back const& t : taken_back_) ++asked_of_[t.owner];
  asked_ = taken_back_.size();
  for (auto const& [folder, m] : members_) {
    auto const asked = static_cast<std::size_t>(std::count_if(
        m.questions.begin(), m.questions.end(), [](question const& q) { return q.asked_ns != 0; }));
    if (asked != 0) asked_of_[owner(m.uid)] += asked;
    asked_ += asked;
  }
  auto at = members_.upper_bound(asked_last_);
  for (std::size_t left = members_.size(); left > 0; --left, ++at) {
    if (at == members_.end()) at = members_.begin();
    member& m = at->second;
    if (!m.area || m.area->is_broken()) continue;
    if (up == nullptr && !m.is_known) know(m, 1);
    if (m.area->is_current()) take_questions(m, now_ns);
    std::size_t const before = asked_;
    ask(m, up, now_ns);
    if (asked_ != before) asked_last_ = at->first;
  }
}

void node_epochs::turn(std::span<job_facts const> jobs, runtime::uplink* up, std::int64_t now_ns) {
  has_parent_ = up != nullptr;
  processes_.reap();
  meet(jobs);
  // What was answered goes first: others wait for it. Who lacks one asks again.
  std::erase_if(outbox_, [up](auto const& d) { return up == nullptr || up->send_gate(d); });
  while (outbox_.size() > most_answered) outbox_.erase(outbox_.begin());
  if (up != nullptr) join(*up, now_ns);
  look();
  is_taking_ = false;
  take_turns(up, now_ns);
  for (auto& [folder, m] : members_)
    if (m.area) run_sync(m, now_ns);
}

}  // namespace sluice::epochs
