// SPDX-License-Identifier: Apache-2.0
#include "policy/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/units.h"
#include "policy/cost_file.h"
#include "policy/resource.h"
#include "policy/roles.h"

namespace sluice::policy {

namespace {

constexpr std::uint64_t most_size_bytes = std::uint64_t{1} << 30;
constexpr double most_per_s = 1e9;
/// Names of channels begin so; no role is called so.
constexpr char of_vops[] = "vops:(", of_bytes[] = "bytes:(";

std::uint64_t read_size(reading const& r, node const& n, std::string const& path) {
  auto const size = core::parse_amount(r.string(n, path));
  if (!size.ok() || !size.value.is_bytes || size.value.units == 0 ||
      size.value.units > most_size_bytes)
    r.fail(n.at, fmt::format("{}: \"{}\" is not a size like 1KiB, up to 1GiB", path, n.text));
  return size.value.units;
}

std::string read_role(reading const& r, node const& n, std::string const& path,
                      std::vector<role_spec> const& roles) {
  std::string name = r.string(n, path);
  check_role(roles, name, fmt::format("{}: {}", r.where(n.at), path));
  return name;
}

std::vector<std::string> read_causes(reading const& r, node const& n, std::string const& path,
                                     std::vector<role_spec> const& roles) {
  std::vector<std::string> out;
  r.expect(n, node::array, path);
  for (auto const& item : n.items) {
    out.push_back(read_role(r, item, path, roles));
    if (std::count(out.begin(), out.end(), out.back()) > 1)
      r.fail(item.at, fmt::format("{} names {} twice", path, out.back()));
  }
  return out;
}

/// What is counted once, and so is only one request's.
struct part {
  std::string request;
  std::uint64_t ops;
  std::uint64_t roles;
};

std::uint64_t mask_of(std::vector<role_spec> const& roles, std::string const& role) {
  return role.empty() ? ~std::uint64_t{0} : roles_called(roles, role);
}

/// The cheapest place and size that one may have.
double first_vops_of(request_spec const& s, core::cost_table const& t) {
  std::uint64_t least = core::max_cost_milli;
  auto const look = [&](auto const& curves) {
    for (auto const& curve : curves) {
      if (s.size_bytes != 0)
        least = std::min(least, core::curve_milli(curve, s.size_bytes));
      else
        least = std::min<std::uint64_t>(least, *std::min_element(curve, std::end(curve)));
    }
  };
  for (unsigned i = 0; i < core::op_count; ++i) {
    if ((s.ops >> i & 1) == 0) continue;
    auto const what = static_cast<core::op>(i);
    if (what == core::op::read)
      look(t.read_milli);
    else if (what == core::op::write)
      look(t.write_milli);
    else
      least = std::min<std::uint64_t>(least, t.op_milli[i]);
  }
  return static_cast<double>(least) / core::milli_per_vop;
}

/// Keys of one request, one after the other.
class request_reader {
 public:
  request_reader(reading const& r, std::vector<role_spec> const& roles) : r_(r), roles_(roles) {}

  request_spec read(member const& m) {
    std::string const path = "requests." + m.key;
    r_.keys(m.value, path, {"call", "role", "size", "causes"});
    request_spec s;
    s.name = m.key;
    s.origin = r_.where(m.at);
    read_calls(m.value, path, s);
    if (node const* n = m.value.find("role")) s.role = read_role(r_, *n, path + ".role", roles_);
    if (node const* n = m.value.find("size")) read_bytes(*n, path + ".size", s);
    if (node const* n = m.value.find("causes"))
      s.causes = read_causes(r_, *n, path + ".causes", roles_);
    count_once(m, s);
    return s;
  }

 private:
  void read_calls(node const& n, std::string const& path, request_spec& s) const {
    node const* const call = n.find("call");
    if (call == nullptr) r_.fail(n.at, path + " has no \"call\": which of its calls it is");
    s.ops = r_.calls(*call, path + ".call");
    s.call = call->text;
    for (auto const& item : call->items)
      s.call += fmt::format("{}{}", s.call.empty() ? "" : " or ", item.text);
  }

  void read_bytes(node const& n, std::string const& path, request_spec& s) const {
    s.size_bytes = read_size(r_, n, path);
    s.size = n.text;
    if ((s.ops & ~core::byte_ops_of(s.ops)) != 0)
      r_.fail(n.at, fmt::format("{}: {} moves no bytes", path, s.call));
  }

  /// Work that is counted for two requests would be promised twice.
  void count_once(member const& m, request_spec const& s) {
    claim(m, {s.name, s.ops, mask_of(roles_, s.role)});
    for (auto const& role : s.causes)
      claim(m, {s.name, core::ops_of_selector(vops_selector), mask_of(roles_, role)});
  }

