// SPDX-License-Identifier: Apache-2.0
// A look that comes late by whole intervals (the machine was busy, or we were stopped) finds what
// happened since the last one; the amounts are then split evenly over the intervals missed.
#include "commands/cli/sampler.h"

#include <algorithm>

#include "calls.h"

namespace sluice::cli {

namespace {

using segment::channel_sums;

constexpr std::uint64_t op_done::*op_fields[] = {&op_done::calls,     &op_done::errors,
                                                 &op_done::bytes,     &op_done::delayed,
                                                 &op_done::waited_ns, &op_done::took_ns};
constexpr std::uint64_t channel_sums::*channel_fields[] = {
    &channel_sums::calls, &channel_sums::amount, &channel_sums::delayed, &channel_sums::waited_ns};

/// What it grew by: a damaged segment may go back.
std::uint64_t growth(std::uint64_t before, std::uint64_t now) {
  return now > before ? now - before : 0;
}

template <typename Row, typename Fields>
void add_growth(Row& to, Row const& before, Row const& now, Fields const& fields) {
  for (auto const field : fields) to.*field += growth(before.*field, now.*field);
}

/// The first of `parts` nearly equal parts; `rows` keep the rest.
template <typename Row, typename Fields>
std::vector<Row> take_part(std::vector<Row>& rows, std::uint64_t parts, Fields const& fields) {
  std::vector<Row> part(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (auto const field : fields) {
      part[i].*field = (rows[i].*field + parts - 1) / parts;
      rows[i].*field -= part[i].*field;
    }
  return part;
}

/// What a call does beside its own op: sendfile(2) reads, and writes the same bytes.
struct second_op {
  call id;
  core::op op;
};
constexpr second_op second_ops[] = {
#define PAIR(symbol, result, parameters, arguments, op1, place1, bytes1, op2, ...) \
  {call::symbol, core::op::op2},
#include "calls.def"
};

/// The sums of each op over the calls that do it.
std::vector<op_done> by_op(foreign<abi::segment> const& s, segment::sums const& sums) {
  std::vector<op_done> op(core::op_count);
  for (unsigned i = 0; i < call_count && i < sums.call.size(); ++i)
    add_growth(op[static_cast<unsigned>(call_table[i].op)], {}, op_done{sums.call[i]}, op_fields);
  for (auto const& [id, also] : second_ops) {
    auto const at = static_cast<unsigned>(id);
    if (at < sums.call.size() && call_table[at].op != also)
      op[static_cast<unsigned>(also)].bytes += sums.call[at].bytes;
  }
  auto const took_ns = segment::took_by_op(s);
  for (unsigned i = 0; i < core::op_count; ++i) op[i].took_ns = took_ns[i];
  return op;
}

}  // namespace

sampler::sampler(foreign<abi::segment> const& s, std::int64_t interval_ns, std::int64_t begin_ns,
                 std::size_t most)
    : segment_(s),
      first_interval_ns_(interval_ns),
      most_(most),
      interval_ns_(interval_ns),
      end_ns_(begin_ns + interval_ns),
      seen_(segment::sum(s)),
      seen_op_(by_op(s, seen_)) {
  going_on_.op.resize(core::op_count);
}

void sampler::collect() {
  segment::sums now = segment::sum(segment_);
  auto now_op = by_op(segment_, now);
  for (unsigned i = 0; i < core::op_count; ++i)
    add_growth(going_on_.op[i], seen_op_[i], now_op[i], op_fields);
  seen_op_ = std::move(now_op);
  going_on_.channel.resize(std::max(going_on_.channel.size(), now.channel.size()));
  seen_.channel.resize(now.channel.size());
  for (std::size_t i = 0; i < now.channel.size(); ++i)
    add_growth(going_on_.channel[i], seen_.channel[i], now.channel[i], channel_fields);
  seen_ = std::move(now);
}

void sampler::tell() {
  going_on_.width = width_;
  for (auto const& to : listeners_) to(going_on_);
  going_on_.index += width_;
  if (most_ != 0 && going_on_.index >= most_ * width_) {
    width_ *= 2;
    interval_ns_ *= 2;
  }
  end_ns_ += interval_ns_;
}

std::int64_t sampler::look(std::int64_t now_ns) {
  collect();
  if (now_ns < end_ns_) return end_ns_;
  sample all = going_on_;
  while (now_ns >= end_ns_) {
    auto const left = static_cast<std::uint64_t>((now_ns - end_ns_) / interval_ns_) + 1;
    going_on_.op = take_part(all.op, left, op_fields);
    going_on_.channel = take_part(all.channel, left, channel_fields);
    tell();
  }
  going_on_.op.assign(core::op_count, {});
  going_on_.channel.clear();
  return end_ns_;
}

void sampler::finish(std::int64_t now_ns) {
  look(now_ns);
  // A call is counted when it begins, and what it waited and took when it ends.
  bool const idle = std::all_of(going_on_.op.begin(), going_on_.op.end(), [](op_done const& op) {
    return std::all_of(std::begin(op_fields), std::end(op_fields),
                       [&](auto const field) { return op.*field == 0; });
  });
  if (going_on_.index == 0 || !idle) tell();
}

}  // namespace sluice::cli
