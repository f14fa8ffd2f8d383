// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.h"

#include <fmt/format.h>
#include <pwd.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/most_supplies.h"
#include "core/units.h"
#include "policy/algorithm.h"
#include "policy/auto_read.h"
#include "policy/background.h"
#include "policy/carried.h"
#include "policy/control_read.h"
#include "policy/cost_file.h"
#include "policy/milli_rate.h"
#include "policy/order.h"
#include "policy/reading.h"
#include "policy/requests.h"
#include "policy/resource.h"
#include "policy/small.h"
#include "policy/supply.h"
#include "policy/text_file.h"

namespace sluice::policy {

namespace {

using names = reading::names;

names resource_names() {
  names out;
  for (auto const& row : resource_rows) out.emplace_back(row.name);
  return out;
}

/// What may be promised, whatever meets.
rate floor_of(cost_file const& costs) {
  rate r;
  r.unit = core::unit_kind::vops;
  auto const milli = static_cast<std::uint64_t>(costs.provisionable_vops * core::milli_per_vop);
  core::make_rate(milli, second_ns, r.rate_q40);
  return r;
}

constexpr std::size_t most_class_bytes = 31;  // as a message carries them
constexpr std::size_t most_target_bytes = 63, most_channel_bytes = 127;

class reader : reading {
 public:
  explicit reader(std::string const& file) : reading(file) {}

  site read(node const& root) {
    keys(root, "the policy",
         {"targets", "roles", "requests", "classes", "channels", "control", "access", "algorithm"});
    if (node const* n = root.find("targets")) read_targets(*n);
    if (node const* n = root.find("roles")) out_.roles = read_roles(*this, *n);
    if (node const* n = root.find("requests")) out_.requests = read_requests(*this, *n, out_.roles);
    if (node const* n = root.find("classes")) read_classes(*n);
    if (node const* n = root.find("channels")) read_channels(*n);
    if (node const* n = root.find("control")) out_.control = read_control(*this, *n, class_names());
    if (node const* n = root.find("access")) out_.access = read_access(*this, *n, class_names());
    if (node const* n = root.find("algorithm")) read_algorithm(*n);
    check_supplies(root);
    check_reservations(out_);
    return std::move(out_);
  }

 private:
  names target_names() const {
    names out;
    for (auto const& target : out_.targets) out.push_back(target.name);
    return out;
  }

  names class_names() const {
    names out;
    for (auto const& c : out_.classes) out.push_back(c.name);
    return out;
  }

  void read_targets(node const& n);
  void check_priced(member const& target, member const& resource) const;
  void read_classes(node const& n);
  void read_class_target(qos_class& c, member const& target, std::string const& path);
  std::shared_ptr<cost_file const> read_costs(node const& n, std::string const& path) const;
  void read_capacity(target_spec const& target, node const& n, std::string const& path);
  enum class bound : std::uint8_t { reservation, limit };
  std::optional<rate> capacity_that_stands(std::string const& target,
                                           std::string const& resource) const;
  rate read_amount(node const& n, bound which, std::string const& target,
                   std::string const& resource, std::string const& path) const;
  rate whole_of(node const& n, bound which, std::string const& target, std::string const& resource,
                std::string const& path) const;
  void read_requests_of(share& s, node const& n, std::string const& target,
                        std::string const& resource, std::string const& path) const;
  share read_share(node const& n, std::string const& target, std::string const& resource,
                   std::string const& path) const;
  void read_channels(node const& n);
  channel_spec read_channel(node const& n, std::string const& path);
  void read_match(channel_spec& c, node const& n, std::string const& path) const;
  std::uint32_t read_user(node const& n, std::string const& path) const;
  void read_algorithm(node const& n);
  void check_supplies(node const& root) const;

