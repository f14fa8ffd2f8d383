// SPDX-License-Identifier: Apache-2.0
// Children too old to answer gates. Their programs do not wait until they are written down, so what
// they have is taken from what they always said: their jobs. A gate stays shut for a job that one
// of them has, and waits until each has said, after the question, which ones it has; a relay is
// asked whether somebody below it is old. Row `any_job` of the book says of whom that is true.
#include <fmt/format.h>

#include <algorithm>

#include "epochs/gate_book.h"

namespace sluice::epochs {

namespace {

constexpr time_ns lost_ns = 5'000'000'000;        // not a word for so long
constexpr time_ns find_us_ns = 10'000'000'000;    // children need it after our own start
constexpr time_ns old_job_ns = 3600'000'000'000;  // by then what it wrote has left the page cache
constexpr std::size_t most_old_jobs = 1u << 16;
constexpr std::uint64_t is_itself = 1;  // boot of a row: the child is old, not one below it

}  // namespace

bool gate_book::is_silent(standing const* s, time_ns now) const {
  time_ns const heard_at = s == nullptr ? 0 : s->heard_at;
  return now - std::max(heard_at, start_ + find_us_ns - lost_ns) > lost_ns;
}

bool gate_book::is_old(std::uint32_t child) const {
  return child < standing_.size() && standing_[child].is != age::able;
}

void gate_book::note_age(standing& s, age is) {
  s.is = is;
  s.told_at = 0;
  row* const r = find_row(any_job, s.name);
  if (is == age::able) {
    if (r != nullptr && r->boot == is_itself && s.old_jobs.empty()) drop_row(any_job, s.name);
  } else if (r == nullptr) {
    add_row(any_job, s.name, is_itself);
  } else if (r->boot != is_itself) {
    r->boot = is_itself;
    is_dirty_ = true;
  }
}

void gate_book::old_has(std::uint32_t child, core::job_id job, time_ns now) {
  standing& s = standing_[child];
  if (s.old_jobs.size() < most_old_jobs || s.old_jobs.contains(job)) s.old_jobs[job] = now;
  for (gate& g : gates_)
    if (!g.is_over && g.job == job) end(g, EIO, why_too_old(job, now), now);
}

void gate_book::old_has_told(std::uint32_t child, time_ns then) {
  standing& s = standing_[child];
  if (s.old_jobs.size() < most_old_jobs) s.told_at = std::max(s.told_at, then);
}

/// Who has not said that he has the job, but might: not heard yet, or somebody below him.
void gate_book::add_doubts(gate& g) {
  auto const of = jobs_.find(any_job);
  if (of == jobs_.end()) return;
  for (row const& r : of->second.rows) {
    bool const is_listed = std::any_of(g.nodes.begin(), g.nodes.end(),
                                       [&](asked const& a) { return a.node == r.node; });
    if (!is_listed) g.nodes.push_back({.node = r.node, .is_doubt = true});
  }
}

/// Empty: nobody that is too old is known to have it.
std::string gate_book::why_too_old(core::job_id job, time_ns now) const {
  if (!jobs_.contains(any_job)) return {};
  for (standing const& s : standing_) {
    bool const is_relay = s.is == age::old_relay && s.is_there && !is_silent(&s, now);
    if (is_relay || s.old_jobs.contains(job))
      return fmt::format("{} {} {} too old to know of epochs", is_relay ? "relay" : "node", s.name,
                         s.is == age::able ? "was" : "is");
  }
  return {};
}

/// One that is old, and has said since the question that it does not have the job; or had left
/// before, and never had it.
bool gate_book::is_excluded(gate const& g, asked const& a) {
  row const* const r = find_row(any_job, a.node);
  standing const* const s = standing_of(a.node);
  if (r == nullptr || r->boot != is_itself || s == nullptr) return false;
  if (a.incarnation == 0) return s->is == age::able && !s->is_there;
  return s->is == age::old_node && s->is_there && s->told_at >= g.asked_at &&
         s->incarnation == a.incarnation;
}

/// It went in an orderly way, or for so long that nobody waits for it any more.
void gate_book::forget_old(standing& s) {
  row const* const r = find_row(any_job, s.name);
  if (r != nullptr && r->boot == is_itself && s.old_jobs.empty()) drop_row(any_job, s.name);
  s.is = age::able;
}

void gate_book::expire_old(time_ns now) {
  for (standing& s : standing_) {
    time_ns const end = s.is_there ? s.heard_at : now;  // of who is silent all may still be so
    std::erase_if(s.old_jobs, [&](auto const& one) { return end - one.second >= old_job_ns; });
    bool const is_gone = s.is == age::able || now - s.heard_at >= forgotten_ns;
    if (is_gone && s.old_jobs.empty()) forget_old(s);
  }
}

}  // namespace sluice::epochs
