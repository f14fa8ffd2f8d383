// SPDX-License-Identifier: Apache-2.0
#include "runtime/history.h"
#include "core/durations.h"
#include "runtime/fair_rows.h"
#include "runtime/user_names.h"

#include <algorithm>
#include <cmath>

namespace sluice::runtime {

namespace {

constexpr double longest_look_s = 2;  // a daemon that was stopped knows nothing of that time
constexpr float not_known = std::numeric_limits<float>::quiet_NaN();
constexpr history_point nothing_known = {not_known, not_known, not_known, not_known, not_known,
                                         not_known, not_known, not_known, not_known, not_known};

/// No name holds a zero.
void write_key(std::string& key, uid_t uid, std::string_view job, std::string_view qos_class,
               std::string_view supply) {
  key.assign(supply);
  key += '\0';
  if (job.empty())
    key += qos_class;
  else
    key.append(std::to_string(uid)).append("\0", 1).append(job);
}

}  // namespace

void history::ring::add(history_point const& p, std::size_t most) {
  if (points.size() < most) {
    points.push_back(p);
    next = points.size() % most;
  } else {
    points[next] = p;
    next = (next + 1) % most;
  }
}

void history::ring::copy(std::vector<history_point>& out) const {
  bool const full = next < points.size();
  std::size_t const begin = full ? next : 0;
  out.assign(points.begin() + std::ptrdiff_t(begin), points.end());
  out.insert(out.end(), points.begin(), points.begin() + std::ptrdiff_t(begin));
}

history_point history::ring::last() const {
  if (points.empty()) return nothing_known;
  return points[(next + points.size() - 1) % points.size()];
}

void history::sum::add(history_point const& did, double more_seconds) {
  if (std::isnan(did.served)) return;
  served += did.served;
  delayed += did.delayed;
  waited_s += did.waited_s;
  blocked_s += did.blocked_s;
  paused_s += did.paused_s;
  beyond += did.beyond;
  if (!std::isnan(did.limit)) limit = did.limit;
  seconds += more_seconds;
  grant += did.grant * more_seconds;
  waiting += did.waiting * more_seconds;
  if (std::isnan(did.demand)) return;
  bounded_seconds += more_seconds;
  demand += did.demand * more_seconds;
}

void history::sum::add(sum const& later) {
  served += later.served;
  delayed += later.delayed;
  waited_s += later.waited_s;
  blocked_s += later.blocked_s;
  paused_s += later.paused_s;
  beyond += later.beyond;
  if (!std::isnan(later.limit)) limit = later.limit;
  demand += later.demand;
  grant += later.grant;
  waiting += later.waiting;
  seconds += later.seconds;
  bounded_seconds += later.bounded_seconds;
}

history_point history::sum::point() const {
  if (seconds <= 0) return nothing_known;
  bool const bounded = 2 * bounded_seconds >= seconds && bounded_seconds > 0;
  history_point p;
  p.served = served;
  p.delayed = static_cast<float>(delayed);
  p.waited_s = static_cast<float>(waited_s);
  p.blocked_s = static_cast<float>(blocked_s);
  p.paused_s = static_cast<float>(paused_s);
  p.beyond = static_cast<float>(beyond);
  p.demand = bounded ? static_cast<float>(demand / bounded_seconds) : not_known;
  p.grant = static_cast<float>(grant / seconds);
  p.waiting = static_cast<float>(waiting / seconds);
  p.limit = limit;
  return p;
}

void history::begin(std::int64_t now_ns, double unix_s) {
  lock_.lock();
  before_ns_ = now_ns_ == 0 ? now_ns : std::min(now_ns_, now_ns);
  now_ns_ = now_ns;
  passed_s_ = std::min(static_cast<double>(now_ns - before_ns_) / 1e9, longest_look_s);
  unix_s_ = unix_s;
  ++look_;
  left_out_now_ = 0;
  totals_.clear();
}

/// `second` is over: one point for it, nothing known when nobody looked.
void history::close_second(series& s, std::int64_t second) {
  s.fine.add(s.going_on.point(), fine_points);
  s.coarse_sum.add(s.going_on);
  s.going_on = {};
  if ((second + 1) % std::int64_t(fine_per_coarse) != 0) return;
  s.coarse.add(s.coarse_sum.point(), coarse_points);
  s.coarse_sum = {};
}

/// What was done since the look before, over the seconds since then; what is counted stays whole.
void history::spread(series& s, std::int64_t from_ns) const {
  bool const is_put = s.look == look_;
  auto const passed = static_cast<double>(now_ns_ - from_ns);
  std::int64_t const last = now_ns_ / second_ns;
  double served = 0;
  float delayed = 0;
  for (std::int64_t second = from_ns / second_ns; second <= last; ++second) {
    std::int64_t const begin = std::max(from_ns, second * second_ns);
    std::int64_t const end = std::min(now_ns_, (second + 1) * second_ns);
    if (is_put && (end > begin || passed <= 0)) {
      double const part = passed > 0 ? static_cast<double>(end - begin) / passed : 1;
      double const so_far = passed > 0 ? static_cast<double>(end - from_ns) / passed : 1;
      bool const is_rest = end == now_ns_;
      history_point piece = s.did;
      piece.served = (is_rest ? s.did.served : std::floor(s.did.served * so_far)) - served;
      piece.delayed =
          (is_rest ? s.did.delayed : std::floor(s.did.delayed * float(so_far))) - delayed;
      served += piece.served;
      delayed += piece.delayed;
      piece.waited_s *= static_cast<float>(part);
      piece.blocked_s *= static_cast<float>(part);
      piece.paused_s *= static_cast<float>(part);
      piece.beyond *= static_cast<float>(part);
      s.going_on.add(piece, std::max(static_cast<double>(end - begin) / 1e9, 1e-9));
    }
    if (second < last) close_second(s, second);
  }
}

history::series* history::make(history_look const& look, std::string key) {
  bool const is_full = rows_.size() >= most_rows, is_of_job = !look.job.empty();
  if (is_full && is_of_job && fair_.is_left_out(look.uid, look_)) return nullptr;
  auto const is_old = [this](series const& s) {
    return s.put_ns == 0 || (s.look + 1 < look_ && s.put_ns < now_ns_ - second_ns);
  };
  auto const when = [](series const& s) { return s.put_ns; };
  series* room = is_full && is_of_job ? fair_.room(rows_, look.uid, is_old, when)
                                      : oldest_over(rows_, is_old, when);
  if (room != nullptr && !is_full && now_ns_ - room->put_ns < kept_ns && room->put_ns != 0)
    room = nullptr;
  if (room == nullptr && is_full) {
    if (is_of_job) fair_.note_left_out(look.uid, look_);
    return nullptr;
  }
  if (room == nullptr) room = &rows_.emplace_back();
  if (room->put_ns != 0) {
    history_name const& n = room->name;
    write_key(key_, n.uid, n.job, n.qos_class, n.supply);
    index_.erase(key_);
  }
  *room = {};
  room->put_ns = now_ns_;  // taken
  room->look = look_;
  room->name.job = look.job;
  room->name.supply = look.supply;
  room->name.uid = look.uid;
  room->name.unit = look.unit;
  if (!look.job.empty()) room->name.user = user_name(look.uid);
  index_[std::move(key)] = static_cast<std::size_t>(room - rows_.data());
  return room;
}

history::series* history::row_of(history_look const& look) {
  write_key(key_, look.uid, look.job, look.qos_class, look.supply);
  auto const at = index_.find(key_);
  if (at != index_.end()) return &rows_[at->second];
  return make(look, key_);
}

void history::take(series& s, history_look const& look) const {
  s.name.qos_class = look.qos_class;
  s.put_ns = now_ns_;
  s.look = look_;
  s.did = look.did;
}

void history::put(history_look const& look) {
  if (series* const s = row_of(look))
    take(*s, look);
  else
    ++left_out_now_;
  for (bool of_class : {true, false}) {
    if (of_class && look.qos_class.empty()) continue;
    history_point& sum = total_of(of_class ? look.qos_class : "", look.supply, look.unit).did;
    sum.served += look.did.served;
    sum.delayed += look.did.delayed;
    sum.waited_s += look.did.waited_s;
    sum.blocked_s = std::max(sum.blocked_s, look.did.blocked_s);
    sum.beyond += look.did.beyond;
    sum.demand += look.did.demand;  // one that is not bounded makes the sum so
    sum.grant += look.did.grant;
    sum.waiting += look.did.waiting;
  }
}

history::total& history::total_of(std::string_view qos_class, std::string_view supply,
                                  core::unit_kind unit) {
  write_key(key_, 0, "", qos_class, supply);
  auto const [at, is_new] = totals_.try_emplace(key_);
  total& t = at->second;
  if (is_new) t = {std::string(qos_class), std::string(supply), unit, {}};
  return t;
}

void history::put_supply(std::string_view supply, core::unit_kind unit, double capacity,
                         std::string_view why) {
  series* const s = row_of(total_of("", supply, unit).look());
  if (s == nullptr) return;
  s->capacity = capacity;
  s->why = why;
}

void history::end() {
  for (auto const& [key, t] : totals_)
    if (series* const s = row_of(t.look())) take(*s, t.look());
  // Nobody wants more points than there are kept.
  std::int64_t const longest = std::int64_t(coarse_points * fine_per_coarse) * second_ns;
  std::int64_t const from = std::max(before_ns_, now_ns_ - longest);
  for (series& s : rows_)
    if (s.put_ns != 0) spread(s, from);
  for (series& s : rows_)
    if (s.put_ns != 0 && now_ns_ - s.put_ns > kept_ns) {
      write_key(key_, s.name.uid, s.name.job, s.name.qos_class, s.name.supply);
      index_.erase(key_);
      s = {};
    }
  left_out_ = left_out_now_;
  lock_.unlock();
}

std::size_t history::size() const {
  std::lock_guard const hold(lock_);
  return rows_.size();
}

std::size_t history::left_out() const {
  std::lock_guard const hold(lock_);
  return left_out_;
}

bool history::read(std::size_t number, history_reader const& who, bool fine, bool points,
                   history_row& out) const {
  std::lock_guard const hold(lock_);
  if (number >= rows_.size()) return false;
  series const& s = rows_[number];
  if (s.put_ns == 0 || !who.may_see(s.name)) return false;
  out.name = s.name;
  out.is_live = s.look == look_;
  out.limit = double(s.did.limit);
  out.capacity = s.capacity;
  out.why = s.why;
  out.interval_s = fine ? 1 : double(fine_per_coarse);
  // Rows end at the last whole interval, all at the same one.
  auto const whole = static_cast<std::int64_t>(out.interval_s) * second_ns;
  double const since_s = static_cast<double>(now_ns_ % whole) / 1e9;
  out.end_unix_s = unix_s_ - since_s;
  sum open = fine ? sum() : s.coarse_sum;
  open.add(s.going_on);
  out.open = open.point();
  if (points)
    (fine ? s.fine : s.coarse).copy(out.points);
  else
    out.points.assign(1, s.fine.last());
  return true;
}

}  // namespace sluice::runtime
