// SPDX-License-Identifier: Apache-2.0
#include "control/history.h"
#include "control/user_names.h"

#include <algorithm>
#include <cmath>

namespace sluice::control {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr double longest_look_s = 2;  // a daemon that was stopped knows nothing of that time
constexpr float not_known = std::numeric_limits<float>::quiet_NaN();

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
  if (points.empty()) return {not_known, not_known, not_known, not_known, not_known};
  return points[(next + points.size() - 1) % points.size()];
}

void history::sum::add(history_point const& p, double more_seconds) {
  if (std::isnan(p.served)) return;
  seconds += more_seconds;
  grant += p.grant * more_seconds;
  served += p.served * more_seconds;
  waiting += p.waiting * more_seconds;
  blocked += p.blocked * more_seconds;
  if (std::isnan(p.demand)) return;
  bounded_seconds += more_seconds;
  demand += p.demand * more_seconds;
}

history_point history::sum::mean() const {
  if (seconds <= 0) return {not_known, not_known, not_known, not_known, not_known};
  auto const of = [&](double total) { return static_cast<float>(total / seconds); };
  bool const bounded = 2 * bounded_seconds >= seconds && bounded_seconds > 0;
  return {bounded ? static_cast<float>(demand / bounded_seconds) : not_known, of(grant), of(served),
          of(waiting), of(blocked)};
}

void history::begin(std::int64_t now_ns, double unix_s) {
  lock_.lock();
  double const passed = static_cast<double>(now_ns - now_ns_) / double(second_ns);
  passed_s_ = now_ns_ == 0 ? 0 : std::clamp(passed, 0.0, longest_look_s);
  std::int64_t const second = now_ns / second_ns;
  if (now_ns_ != 0 && second > second_) flush(second);
  second_ = second;
  now_ns_ = now_ns;
  unix_s_ = unix_s;
  ++look_;
  left_out_now_ = 0;
  totals_.clear();
}

/// The seconds from second_ on are over: one point for it, nothing known of those that were missed.
void history::flush(std::int64_t second) {
  auto const missed = std::min<std::int64_t>(second - second_, fine_points);
  for (series& s : rows_) {
    if (s.put_ns == 0) continue;
    for (std::int64_t i = 0; i < missed; ++i) {
      history_point const p = s.going_on.mean();
      s.going_on.clear();
      s.fine.add(p, fine_points);
      s.coarse_sum.add(p, 1);
      if ((second_ + i + 1) % std::int64_t(fine_per_coarse) == 0) {
        s.coarse.add(s.coarse_sum.mean(), coarse_points);
        s.coarse_sum.clear();
      }
    }
  }
}

history::series* history::make(history_look const& look, std::string key) {
  series* room = nullptr;
  for (series& s : rows_) {
    bool const is_old = s.put_ns == 0 || (s.look + 1 < look_ && s.put_ns < now_ns_ - second_ns);
    if (is_old && (room == nullptr || s.put_ns < room->put_ns)) room = &s;
  }
  bool const is_full = rows_.size() >= most_rows;
  if (room != nullptr && !is_full && now_ns_ - room->put_ns < kept_ns && room->put_ns != 0)
    room = nullptr;
  if (room == nullptr && is_full) return nullptr;
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
  room->name.counts_bytes = look.counts_bytes;
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
  s.limit = look.limit;
  s.put_ns = now_ns_;
  s.look = look_;
  s.going_on.add(look.rates, passed_s_);
}

void history::put(history_look const& look) {
  if (series* const s = row_of(look))
    take(*s, look);
  else
    ++left_out_now_;
  for (bool of_class : {true, false}) {
    if (of_class && look.qos_class.empty()) continue;
    history_point& sum =
        total_of(of_class ? look.qos_class : "", look.supply, look.counts_bytes).rates;
    sum.demand += look.rates.demand;  // one that is not bounded makes the sum so
    sum.grant += look.rates.grant;
    sum.served += look.rates.served;
    sum.waiting += look.rates.waiting;
    sum.blocked = std::max(sum.blocked, look.rates.blocked);
  }
}

history::total& history::total_of(std::string_view qos_class, std::string_view supply,
                                  bool counts_bytes) {
  write_key(key_, 0, "", qos_class, supply);
  auto const [at, is_new] = totals_.try_emplace(key_);
  total& t = at->second;
  if (is_new) t = {std::string(qos_class), std::string(supply), counts_bytes, {}};
  return t;
}

void history::put_supply(std::string_view supply, bool counts_bytes, double capacity) {
  if (series* const s = row_of(total_of("", supply, counts_bytes).look())) s->capacity = capacity;
}

void history::end() {
  for (auto const& [key, t] : totals_)
    if (series* const s = row_of(t.look())) take(*s, t.look());
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
  out.limit = s.limit;
  out.capacity = s.capacity;
  out.interval_s = fine ? 1 : double(fine_per_coarse);
  // Rows end at the last whole interval, all at the same one.
  auto const whole = static_cast<std::int64_t>(out.interval_s);
  double const since_s = static_cast<double>(now_ns_ - second_ / whole * whole * second_ns) / 1e9;
  out.end_unix_s = unix_s_ - since_s;
  if (points)
    (fine ? s.fine : s.coarse).copy(out.points);
  else
    out.points.assign(1, s.fine.last());
  return true;
}

}  // namespace sluice::control
