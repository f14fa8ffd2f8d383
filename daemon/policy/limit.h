// SPDX-License-Identifier: Apache-2.0
// The limit syntax `SELECTOR[:ROLE]=AMOUNT[@TARGET]`, and what a channel is before it is compiled.
// A limit of the command line, a channel of a policy and a ceiling of a QoS class all become one
// channel_spec.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/ruleset.h"

namespace sluice::policy {

struct cost_file;

struct rate {
  core::unit_kind unit = core::unit_kind::ops;
  std::uint64_t rate_q40 = 0;  // bucket units per ns, see core/service_curve.h; 0 pauses
  bool any_unit = false;       // a bare `0`: fits every unit
  bool is_bare = false;        // a number without B and period: who wrote it may have meant either
};

struct channel_spec {
  std::string name;       // as printed and as `sluice set` takes it
  std::string origin;     // where it was written
  std::uint64_t ops = 0;  // mask
  rate amount;
  std::string target;       // index by name or path; empty: everywhere
  std::string path_glob;    // empty: any
  std::string thread_glob;  // empty: any
  std::uint32_t user = core::any_user;
  std::string role;                       // empty: any
  std::vector<std::string> besides = {};  // for calls of no such role; empty: any
  bool outermost = false;  // passed after all others: what waits for them must not hold its tokens
  std::shared_ptr<cost_file const> costs = {};  // of one that counts VOPs; null: its target's
};

/// `1000/s`, `5k/s`, `200MiB/s`, `90/min`, `0`. Throws a usage error that begins with `where`.
rate parse_amount(std::string_view text, std::string const& where);

/// The same of `what`, which is measured in `unit`; VOPs are written like operations. Throws also
/// when it is another unit.
rate parse_amount(std::string_view text, std::string const& where, core::unit_kind unit,
                  std::string_view what);

/// Tokens per second, without the rounding of the bucket's rate.
double per_second(core::unit_kind unit, std::uint64_t rate_q40);

std::uint64_t milli_per_second(rate const& r);

/// The rate that milli-tokens per second are, as a bucket counts.
std::uint64_t rate_q40_of(std::uint64_t milli_per_second, core::unit_kind unit);

/// A rate that limits nobody and keeps a bucket from wrapping for hours; milli-tokens per second.
constexpr std::uint64_t unlimited(core::unit_kind unit) {
  return unit == core::unit_kind::bytes ? 1'000'000'000'000'000 : 1'000'000'000'000;
}

/// Whether it is one of those; some bits are lost in the unit of a bucket.
bool is_unlimited(core::unit_kind unit, std::uint64_t rate_q40);

/// The rate for people: `5k/s`, `200MiB/s`, `5k VOP/s`, `paused`, `no limit`.
std::string rate_text(core::unit_kind unit, std::uint64_t rate_q40);

inline constexpr std::uint64_t no_bound = ~std::uint64_t{0};  // policies::unbounded
/// A bound in thousandths per second: 20k/s, 1GiB/s, 5k VOP/s; "none" when there is no such bound.
std::string bound_text(std::uint64_t milli_per_second, core::unit_kind unit);

/// Says the unit in a rate that was written without: `5k/s` of VOPs is `5k VOP/s`.
std::string with_unit(std::string rate, core::unit_kind unit);

/// The selector of all calls, priced.
inline constexpr std::string_view vops_selector = "vops";

/// Ops of a selector; throws a usage error with a suggestion.
std::uint64_t parse_selector(std::string_view text, std::string const& where);

/// Throws when bytes are asked of ops that move none; settles the unit of a bare 0.
void check_unit(channel_spec& channel, std::string const& where);

/// One --limit.
channel_spec parse_limit(std::string_view text);

/// Names a limit may start with: resources, classes and ops.
std::vector<std::string> selector_names();

}  // namespace sluice::policy