  void claim(member const& m, part const& mine) {
    for (auto const& other : parts_)
      if ((other.ops & mine.ops) != 0 && (other.roles & mine.roles) != 0)
        r_.fail(m.at, other.request == mine.request
                          ? fmt::format("requests.{}: it would cause itself, or one role does "
                                        "twice; give it a \"role\" that is not among the causes",
                                        mine.request)
                          : fmt::format("requests.{} and requests.{} would count the same work",
                                        other.request, mine.request));
    parts_.push_back(mine);
  }

  reading const& r_;
  std::vector<role_spec> const& roles_;
  std::vector<part> parts_;
};

channel_spec counting(request_terms const& t, std::string const& name, std::uint64_t ops,
                      core::unit_kind unit, std::string const& role) {
  channel_spec c;
  c.name = name;
  c.origin = t.origin;
  c.ops = ops;
  c.amount.unit = unit;
  c.amount.rate_q40 = rate_q40_of(unlimited(unit), unit);
  c.target = target_of_supply(t.supply);
  c.role = role;
  return c;
}

}  // namespace

std::vector<request_spec> read_requests(reading const& r, node const& n,
                                        std::vector<role_spec> const& roles) {
  r.expect(n, node::object, "requests");
  std::vector<request_spec> out;
  request_reader one(r, roles);
  for (auto const& m : n.members) {
    r.check_plain(m, "request");
    out.push_back(one.read(m));
  }
  return out;
}

request_terms read_promises(reading const& r, node const& n, std::string const& supply,
                            std::vector<request_spec> const& known, cost_file const& costs,
                            std::string const& path) {
  r.expect(n, node::object, path);
  reading::names names;
  for (auto const& spec : known) names.push_back(spec.name);
  request_terms t;
  t.supply = supply;
  t.origin = r.where(n.at);
  core::cost_table const table = to_table(costs);
  for (auto const& m : n.members) {
    r.check_name(m, "request", " in " + path, names);
    auto const& spec = known[static_cast<std::size_t>(std::find(names.begin(), names.end(), m.key) -
                                                      names.begin())];
    std::string const here = path + "." + m.key;
    rate const wanted = parse_amount(r.string(m.value, here), r.where(m.value.at) + ": " + here,
                                     core::unit_kind::ops, "metadata");
    double const per_s = per_second(wanted.unit, wanted.rate_q40);
    if (!(per_s > 0) || per_s > most_per_s)
      r.fail(m.value.at, here + " promises nothing, or more than 1G/s");
    t.promised.push_back({spec, per_s, first_vops_of(spec, table)});
  }
  if (t.promised.empty()) r.fail(n.at, path + " promises no request");
  return t;
}

rate first_of(request_terms const& t) {
  double vops = 0;
  for (auto const& p : t.promised) vops += p.per_s * p.first_vops;
  rate r;
  r.unit = core::unit_kind::vops;
  double const milli = std::clamp(std::ceil(vops * 1000), 1.0, 1e15);
  r.rate_q40 = rate_q40_of(static_cast<std::uint64_t>(milli), r.unit);
  return r;
}

request_channels channels_of(request_terms const& t, request_spec const& what) {
  auto const target = target_of_supply(t.supply);
  request_channels out;
  out.own = fmt::format("{}{})@{}", of_vops, what.name, target);
  if (what.size_bytes != 0) out.bytes = fmt::format("{}{})@{}", of_bytes, what.name, target);
  for (auto const& role : what.causes)
    out.caused.push_back(fmt::format("{}{}:{})@{}", of_vops, what.name, role, target));
  return out;
}

bool is_request_channel(std::string const& name) {
  return name.starts_with(of_vops) || name.starts_with(of_bytes);
}

void add_request_channels(std::vector<request_terms> const& of,
                          std::vector<channel_spec>& channels) {
  using core::unit_kind;
  for (auto const& t : of)
    for (auto const& p : t.promised) {
      request_channels const names = channels_of(t, p.what);
      channels.push_back(counting(t, names.own, p.what.ops, unit_kind::vops, p.what.role));
      if (!names.bytes.empty())
        channels.push_back(counting(t, names.bytes, p.what.ops, unit_kind::bytes, p.what.role));
      for (std::size_t i = 0; i < names.caused.size(); ++i)
        channels.push_back(counting(t, names.caused[i], core::ops_of_selector(vops_selector),
                                    unit_kind::vops, p.what.causes[i]));
    }
}

std::vector<std::string> requests_in_words(request_terms const& t) {
  std::vector<std::string> out;
  for (auto const& p : t.promised) out.push_back(fmt::format("{:g} {}/s", p.per_s, p.what.name));
  return out;
}

std::string request_in_words(request_spec const& s) {
  std::string out = s.size_bytes != 0
                        ? fmt::format("request {}: each {} of {}", s.name, s.size, s.call)
                        : fmt::format("request {}: each {}", s.name, s.call);
  if (!s.role.empty()) out += " of role " + s.role;
  if (!s.causes.empty()) out += fmt::format(", and causes {}", fmt::join(s.causes, ", "));
  return out;
}

}  // namespace sluice::policy