  site out_;
};

void reader::read_targets(node const& n) {
  expect(n, node::object, "targets");
  for (auto const& m : n.members) {
    check_shown(m.at, m.key, "target", most_target_bytes);
    std::string const path = "targets." + m.key;
    keys(m.value, path,
         {"path", "one_file_system", "cost", "capacity", "order", "stream", "after", "small"});
    node const* tree = m.value.find("path");
    if (tree == nullptr) fail(m.value.at, path + " has no \"path\"");
    target_spec target{m.key, string(*tree, path + ".path"), where(m.at)};
    if (target.path[0] != '/') fail(tree->at, path + ".path must begin with /");
    if (m.key.find_first_of("=@ ") != std::string::npos)
      fail(m.at, fmt::format("the target name \"{}\" must not contain =, @ or a blank", m.key));
    if (node const* one = m.value.find("one_file_system"))
      target.one_file_system = boolean(*one, path + ".one_file_system");
    if (node const* order = m.value.find("order"))
      parse_order(string(*order, path + ".order"), where(order->at) + ": " + path + ".order",
                  target);
    if (node const* stream = m.value.find("stream")) {
      if (!target.durable) fail(stream->at, path + ".stream says nothing without an \"order\"");
      parse_stream(string(*stream, path + ".stream"), where(stream->at) + ": " + path + ".stream",
                   target);
    }
    if (node const* small = m.value.find("small"))
      parse_small(string(*small, path + ".small"), where(small->at) + ": " + path + ".small",
                  target);
    if (node const* after = m.value.find("after"))
      target.after = read_after(*this, *after, path + ".after");
    if (node const* cost = m.value.find("cost")) target.costs = read_costs(*cost, path + ".cost");
    out_.targets.push_back(std::move(target));
    if (node const* capacity = m.value.find("capacity"))
      read_capacity(out_.targets.back(), *capacity, path + ".capacity");
  }
}

/// The name of a file was replaced by what it says when the policy was read from its own file.
std::shared_ptr<cost_file const> reader::read_costs(node const& n, std::string const& path) const {
  expect(n, node::string, path);
  if (!is_carried(n.text))
    fail(n.at, path + " names a file: only a policy that is read from a file can do that");
  return std::make_shared<cost_file>(parse_cost_file(n.text, where(n.at) + ": " + path));
}

void reader::read_capacity(target_spec const& target, node const& n, std::string const& path) {
  keys(n, path, resource_names());
  for (auto const& c : n.members) {
    std::string const here = path + "." + c.key;
    bool const is_priced = unit_of_supply(c.key) == core::unit_kind::vops;
    if (is_priced && target.costs == nullptr)
      fail(c.at, fmt::format("{} needs a \"cost\" of the target: measure it with `sluice calibrate "
                             "{} -o FILE`",
                             here, target.path));
    bool const is_calibrated =
        is_priced && c.value.kind == node::string && c.value.text == "calibrated";
    rate& capacity = out_.capacity[target.name][c.key];
    if (c.value.kind == node::object) {
      auto_reading const read = read_auto(*this, c.value, c.key, target.costs.get(), here);
      capacity = read.most;
      out_.steered[target.name][c.key] = read.how;
      continue;
    }
    capacity = is_calibrated ? floor_of(*target.costs) : resource_rate(c.value, c.key, here);
  }
}

/// What a part is of: the capacity; of one that is steered, a limit of the most and a reservation
/// of what is there in any case.
rate reader::whole_of(node const& n, bound which, std::string const& target,
                      std::string const& resource, std::string const& path) const {
  auto const of = out_.capacity.find(target);
  if (of == out_.capacity.end() || !of->second.contains(resource))
    fail(n.at, fmt::format("{} is a part of a capacity that target {} has not", path, target));
  auto const by_target = out_.steered.find(target);
  if (which == bound::limit || by_target == out_.steered.end() ||
      !by_target->second.contains(resource))
    return of->second.at(resource);
  auto const& least = by_target->second.at(resource).least;
  if (!least)
    fail(n.at, fmt::format("{} is a part of a capacity that moves: give that a \"min\", of which "
                           "this is a part, or write a rate",
                           path));
  return *least;
}

std::optional<rate> reader::capacity_that_stands(std::string const& target,
                                                 std::string const& resource) const {
  auto const of = out_.capacity.find(target);
  auto const steered = out_.steered.find(target);
  bool const moves = steered != out_.steered.end() && steered->second.contains(resource);
  if (of == out_.capacity.end() || !of->second.contains(resource) || moves) return std::nullopt;
  return of->second.at(resource);
}

/// `40%` of the capacity, or a rate.
rate reader::read_amount(node const& n, bound which, std::string const& target,
                         std::string const& resource, std::string const& path) const {
  if (n.kind != node::string || !n.text.ends_with('%')) return resource_rate(n, resource, path);
  auto const percent = core::parse_rate(std::string_view(n.text).substr(0, n.text.size() - 1));
  if (!percent.ok() || percent.value.is_bytes)
    fail(n.at, fmt::format("{}: \"{}\" is not a percentage like 40%", path, n.text));
  double const part = static_cast<double>(percent.value.units) /
                      (static_cast<double>(percent.value.period_ns) / 1e9) / 100;
  if (part > 1) fail(n.at, fmt::format("{} is {}, more than all there is", path, n.text));
  rate r = whole_of(n, which, target, resource, path);
  bool const is_some = r.rate_q40 != 0 && part > 0;
  r.rate_q40 = static_cast<std::uint64_t>(static_cast<double>(r.rate_q40) * part);
  if (is_some && milli_per_second(r) == 0)
    fail(n.at, fmt::format("{}: \"{}\" {}", path, n.text, too_little(r.unit)));
  return r;
}

/// A reservation that is written beside them is the most that they may come to.
void reader::read_requests_of(share& s, node const& n, std::string const& target,
                              std::string const& resource, std::string const& path) const {
  node const* const requests = n.find("requests");
  if (requests == nullptr) return;
  std::string const here = path + ".requests";
  if (unit_of_supply(resource) != core::unit_kind::vops)
    fail(requests->at, here + ": what requests need is known in VOPs only");
  auto const spec = std::find_if(out_.targets.begin(), out_.targets.end(),
                                 [&](auto const& t) { return t.name == target; });
  s.requests =
      read_promises(*this, *requests, resource + "@" + target, out_.requests, *spec->costs, here);
  s.requests->has_most = s.reservation.has_value();
  rate const first = first_of(*s.requests);
  if (!s.reservation) s.reservation = first;
  if (s.reservation->rate_q40 < first.rate_q40)
    fail(requests->at,
         fmt::format("{} come to {} even if they cause nothing: more than the reservation", here,
                     rate_text(first.unit, first.rate_q40)));
}

share reader::read_share(node const& n, std::string const& target, std::string const& resource,
                         std::string const& path) const {
  names allowed = {"reservation", "weight", "limit", "priority", "requests"};
  for (auto& key : background_keys()) allowed.push_back(std::move(key));
  keys(n, path, allowed);
  share s;
  s.origin = where(n.at);
  if (node const* r = n.find("reservation"))
    s.reservation = read_amount(*r, bound::reservation, target, resource, path + ".reservation");
  if (node const* l = n.find("limit"))
    s.limit = read_amount(*l, bound::limit, target, resource, path + ".limit");
  if (node const* w = n.find("weight")) {
    expect(*w, node::number, path + ".weight");
    if (!(w->value > 0) || w->value > 1e6)
      fail(w->at, path + ".weight must be above 0, at most 1000000");
    s.weight = w->value;
  }
  if (node const* p = n.find("priority"))
    s.priority = static_cast<std::uint32_t>(number(*p, path + ".priority", 0, 1e6));
  read_requests_of(s, n, target, resource, path);
  if (s.reservation && s.limit && s.limit->rate_q40 < s.reservation->rate_q40)
    fail(n.at, path + ": the limit is below the reservation");
  std::optional<rate> const all = s.limit ? s.limit : capacity_that_stands(target, resource);
  s.background = read_background(*this, n, resource + "@" + target, all, out_.roles, path);
  return s;
}

void reader::read_class_target(qos_class& c, member const& target, std::string const& path) {
  check_name(target, "target", " in " + path, target_names());
  keys(target.value, path + "." + target.key, resource_names());
  for (auto const& m : target.value.members) {
    if (unit_of_supply(m.key) == core::unit_kind::vops) check_priced(target, m);
    c.shares[target.key][m.key] =
        read_share(m.value, target.key, m.key, path + "." + target.key + "." + m.key);
  }
  auto const capacity = out_.capacity.find(target.key);
  for (auto const& [resource, share] : c.shares[target.key])
    if (share.reservation &&
        (capacity == out_.capacity.end() || !capacity->second.contains(resource)))
      throw usage_error(fmt::format("{}: {}.{}.{} reserves of a capacity that target {} has not",
                                    share.origin, path, target.key, resource, target.key));
}

/// Whoever shares VOPs of a target must know what they are.
void reader::check_priced(member const& target, member const& resource) const {
  for (auto const& spec : out_.targets)
    if (spec.name == target.key && spec.costs == nullptr)
      fail(resource.at,
           fmt::format("target {} has no \"cost\": measure it with `sluice calibrate {} -o FILE`",
                       target.key, spec.path));
}

void reader::read_classes(node const& n) {
  expect(n, node::object, "classes");
  for (auto const& m : n.members) {
    check_shown(m.at, m.key, "class", most_class_bytes);
    expect(m.value, node::object, "classes." + m.key);
    qos_class c;
    c.name = m.key;
    for (auto const& target : m.value.members) read_class_target(c, target, "classes." + m.key);
    out_.classes.push_back(std::move(c));
  }
}

std::uint32_t reader::read_user(node const& n, std::string const& path) const {
  if (n.kind == node::number) {
    if (!(n.value >= 0) || n.value >= core::any_user || n.value != std::floor(n.value))
      fail(n.at, path + " is not a uid");
    return static_cast<std::uint32_t>(n.value);
  }
  std::string const name = string(n, path);
  passwd const* const user = getpwnam(name.c_str());
  if (user == nullptr) fail(n.at, fmt::format("{}: there is no user \"{}\"", path, name));
  return user->pw_uid;
}

void reader::read_match(channel_spec& c, node const& n, std::string const& path) const {
  keys(n, path, {"call", "target", "path", "thread", "role", "user"});
  if (node const* call = n.find("call")) c.ops = calls(*call, path + ".call");
  if (node const* call = n.find("call"); call != nullptr && call->text == vops_selector)
    c.amount.unit = core::unit_kind::vops;
  if (node const* user = n.find("user")) c.user = read_user(*user, path + ".user");
  if (node const* glob = n.find("path")) c.path_glob = string(*glob, path + ".path");
  if (node const* glob = n.find("thread")) c.thread_glob = string(*glob, path + ".thread");
  if (node const* role = n.find("role")) {
    c.role = string(*role, path + ".role");
    check_role(out_.roles, c.role, where(role->at) + ": " + path + ".role");
  }
  node const* target = n.find("target");
  if (target == nullptr) return;
  c.target = string(*target, path + ".target");
  member const named{c.target, target->at, {}};
  check_name(named, "target", " in " + path, target_names());
}

channel_spec reader::read_channel(node const& n, std::string const& path) {
  keys(n, path, {"name", "match", "limit"});
  channel_spec c;
  c.origin = where(n.at);
  c.ops = core::ops_of_selector("all");
  node const* const name = n.find("name");
  if (name == nullptr) fail(n.at, path + " has no \"name\"");
  c.name = string(*name, path + ".name");
  check_shown(name->at, c.name, "channel", most_channel_bytes);
  if (c.name.find('=') != std::string::npos) fail(name->at, path + ".name must not contain =");
  for (auto const& other : out_.channels)
    if (other.name == c.name)
      fail(name->at, fmt::format("{} is named like {}", path, other.origin));
  if (node const* match = n.find("match")) read_match(c, *match, path + ".match");
  node const* const limit = n.find("limit");
  if (limit == nullptr) fail(n.at, path + " has no \"limit\"");
  std::string const here = where(limit->at) + ": " + path + ".limit";
  std::string const text = string(*limit, path + ".limit");
  if (c.amount.unit != core::unit_kind::vops) {
    c.amount = parse_amount(text, here);
    check_unit(c, here);
    return c;
  }
  if (c.target.empty())
    fail(limit->at, path + ": a limit in VOPs needs a \"target\": what a VOP is depends on it");
  c.amount = parse_amount(text, here, core::unit_kind::vops, vops_selector);
  check_priced({c.target, limit->at, {}}, {"", limit->at, {}});
  return c;
}

void reader::read_channels(node const& n) {
  expect(n, node::array, "channels");
  for (std::size_t i = 0; i < n.items.size(); ++i)
    out_.channels.push_back(read_channel(n.items[i], fmt::format("channels[{}]", i)));
}

void reader::read_algorithm(node const& n) {
  names known;
  for (auto const& row : algorithm_rows) known.emplace_back(row.name);
  member const named{string(n, "algorithm"), n.at, {}};
  check_name(named, "algorithm", "", known);
  out_.algorithm = named.key;
}

/// More would be refused by the wire, and cut off every node.
void reader::check_supplies(node const& root) const {
  std::size_t const count = supplies(out_).size();
  if (count <= most_supplies) return;
  node const* const targets = root.find("targets");
  fail(targets == nullptr ? root.at : targets->at,
       fmt::format("targets: {} capacities in {} targets, at most {}: daemons tell each other no "
                   "more; leave out capacities, or make one target of several directories",
                   count, out_.targets.size(), most_supplies));
}

}  // namespace

site parse_policy(std::string_view text, std::string const& name) {
  return reader(name).read(parse_json(text, name));
}

std::string read_policy_text(std::string const& file) { return carry_costs(read_text(file), file); }

site read_policy(std::string const& file) { return parse_policy(read_policy_text(file), file); }

}  // namespace sluice::policy
