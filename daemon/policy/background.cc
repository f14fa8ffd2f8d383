// SPDX-License-Identifier: Apache-2.0
#include "policy/background.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "policy/resource.h"
#include "policy/roles.h"

namespace sluice::policy {

namespace {

unsigned read_background_algorithm(reading const& in, node const& n, std::string const& path) {
  reading::names known;
  for (auto const& row : background_rows) known.emplace_back(row.name);
  return static_cast<unsigned>(in.choice(n, path + ".algorithm", known));
}

std::string read_background_role(reading const& in, node const& n, background_kind const& kind,
                                 std::vector<role_spec> const& roles, std::string const& path) {
  node const* const written = n.find(kind.key);
  if (written == nullptr)
    return roles_called(roles, kind.usual_role) == 0 ? std::string() : kind.usual_role;
  std::string const name = in.string(*written, fmt::format("{}.{}", path, kind.key));
  check_role(roles, name, fmt::format("{}: {}.{}", in.where(written->at), path, kind.key));
  return name;
}

void check_background_roles(reading const& in, node const& n, background_spec const& b,
                            std::string const& path) {
  std::vector<std::string> keys, names;
  for (unsigned i = 0; i < background_kind_count; ++i) {
    keys.emplace_back(fmt::format("\"{}\"", background_kinds[i].key));
    if (b.roles[i].empty()) continue;
    if (std::find(names.begin(), names.end(), b.roles[i]) != names.end())
      in.fail(n.at,
              fmt::format("{}: role \"{}\" is two kinds of background work", path, b.roles[i]));
    names.push_back(b.roles[i]);
  }
  if (names.empty())
    in.fail(n.at,
            fmt::format("{} has no role to hold back: the policy has no role {}, and {} name none",
                        path, "flush, compaction-low or compaction-high", fmt::join(keys, ", ")));
}

}  // namespace

reading::names background_keys() {
  reading::names out = {"algorithm", "foreground", "floor"};
  for (auto const& kind : background_kinds) out.emplace_back(kind.key);
  return out;
}

std::optional<background_spec> read_background(reading const& in, node const& n,
                                               std::string const& resource,
                                               std::vector<role_spec> const& roles,
                                               std::string const& path) {
  node const* const algorithm = n.find("algorithm");
  if (algorithm == nullptr) {
    for (auto const& key : background_keys())
      if (node const* at = n.find(key))
        in.fail(at->at, fmt::format("{}.{} says nothing without an \"algorithm\", such as \"{}\"",
                                    path, key, background_rows[0].name));
    return std::nullopt;
  }
  background_spec b;
  b.algorithm = read_background_algorithm(in, *algorithm, path);
  if (unit_of_supply(resource) != core::unit_kind::bytes)
    in.fail(algorithm->at,
            fmt::format("{}.algorithm: background work is held back by its data only", path));
  if (node const* f = n.find("foreground")) {
    if (b.algorithm != 0)
      in.fail(f->at, fmt::format("{}.foreground says nothing to {}: it keeps free whatever the "
                                 "foreground uses",
                                 path, background_rows[b.algorithm].name));
    b.foreground = in.resource_rate(*f, resource, path + ".foreground");
    if (b.foreground->rate_q40 == 0)
      in.fail(f->at, path + ".foreground is 0: nothing would ever be kept free");
  }
  if (node const* f = n.find("floor")) {
    b.floor = in.resource_rate(*f, resource, path + ".floor");
    if (b.floor->rate_q40 == 0)
      in.fail(f->at, path + ".floor is 0: background work would never end");
  }
  for (unsigned i = 0; i < background_kind_count; ++i)
    b.roles[i] = read_background_role(in, n, background_kinds[i], roles, path);
  check_background_roles(in, n, b, path);
  return b;
}

}  // namespace sluice::policy
