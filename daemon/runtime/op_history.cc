// SPDX-License-Identifier: Apache-2.0
#include "runtime/op_history.h"
#include "core/durations.h"
#include "runtime/fair_rows.h"
#include "runtime/user_names.h"

#include <algorithm>
#include <cmath>

namespace sluice::runtime {

namespace {

constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

/// No name holds a zero.
void write_key(std::string& key, uid_t uid, std::string_view job, std::string_view op,
               op_unit unit) {
  key.assign(op);
  key.append(1, "obs"[static_cast<unsigned>(unit)]).append("\0", 1);
  key.append(std::to_string(uid)).append("\0", 1).append(job);
}

}  // namespace

void op_history::ring::add(double p, std::size_t most) {
  if (points.size() < most) {
    points.push_back(p);
    next = points.size() % most;
  } else {
    points[next] = p;
    next = (next + 1) % most;
  }
}

void op_history::ring::copy(std::vector<double>& out) const {
  std::size_t const begin = next < points.size() ? next : 0;
  out.assign(points.begin() + std::ptrdiff_t(begin), points.end());
  out.insert(out.end(), points.begin(), points.begin() + std::ptrdiff_t(begin));
}

void op_history::begin(std::int64_t now_ns, double unix_s) {
  lock_.lock();
  before_ns_ = now_ns_ == 0 ? now_ns : std::min(now_ns_, now_ns);
  now_ns_ = now_ns;
  unix_s_ = unix_s;
  ++look_;
  left_out_now_ = 0;
}

/// Room: a free row, one that is long unused, or, when there is no more, that of a job which ended,
/// or of who has the most.
op_history::series* op_history::make(op_look const& look) {
  bool const is_full = rows_.size() >= most_rows;
  if (is_full && fair_.is_left_out(look.uid, look_)) return nullptr;
  auto const is_over = [&](series const& s) {
    return s.used_ns == 0 || now_ns_ - s.used_ns > history::kept_ns ||
           (is_full && s.look + 1 < look_);
  };
  auto const when = [](series const& s) { return s.used_ns; };
  series* room =
      is_full ? fair_.room(rows_, look.uid, is_over, when) : oldest_over(rows_, is_over, when);
  if (room == nullptr && is_full) {
    fair_.note_left_out(look.uid, look_);
    return nullptr;
  }
  if (room == nullptr) room = &rows_.emplace_back();
  if (room->used_ns != 0) {
    std::string old;
    write_key(old, room->name.uid, room->name.job, room->op, room->unit);
    index_.erase(old);
  }
  *room = {};
  room->name.job = look.job;
  room->name.uid = look.uid;
  room->name.user = user_name(look.uid);
  room->op = look.op;
  room->unit = look.unit;
  index_[key_] = static_cast<std::size_t>(room - rows_.data());
  return room;
}

op_history::series* op_history::row_of(op_look const& look) {
  write_key(key_, look.uid, look.job, look.op, look.unit);
  auto const at = index_.find(key_);
  if (at != index_.end()) return &rows_[at->second];
  if (!(look.amount > 0)) return nullptr;
  series* const made = make(look);
  if (made == nullptr) ++left_out_now_;
  return made;
}

void op_history::put(op_look const& look) {
  series* const s = row_of(look);
  if (s == nullptr) return;
  s->name.qos_class = look.qos_class;
  s->look = look_;
  s->amount += look.amount;
  if (look.amount > 0) s->used_ns = now_ns_;
}

/// `second` is over: one point for it, nothing known when nobody looked.
void op_history::close_second(series& s, std::int64_t second) const {
  s.fine.add(s.known > 0 ? s.going_on : not_known, history::fine_points);
  s.coarse_sum += s.going_on;
  s.coarse_known += s.known > 0 ? 1 : 0;
  s.going_on = 0;
  s.known = 0;
  if ((second + 1) % std::int64_t(history::fine_per_coarse) != 0) return;
  s.coarse.add(s.coarse_known > 0 ? s.coarse_sum : not_known, history::coarse_points);
  s.coarse_sum = 0;
  s.coarse_known = 0;
}

/// What came since the look before, over the seconds since then; what is counted stays whole.
void op_history::spread(series& s, std::int64_t from_ns) const {
  bool const is_put = s.look == look_;
  auto const passed = static_cast<double>(now_ns_ - from_ns);
  std::int64_t const last = now_ns_ / second_ns;
  double given = 0;
  for (std::int64_t second = from_ns / second_ns; second <= last; ++second) {
    std::int64_t const begin = std::max(from_ns, second * second_ns);
    std::int64_t const end = std::min(now_ns_, (second + 1) * second_ns);
    if (is_put && (end > begin || passed <= 0)) {
      double const so_far = passed > 0 ? static_cast<double>(end - from_ns) / passed : 1;
      double const part =
          s.unit == op_unit::seconds ? s.amount * so_far : std::floor(s.amount * so_far);
      double const upto = end == now_ns_ ? s.amount : part;
      s.going_on += upto - given;
      given = upto;
      ++s.known;
    }
    if (second < last) close_second(s, second);
  }
  s.amount = 0;
}

void op_history::end() {
  // Nobody wants more points than there are kept.
  std::int64_t const longest = std::int64_t(history::coarse_points * history::fine_per_coarse);
  std::int64_t const from = std::max(before_ns_, now_ns_ - longest * second_ns);
  for (series& s : rows_)
    if (s.used_ns != 0) spread(s, from);
  for (series& s : rows_)
    if (s.used_ns != 0 && now_ns_ - s.used_ns > history::kept_ns) {
      write_key(key_, s.name.uid, s.name.job, s.op, s.unit);
      index_.erase(key_);
      s = {};
    }
  left_out_ = left_out_now_;
  lock_.unlock();
}

std::size_t op_history::size() const {
  std::lock_guard const hold(lock_);
  return rows_.size();
}

std::size_t op_history::left_out() const {
  std::lock_guard const hold(lock_);
  return left_out_;
}

bool op_history::read(std::size_t number, history_reader const& who, bool fine, op_row& out) const {
  std::lock_guard const hold(lock_);
  if (number >= rows_.size()) return false;
  series const& s = rows_[number];
  if (s.used_ns == 0 || !who.may_see(s.name)) return false;
  out.name = s.name;
  out.op = s.op;
  out.unit = s.unit;
  out.is_live = s.look == look_;
  out.interval_s = fine ? 1 : double(history::fine_per_coarse);
  auto const whole = static_cast<std::int64_t>(out.interval_s);
  std::int64_t const second = now_ns_ / second_ns;
  out.end_unix_s =
      unix_s_ - static_cast<double>(now_ns_ - second / whole * whole * second_ns) / 1e9;
  out.open = fine ? s.going_on : s.going_on + s.coarse_sum;
  (fine ? s.fine : s.coarse).copy(out.done);
  return true;
}

}  // namespace sluice::runtime
