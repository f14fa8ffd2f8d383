// SPDX-License-Identifier: Apache-2.0
// Order of passing: a request books in its narrowest channel first, so that what waits for a narrow
// limit does not take tokens of a wide one meanwhile. Narrow: fewer ops, then the deeper target,
// then conditions.
#include "policy/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "policy/cost_file.h"

namespace sluice::policy {

namespace {

class builder {
 public:
  builder(compile_input const& input, file_system const& files) : input_(input), files_(files) {
    out_.rules = std::make_unique<core::ruleset>();
    std::memset(static_cast<void*>(out_.rules.get()), 0, sizeof(core::ruleset));
  }

  compiled build() {
    out_.backgrounds = input_.backgrounds;
    add_targets();
    link_parents();
    add_devices_below();
    find_durable();
    out_.hinted_targets = find_small(&target_spec::hints, input_.hints_everywhere, "hints");
    find_gathered();
    find_strict();
    out_.buffered_targets =
        find_small(&target_spec::buffers, input_.buffers_everywhere, "buffered");
    find_after();
    add_channels();
    add_quiet_devices();
    core::index_rules(*out_.rules);
    add_roles();
    check_gates();
    if (char const* wrong = core::validate(*out_.rules))
      throw sluice_error(fmt::format("compiled an invalid ruleset: {}", wrong));
    return std::move(out_);
  }

 private:
  core::text keep(std::string const& s, std::string const& origin);
  place find(target_spec const& spec) const;
  void add_target(target_spec const& spec);
  void add_targets();
  void link_parents();
  void add_devices_below();
  void find_durable();
  std::uint32_t with_nested(std::uint32_t roots) const;
  void refuse_with_order(bool target_spec::*says, char const* word) const;
  void find_strict();
  std::uint32_t find_small(bool target_spec::*says, bool is_everywhere, char const* name);
  void find_gathered();
  void find_after();
  unsigned depth(unsigned target) const;
  std::uint8_t level(channel_spec const& c) const;
  std::uint8_t target_index(channel_spec const& c) const;
  std::uint8_t add_costs(channel_spec const& c);
  void add_channels();
  void add_channel(channel_spec const& c);
  void add_roles();
  void add_quiet_devices();
  unsigned most_gates(std::uint64_t mask) const;
  void check_gates() const;
  void hash(std::string_view part);

