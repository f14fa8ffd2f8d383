// SPDX-License-Identifier: Apache-2.0
// A job's memory as the node daemon reads it, with any bytes over it: taking the job over, meters,
// census, curves written into it, figures and sentences. Nothing crashes or hangs, and no number
// leaves its bounds. The input: eight bytes of choices, then pieces of {offset, length, bytes} that
// are written over a segment that was good; the rounds of the daemon run between the pieces.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "core/token_bucket.h"
#include "node/census.h"
#include "node/curves.h"
#include "node/demand_meter.h"
#include "segment/mapping.h"

namespace {

using namespace sluice;

constexpr std::int64_t ms = 1'000'000, start_ns = 1'000'000'000'000;
constexpr node::rate paid = 1'000'000;

void must(bool holds) {
  if (!holds) std::abort();
}

/// Made once; only what was scribbled over is put back.
abi::segment& memory() {
  static auto const s = std::make_unique<abi::segment>();
  return *s;
}

void lay_out(abi::segment& s) {
  s.head.magic_word = abi::magic;
  s.head.layout = abi::layout_version;
  s.head.total_bytes = sizeof s;
  s.head.ruleset_bytes = sizeof s.rules;
  s.head.bucket_bytes = sizeof s.bucket[0];
  s.head.shard_bytes = sizeof s.owned[0];
  s.head.slot_bytes = sizeof s.near_process[0];
  s.head.state = 1;
  s.rules.target_count = 1;
  s.rules.rule_count = s.rules.channel_count = 2;
  s.rules.string_bytes = 64;
  auto const settings = node::settings_of(node::unit_kind::ops, {paid, 0, 0}, {});
  for (unsigned c = 0; c < 2; ++c) core::init(s.bucket[c], settings, start_ns);
}

/// The regions the daemon reads; the counters of calls are summed for people only.
struct region {
  std::size_t from, bytes;
};
region region_of(std::uint8_t which) {
  using abi::segment;
  switch (which % 6) {
    case 0:
      return {0, sizeof(abi::header)};
    case 1:
      return {offsetof(segment, rules), sizeof(core::ruleset)};
    case 2:
      return {offsetof(segment, bucket), 2 * sizeof(core::bucket)};
    case 3:
      return {offsetof(segment, channel), 2 * sizeof(abi::channel_state)};
    case 4:
      return {offsetof(segment, near_process), sizeof(segment::near_process)};
    default:
      return {offsetof(segment, owned), 8 * sizeof(abi::shard)};
  }
}

void put_back(std::span<region const> dirty) {
  auto* const bytes = reinterpret_cast<unsigned char*>(&memory());
  for (region const& r : dirty) std::memset(bytes + r.from, 0, r.bytes);
  // Curves are written by us.
  std::memset(static_cast<void*>(&memory().bucket[0]), 0, 2 * sizeof(core::bucket));
}

void count_heads(abi::segment const& s) {
  unsigned looked = 0;
  node::census c(
      [&](auto const& claimed, uid_t) {
        std::vector<bool> lives;
        for (auto const& p : claimed) lives.push_back(((p.pid ^ p.start_ticks) & 1) != 0);
        looked += static_cast<unsigned>(claimed.size());
        return lives;
      },
      5);
  node::foreign_claims const dead = {{6, {1, 0}}};
  node::census::walk walk;
  for (unsigned steps = 0;; ++steps) {
    must(steps <= abi::process_slots / 64);
    unsigned budget = 64;
    if (c.step(s, 0, dead, budget, walk)) break;
  }
  auto const& found = walk.found;
  must(looked <= abi::process_slots && found.processes <= abi::process_slots);
  must(found.pids.size() + found.foreign_processes == found.processes);
}

void use_meter(node::demand_meter& m, node::unit_kind unit, std::int64_t& now_ns, unsigned ticks) {
  abi::segment& s = memory();
  std::int64_t const from_ns = m.since_ns();
  for (unsigned i = 0; i < ticks; ++i) {
    now_ns += 10 * ms;
    auto const depth = i % 4 == 3 ? node::look_depth::curve : node::look_depth::threads;
    m.tick(node::look(s, 0, depth, now_ns), paid, now_ns);
  }
  auto const f = m.take(unit, node::waits_so_far(s, 0), now_ns);
  std::uint64_t const span_ms = static_cast<std::uint64_t>((now_ns - from_ns) / ms);
  // What the curve paid with its burst, and one large request.
  node::rate const large = unit == node::unit_kind::ops ? 4096 * 1000ull : 1000ull << 31;
  must(f.served <= (paid * (span_ms + 20) / 1000 + large + 1) * 1000 / span_ms + 1);
  must(f.blocked_ppm <= 1'000'000 && f.waiters <= abi::owned_shards);
  must(f.waiting <= (std::uint64_t{1} << 50) * 1000);
}

void write_curve(std::uint8_t how, std::int64_t now_ns) {
  node::phases before = {paid, 1000, 2000};
  node::curve_change change = {
      segment::writer_of(memory()), 0, node::unit_kind::ops, &before, {how * 10'000u, 0, 0}};
  node::phase_times const times = {(how & 1) != 0 ? now_ns + 100 * ms : 0, now_ns + 200 * ms,
                                   (how & 2) != 0};
  node::write_falling({&change, 1}, times, now_ns);
  node::write_wanted({&change, 1}, times, now_ns);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  if (size < 8) return 0;
  unsigned char const* const choice = data;
  data += 8;
  size -= 8;
  abi::segment& s = memory();
  lay_out(s);
  std::vector<region> dirty = {{0, sizeof(abi::header)},
                               {offsetof(abi::segment, rules), sizeof(core::ruleset)}};
  auto const unit = (choice[0] & 1) != 0 ? node::unit_kind::bytes : node::unit_kind::ops;
  std::int64_t now_ns = start_ns;
  node::demand_meter m;
  m.start(node::look(s, 0, node::look_depth::threads, now_ns), node::waits_so_far(s, 0), now_ns);
  for (unsigned piece = 1; piece < 8 && size >= 4; ++piece) {
    region const r = region_of(data[0]);
    std::size_t const at = (data[1] | data[2] << 8) * std::size_t{8} % r.bytes;
    std::size_t const length = std::min({std::size_t{data[3]}, size - 4, r.bytes - at});
    std::memcpy(reinterpret_cast<unsigned char*>(&s) + r.from + at, data + 4, length);
    dirty.push_back({r.from + at, length});
    data += 4 + length;
    size -= 4 + length;
    use_meter(m, unit, now_ns, choice[piece] % 12u + 1);
    if ((choice[piece] & 64) != 0) write_curve(choice[piece], now_ns);
    if ((choice[piece] & 128) != 0) now_ns += std::int64_t{choice[piece]} << 32;
  }
  count_heads(s);
  if (abi::refuse_reason(s, sizeof s) == nullptr) must(segment::job_name(s).size() < 129);
  try {
    must(segment::channel_names(s).size() <= core::max_channels);
  } catch (std::exception const&) {  // a ruleset that is none: the job is refused
  }
  put_back(dirty);
  return 0;
}
