// SPDX-License-Identifier: Apache-2.0
// Users and groups are looked up once, here, but an unknown one is no error: the policy is pushed
// to nodes, and one node whose directory service sleeps must not refuse what the others obey.
#include "policy/control_read.h"
#include "core/durations.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <cmath>

#include "base/duration.h"
#include "policy/hostlist.h"

namespace sluice::policy {

namespace {

constexpr double most_id = 4294967294;

std::uint32_t part_ppm(reading const& in, node const& n, std::string const& path) {
  return static_cast<std::uint32_t>(std::lround(in.number(n, path, 0, 1) * 1e6));
}

void read_parts(reading const& in, node const& n, control_settings& c) {
  node const* const escrow = n.find("escrow");
  if (node const* floor = n.find("floor")) c.floor_ppm = part_ppm(in, *floor, "control.floor");
  if (c.pool == pool_owner::none) c.escrow_ppm = 1'000'000 - c.floor_ppm;
  if (escrow != nullptr) c.escrow_ppm = part_ppm(in, *escrow, "control.escrow");
  if (c.escrow_ppm + c.floor_ppm > 1'000'000)
    in.fail(escrow != nullptr ? escrow->at : n.at,
            fmt::format("control.escrow and control.floor together are {:g}, more than 1",
                        (c.escrow_ppm + c.floor_ppm) / 1e6));
}

/// A list of names and ids; `find` turns a name into an id, or says that there is none.
template <typename Id, typename Find>
void read_people(reading const& in, node const& n, std::string const& path, Find find,
                 std::vector<std::string>& written, std::vector<Id>& ids) {
  in.expect(n, node::array, path);
  for (node const& item : n.items) {
    Id id{};
    if (item.kind == node::number) {
      double const value = in.number(item, path, 0, most_id);
      if (value != std::floor(value)) in.fail(item.at, path + " has a fraction as id");
      written.push_back(fmt::format("{:.0f}", value));
      ids.push_back(static_cast<Id>(value));
    } else {
      written.push_back(in.string(item, path));
      if (find(written.back(), id)) ids.push_back(id);
    }
  }
}

bool find_user(std::string const& name, uid_t& id) {
  passwd const* const row = getpwnam(name.c_str());
  if (row != nullptr) id = row->pw_uid;
  return row != nullptr;
}

bool find_group(std::string const& name, gid_t& id) {
  group const* const row = getgrnam(name.c_str());
  if (row != nullptr) id = row->gr_gid;
  return row != nullptr;
}

/// "n[1-8],login1", or each name, or part of a list, as a string of its own in an array.
std::string hostlist_of(reading const& in, node const& n) {
  if (n.kind == node::string) return in.string(n, "control.nodes");
  if (n.kind != node::array)
    in.fail(n.at, fmt::format("control.nodes must be a string or an array, not {}", kind_name(n)));
  std::string out;
  for (std::size_t i = 0; i < n.items.size(); ++i)
    out += (i == 0 ? "" : ",") + in.string(n.items[i], fmt::format("control.nodes[{}]", i));
  return out;
}

}  // namespace

control_settings read_control(reading const& in, node const& n, reading::names const& classes) {
  in.keys(n, "control",
          {"nodes", "cycle", "lease", "escrow", "floor", "pool_owner", "orphans", "default_class",
           "enforce"});
  control_settings c;
  if (node const* m = n.find("nodes"))
    c.nodes = expand_hostlist(hostlist_of(in, *m), in.where(m->at) + ": control.nodes");
  if (node const* m = n.find("cycle"))
    c.cycle_ns = in.duration(*m, "control.cycle", 10 * ms_ns, minute_ns);
  if (node const* m = n.find("lease"))
    c.lease_ns = in.duration(*m, "control.lease", 50 * ms_ns, 10 * minute_ns);
  if (c.lease_ns < 5 * c.cycle_ns) {
    node const* const at = n.find("lease") != nullptr ? n.find("lease") : n.find("cycle");
    in.fail(at->at, fmt::format("control.lease is {}, wanted at least five cycles of {}: a lost "
                                "message must not end a grant",
                                duration_text(c.lease_ns), duration_text(c.cycle_ns)));
  }
  if (node const* m = n.find("pool_owner")) {
    c.pool = static_cast<pool_owner>(
        in.choice(*m, "control.pool_owner", {"single", "majority", "none"}));
    if (c.nodes.empty() && c.pool != pool_owner::single)
      in.fail(m->at, fmt::format("control.pool_owner \"{}\" needs control.nodes: without names "
                                 "nobody owns a part of the capacity",
                                 name_of(c.pool)));
  }
  read_parts(in, n, c);
  if (node const* m = n.find("orphans"))
    c.orphans =
        static_cast<orphan_mode>(in.choice(*m, "control.orphans", {"safe", "keep", "open"}));
  if (node const* m = n.find("default_class")) {
    c.default_class = in.string(*m, "control.default_class");
    in.check_name({c.default_class, m->at, {}}, "class", " in control.default_class", classes);
  }
  if (node const* m = n.find("enforce")) c.enforce = in.boolean(*m, "control.enforce");
  return c;
}

access_rules read_access(reading const& in, node const& n, reading::names const& classes) {
  in.expect(n, node::object, "access");
  access_rules out;
  for (member const& m : n.members) {
    in.check_name(m, "class", " in access", classes);
    std::string const path = "access." + m.key;
    in.keys(m.value, path, {"users", "groups"});
    access_rule rule;
    if (node const* users = m.value.find("users"))
      read_people(in, *users, path + ".users", find_user, rule.users, rule.uids);
    if (node const* groups = m.value.find("groups"))
      read_people(in, *groups, path + ".groups", find_group, rule.groups, rule.gids);
    out[m.key] = std::move(rule);
  }
  return out;
}

}  // namespace sluice::policy