  compile_input const& input_;
  file_system const& files_;
  compiled out_;
  std::vector<std::string> paths_ = {""};         // canonical, by target
  std::vector<place> places_ = {{}};              // by target
  std::vector<std::uint64_t> roles_of_rule_;      // 0: all
  std::map<std::string, unsigned> target_named_;  // name or path as written -> target
};

core::text builder::keep(std::string const& s, std::string const& origin) {
  core::ruleset& r = *out_.rules;
  if (s.size() + 1 > core::string_pool_bytes - r.string_bytes)
    throw usage_error(origin + ": names, paths and patterns together are too long");
  core::text const at = {r.string_bytes, static_cast<std::uint32_t>(s.size())};
  std::memcpy(r.strings + r.string_bytes, s.c_str(), s.size() + 1);
  r.string_bytes += static_cast<std::uint32_t>(s.size() + 1);
  return at;
}

place builder::find(target_spec const& spec) const {
  try {
    return files_.find(spec.path);
  } catch (error const& e) {
    throw usage_error(fmt::format("{}: {}", spec.origin, e.what()));
  }
}

void builder::add_target(target_spec const& spec) {
  if (target_named_.contains(spec.name)) return;
  place const found = find(spec);
  core::ruleset& r = *out_.rules;
  for (unsigned t = 1; t < r.target_count; ++t)
    if (paths_[t] == found.path) {
      target_named_[spec.name] = t;
      return;
    }
  if (r.target_count == core::max_targets)
    throw usage_error(fmt::format("{}: more than {} targets", spec.origin, core::max_targets - 1));
  unsigned const t = r.target_count++;
  core::target_row& row = r.target[t];
  row.path = keep(found.path, spec.origin);
  row.name = keep(spec.name, spec.origin);
  row.device = found.device;
  row.inode = found.inode;
  row.mount_id = found.mount_id;
  row.one_file_system = spec.one_file_system ? 1 : 0;
  if (spec.one_file_system) hash(fmt::format("one file system|{}\n", found.path));
  row.whole_device = is_whole_device(files_.mounts, found) ? 1 : 0;
  if (row.whole_device == 0)
    for (std::uint64_t id : inside_mounts(files_.mounts, found))
      if (row.inside_count < core::max_inside_mounts) row.inside_mounts[row.inside_count++] = id;
  places_.push_back(found);
  paths_.push_back(found.path);
  target_named_[spec.name] = t;
}

void builder::add_targets() {
  core::ruleset& r = *out_.rules;
  r.target_count = 1;
  r.target[0].name = keep("elsewhere", "");
  r.target[0].path = keep("", "");
  auto const is_used = [&](target_spec const& target) {
    return std::any_of(input_.channels.begin(), input_.channels.end(),
                       [&](channel_spec const& c) { return c.target == target.name; });
  };
  // A policy speaks of a whole site; trees that no channel here names need not be on this node.
  for (auto const& target : input_.targets)
    if (target.says_more() || is_used(target)) add_target(target);
  for (auto const& c : input_.channels)
    if (!c.target.empty()) add_target({c.target, c.target, c.origin});
}

void builder::link_parents() {
  core::ruleset& r = *out_.rules;
  for (unsigned t = 1; t < r.target_count; ++t)
    for (unsigned above = 1; above < r.target_count; ++above) {
      bool const is_above = above != t && lies_below(paths_[t], paths_[above]);
      unsigned const parent = r.target[t].parent;
      if (is_above && (parent == 0 || paths_[above].size() > paths_[parent].size()))
        r.target[t].parent = static_cast<std::uint8_t>(above);
    }
}

void builder::find_durable() {
  core::ruleset const& r = *out_.rules;
  std::map<unsigned, target_spec const*> says;  // targets that say an order
  for (auto const& target : input_.targets)
    if (target.durable) {
      unsigned const root = target_named_.at(target.name);
      says[root] = &target;
      hash(fmt::format("{}|{}|{}\n", target.ordered ? "ordered" : "durable",
                       static_cast<int>(target.stream), paths_[root]));
    }
  for (unsigned t = 1; t < r.target_count; ++t) {
    unsigned root = t;
    while (root != 0 && !says.contains(root)) root = r.target[root].parent;
    if (root == 0) continue;
    out_.durable_targets |= 1u << t;
    target_spec const& order = *says.at(root);
    if (order.ordered) out_.ordered_targets |= 1u << t;
    if (order.stream == order_stream::job) out_.job_streams |= 1u << t;
    if (order.stream == order_stream::thread) out_.thread_streams |= 1u << t;
    if (order.stream == order_stream::path) out_.path_streams |= 1u << t;
  }
}

/// Those below one of the roots, themselves included.
std::uint32_t builder::with_nested(std::uint32_t roots) const {
  core::ruleset const& r = *out_.rules;
  std::uint32_t found = 0;
  for (unsigned t = 0; roots != 0 && t < r.target_count; ++t) {
    unsigned root = t;
    while (root != 0 && (roots >> root & 1) == 0) root = r.target[root].parent;
    if ((roots >> root & 1) != 0) found |= 1u << t;
  }
  return found;
}

/// Targets that say so, or all, with those nested in them. `name`: as it counts in the hash.
std::uint32_t builder::find_small(bool target_spec::*says, bool is_everywhere, char const* name) {
  std::uint32_t roots = is_everywhere ? 1 : 0;
  for (auto const& target : input_.targets)
    if (target.*says) roots |= 1u << target_named_.at(target.name);
  std::uint32_t const found = with_nested(roots);
  if (roots != 0) hash(fmt::format("{}|{}\n", name, found));
  return found;
}

/// After find_durable(): an fsync that the journal answers looks at what is written already.
void builder::refuse_with_order(bool target_spec::*says, char const* word) const {
  for (auto const& target : input_.targets) {
    if (!(target.*says)) continue;
    if ((with_nested(1u << target_named_.at(target.name)) & out_.durable_targets) != 0)
      throw usage_error(
          fmt::format("{}: {} is {} and has an order, or lies in or around a directory that "
                      "has one; use one of the two",
                      target.origin, target.path, word));
  }
}

void builder::find_gathered() {
  refuse_with_order(&target_spec::gathers, "close-to-open");
  out_.gathered_targets = find_small(&target_spec::gathers, false, "gathered");
}

/// Everywhere means: but where an order says otherwise.
void builder::find_strict() {
  refuse_with_order(&target_spec::is_strict, "strict");
  out_.strict_targets = find_small(&target_spec::is_strict, input_.strict_everywhere, "strict") &
                        ~out_.durable_targets;
}

void builder::find_after() {
  core::ruleset const& r = *out_.rules;
  std::map<unsigned, std::size_t> rule_of;  // of targets that say one
  for (auto const& target : input_.targets) {
    if (!target.after) continue;
    unsigned const root = target_named_.at(target.name);
    if (!rule_of.emplace(root, out_.after.size()).second)
      throw usage_error(fmt::format("{}: {} has an \"after\" already", target.origin, target.path));
    out_.after.push_back({*target.after, paths_[root], 0});
    hash(fmt::format("after|{}|{}|{}|{}\n", paths_[root], target.after->write,
                     target.after->durable, target.after->patience_ns));
  }
  for (unsigned t = 1; t < r.target_count && !rule_of.empty(); ++t) {
    unsigned root = t;
    while (root != 0 && !rule_of.contains(root)) root = r.target[root].parent;
    if (root != 0) out_.after[rule_of.at(root)].targets |= 1u << t;
  }
}

unsigned builder::depth(unsigned target) const {
  unsigned d = 0;
  for (; target != 0; target = out_.rules->target[target].parent) ++d;
  return d;
}

bool is_conditional(channel_spec const& c) {
  return !c.path_glob.empty() || !c.thread_glob.empty() || !c.role.empty() || !c.besides.empty() ||
         c.user != core::any_user;
}

/// 0 one op, 1 within a class, 2 within the resource metadata, 3 wider.
unsigned width(std::uint64_t ops) {
  if (std::popcount(ops) == 1) return 0;
  for (unsigned i = 0; i < static_cast<unsigned>(core::call_class::count); ++i)
    if ((ops & ~core::class_mask(static_cast<core::call_class>(i))) == 0) return 1;
  return (ops & ~core::ops_of_selector("metadata")) == 0 ? 2 : 3;
}

std::uint8_t builder::target_index(channel_spec const& c) const {
  if (c.target.empty()) return core::any_target;
  return static_cast<std::uint8_t>(target_named_.at(c.target));
}

std::uint8_t builder::level(channel_spec const& c) const {
  if (c.outermost) return 255;
  unsigned const deep = c.target.empty() ? 0 : depth(target_index(c));
  unsigned const by_target = core::max_targets - deep;
  return static_cast<std::uint8_t>((width(c.ops) * (core::max_targets + 1) + by_target) * 2 +
                                   (is_conditional(c) ? 0 : 1));
}

/// The number of its table + 1. Channels of one target have one table.
std::uint8_t builder::add_costs(channel_spec const& c) {
  if (c.amount.unit != core::unit_kind::vops) return 0;
  std::shared_ptr<cost_file const> costs = c.costs;
  for (auto const& target : input_.targets)
    if (costs == nullptr && target.name == c.target) costs = target.costs;
  std::string const& root = paths_[target_named_.at(c.target)];
  if (costs == nullptr)
    throw usage_error(fmt::format(
        "{}: what requests cost there is not known: measure it with `sluice calibrate {} -o FILE`, "
        "then give --cost FILE",
        c.origin, root));
  if (auto const why = why_other_costs(*costs, root, files_); !why.empty())
    throw usage_error(
        fmt::format("{}: its cost file is not of {}: {}; measure it there with "
                    "`sluice calibrate {} -o FILE`",
                    c.origin, root, why, root));
  core::cost_table const table = to_table(*costs);
  core::ruleset& r = *out_.rules;
  hash(fmt::format("costs|{}|{}\n", c.target,
                   std::string_view(reinterpret_cast<char const*>(&table), sizeof table)));
  unsigned i = 0;
  while (i < r.cost_count && std::memcmp(&r.cost[i], &table, sizeof table) != 0) ++i;
  if (i == core::max_cost_tables)
    throw usage_error(
        fmt::format("{}: more than {} tables of costs", c.origin, core::max_cost_tables));
  if (i == r.cost_count) r.cost[r.cost_count++] = table;
  return static_cast<std::uint8_t>(i + 1);
}

void builder::add_channel(channel_spec const& c) {
  core::ruleset& r = *out_.rules;
  if (r.channel_count == core::max_channels)
    throw usage_error(fmt::format("{}: more than {} limits", c.origin, core::max_channels));
  for (unsigned i = 0; i < r.channel_count; ++i)
    if (core::view(r, r.channel[i].name) == c.name)
      throw usage_error(fmt::format("{}: \"{}\" already has a limit", c.origin, c.name));
  core::channel_row& channel = r.channel[r.channel_count];
  channel.name = keep(c.name, c.origin);
  channel.origin = keep(c.origin, c.origin);
  channel.unit = static_cast<std::uint8_t>(c.amount.unit);
  channel.level = level(c);
  channel.count_only = input_.monitor ? 1 : 0;
  channel.cost = add_costs(c);
  core::rule_row& rule = r.rule[r.rule_count++];
  rule.ops = c.ops;
  if (!c.path_glob.empty()) rule.path_glob = keep(c.path_glob, c.origin);
  if (!c.thread_glob.empty()) rule.thread_glob = keep(c.thread_glob, c.origin);
  if (!c.role.empty()) {
    check_role(input_.roles, c.role, c.origin);
    rule.role = keep(c.role, c.origin);
  }
  roles_of_rule_.push_back(c.besides.empty() ? roles_called(input_.roles, c.role)
                                             : roles_besides(input_.roles, c.besides));
  rule.user = c.user;
  rule.target = target_index(c);
  rule.channel = static_cast<std::uint8_t>(r.channel_count++);
  rule.conditional = is_conditional(c) ? 1 : 0;
  out_.curves.push_back(settings_of(c.amount.unit, c.amount.rate_q40));
  hash(fmt::format("{}|{:x}|{}|{}|{}|{}|{}|{}|{}|{}|{}\n", c.name, c.ops, channel.unit,
                   c.amount.rate_q40, rule.target == core::any_target ? "" : paths_[rule.target],
                   c.path_glob, c.thread_glob, c.user, channel.count_only, c.role,
                   fmt::join(c.besides, ",")));
}

void builder::add_channels() {
  std::vector<channel_spec const*> order;
  for (auto const& c : input_.channels) order.push_back(&c);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto const* a, auto const* b) { return level(*a) < level(*b); });
  hash("sluice limits 1\n");
  for (auto const* c : order) add_channel(*c);
}

