// SPDX-License-Identifier: Apache-2.0
#include "segment/small_look.h"

#include <bit>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>

#include "abi/ring_area.h"
#include "base/error.h"
#include "calls.h"
#include "segment/mapping.h"
#include "segment/run_dir.h"
#include "segment/small_why.h"
#include "segment/sums.h"

namespace sluice::segment {

namespace {

using json = nlohmann::ordered_json;

// In a segment that was scribbled over each path could be as long as any, and an answer has bounds.
constexpr std::size_t most_text_bytes = 8 << 10;

/// Of an area that is damaged, none are known.
std::uint32_t strict_targets_of(job_files const& files) {
  file_front const front = read_front(rings_path(files.segment_path), files, region_kind::rings);
  if (front.bytes.empty()) return 0;
  abi::ring_header head = {};
  abi::lease_head board = {};
  std::memcpy(static_cast<void*>(&head), front.bytes.data(), sizeof head);
  std::memcpy(static_cast<void*>(&board), front.bytes.data() + offsetof(abi::ring_area, board),
              sizeof board);
  return abi::refuse_rings(head, front.file_bytes) == nullptr ? board.targets : 0;
}

json hints_json(foreign<abi::segment> const& s) {
  json out;
#define HINT(name) \
  out[#name] = s.hint[static_cast<unsigned>(abi::hint::name)].load(std::memory_order_relaxed);
#include "small.def"
  return out;
}

json gathered_json(foreign<abi::segment> const& s) {
  json out;
#define GATHER(name) \
  out[#name] = s.gather[static_cast<unsigned>(abi::gather::name)].load(std::memory_order_relaxed);
#include "small.def"
  return out;
}

json buffered_json(foreign<abi::segment> const& s) {
  json out;
#define BUFFER(name) \
  out[#name] = s.buffer[static_cast<unsigned>(abi::buffer::name)].load(std::memory_order_relaxed);
#include "small.def"
  return out;
}

bool is_reached(foreign<abi::segment> const& s) {
  return s.head.attached_total.load(std::memory_order_relaxed) != 0;
}

/// Calls of that kind, as the stages counted them.
small_calls calls_of(foreign<abi::segment> const& s, core::op op, std::uint32_t targets,
                     small_habit const& habit) {
  small_calls out;
  for (unsigned i = 0; i < call_count; ++i) {
    if (call_table[i].op != op) continue;
    bool const is_own = call_table[i].name == habit.call || call(i) == call::__read_chk;
    (is_own ? out.own : out.others) += sum_calls(s, i);
  }
  // The step of the largest small ones has larger ones, too.
  auto const last_small = static_cast<unsigned>(std::bit_width(habit.most_bytes));
  for (unsigned t = 0; t < core::max_targets; ++t)
    for (unsigned i = 0; i < abi::size_steps && (targets >> t & 1) != 0; ++i) {
      auto const& steps = op == core::op::read ? s.size[t].read : s.size[t].written;
      std::uint64_t const n = steps[i].load(std::memory_order_relaxed);
      out.timed += n;
      if (i < last_small) out.timed_and_small += n;
      if (i == last_small) out.timed_at_most += n;
    }
  return out;
}

json with_why(json counted, char const* taken, foreign<abi::segment> const& s, bool is_running,
              core::op op, std::uint32_t targets, small_habit const& habit) {
  if (counted[taken] != 0) return counted;
  small_calls calls = calls_of(s, op, targets, habit);
  calls.is_reached = is_reached(s);
  calls.is_running = is_running;
  counted["why_none"] = why_none(counted, habit, calls);
  return counted;
}

json hints_with_why(foreign<abi::segment> const& s) {
  json out = hints_json(s);
  if (out["advised"] == 0) out["why_none"] = why_no_hints(out, is_reached(s));
  return out;
}

json rows_of(foreign<abi::segment> const& s, policy::small_targets const& targets) {
  json rows = json::array();
  try {
    auto const rules = shown_rules_of(s);
    std::size_t text_bytes = 0;
    for (unsigned t = 0; t < rules->target_count && text_bytes < most_text_bytes; ++t) {
      text_bytes += rules->target[t].path.length;
      if (json row = small_row(*rules, targets, t); !row.is_null()) rows.push_back(std::move(row));
    }
  } catch (error const&) {
    // Scribbled over: nobody knows what its targets are.
  }
  return rows;
}

}  // namespace

policy::small_targets small_targets_of(foreign<abi::segment> const& s, job_files const& files) {
  policy::small_targets out;
  out.hinted_targets = s.head.hinted_targets;
  out.gathered_targets = s.head.gathered_targets;
  out.buffered_targets = s.reads.head.targets;
  if ((s.head.areas.load() & abi::rings_beside) != 0) out.strict_targets = strict_targets_of(files);
  return out;
}

json counted_small(foreign<abi::segment> const& s, policy::small_targets const& targets,
                   bool is_running) {
  json out;
  if (targets.hinted_targets != 0) out["hints"] = hints_with_why(s);
  std::uint32_t const told = targets.gathered_targets | targets.strict_targets;
  std::uint32_t const written = told != 0 ? told : ~0u;  // its area of rings is damaged
  if (abi::may_gather(s))
    out["gathered"] =
        with_why(gathered_json(s), "writes", s, is_running, core::op::write, written,
                 writes_habit(targets.gathered_targets != 0, targets.strict_targets != 0));
  if (targets.buffered_targets != 0)
    out["buffered"] = with_why(buffered_json(s), "reads", s, is_running, core::op::read,
                               targets.buffered_targets, reads_habit());
  return out;
}

json small_row(core::ruleset const& rules, policy::small_targets const& targets, unsigned t) {
  auto const modes = policy::modes_of(targets, t);
  if (modes.empty()) return nullptr;
  return {{"target", t == 0 ? json(nullptr) : json(core::view(rules, rules.target[t].path))},
          {"modes", modes}};
}

json small_json(foreign<abi::segment> const& s, job_files const& files, bool is_running) {
  policy::small_targets const targets = small_targets_of(s, files);
  json const counted = counted_small(s, targets, is_running);
  if (counted.is_null()) return nullptr;
  json out = {{"targets", rows_of(s, targets)}};
  out.update(counted);
  return out;
}

}  // namespace sluice::segment