void builder::add_roles() {
  if (input_.roles.empty()) return;
  out_.roles = compile_roles(input_.roles, roles_of_rule_);
  hash(fmt::format("roles|{}\n", std::string_view(reinterpret_cast<char const*>(out_.roles.get()),
                                                  sizeof *out_.roles)));
}

/// The deepest target first: what is mounted below it is not its parent's.
void builder::add_devices_below() {
  core::ruleset& r = *out_.rules;
  r.top_mount = top_mount(files_.mounts);
  std::vector<unsigned> deepest_first(r.target_count - 1);
  std::iota(deepest_first.begin(), deepest_first.end(), 1u);
  std::stable_sort(deepest_first.begin(), deepest_first.end(),
                   [&](unsigned a, unsigned b) { return paths_[a].size() > paths_[b].size(); });
  auto const is_known = [&](std::uint64_t device) {
    return std::any_of(r.below, r.below + r.below_count,
                       [&](core::device_below const& row) { return row.device == device; });
  };
  for (unsigned const t : deepest_first) {
    auto const below = mounts_below(files_.mounts, places_[t]);
    for (std::uint64_t const device : devices_only_in(below, files_.mounts))
      if (r.below_count < core::max_devices_below && !is_known(device))
        r.below[r.below_count++] = {device, core::with_mounts_below(r, t), 0};
  }
}

void builder::add_quiet_devices() {
  core::ruleset& r = *out_.rules;
  for (std::uint64_t device : quiet_devices(files_.mounts))
    if (r.quiet_count < core::max_quiet_devices) r.quiet_device[r.quiet_count++] = device;
}

/// The most limits of a mask that one call can meet: it has one role, or none.
unsigned builder::most_gates(std::uint64_t mask) const {
  if (out_.roles == nullptr) return static_cast<unsigned>(std::popcount(mask));
  int most = 0;
  for (std::uint64_t const rules : out_.roles->rules_of)
    most = std::max(most, std::popcount(mask & rules));
  return static_cast<unsigned>(most);
}

void builder::check_gates() const {
  core::ruleset const& r = *out_.rules;
  for (unsigned o = 0; o < core::op_count; ++o)
    for (unsigned t = 0; t < r.target_count; ++t)
      if (most_gates(r.rules_for[o][t]) > core::max_gates)
        throw usage_error(fmt::format("more than {} limits apply to one \"{}\" on {}",
                                      core::max_gates, core::op_table[o].name,
                                      t == 0 ? "files elsewhere" : paths_[t]));
}

/// Parts are added up, so that their order does not matter.
void builder::hash(std::string_view part) {
  std::uint64_t sum = 0xcbf29ce484222325ull;
  for (unsigned char c : part) sum = (sum ^ c) * 0x100000001b3ull;
  out_.hash += sum;
}

}  // namespace

std::string why_other_costs(cost_file const& costs, std::string const& path,
                            file_system const& files) {
  place const where = files.find(path);
  mount const* const m = mount_of(files.mounts, where);
  return m == nullptr ? std::string() : why_other_mount(costs.from, *m, where);
}

file_system this_machine() { return {read_mounts(), find_place}; }

core::curve_settings settings_of(core::unit_kind unit, std::uint64_t rate_q40) {
  return core::default_settings(rate_q40, core::token_units(unit));
}

compiled compile(compile_input const& input, file_system const& files) {
  return builder(input, files).build();
}

}  // namespace sluice::policy
