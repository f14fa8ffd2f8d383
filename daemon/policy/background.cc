// SPDX-License-Identifier: Apache-2.0
#include "policy/background.h"

#include <fmt/format.h>

#include <algorithm>

#include "policy/resource.h"
#include "policy/roles.h"

namespace sluice::policy {

namespace {

constexpr std::uint64_t usual_floor_part = 20;  // of the total

std::string text_of(std::uint64_t milli) { return bound_text(milli, core::unit_kind::bytes); }

/// `data` of data@scratch, and `scratch`.
std::string resource_of(std::string const& supply) { return supply.substr(0, supply.find('@')); }

std::string channel_of(std::string const& supply, std::string const& role) {
  return fmt::format("{}:{}@{}", resource_of(supply), role, target_of_supply(supply));
}

/// The share is read, and one key of it after the other.
class background_reader {
 public:
  background_reader(reading const& in, node const& n, std::string const& path)
      : in_(in), n_(n), path_(path) {}

  background_terms read(node const& algorithm, std::string const& supply,
                        std::optional<rate> const& total, std::vector<role_spec> const& roles) {
    reading::names known;
    for (auto const& row : background_rows) known.emplace_back(row.name);
    t_.algorithm = static_cast<unsigned>(in_.choice(algorithm, path_ + ".algorithm", known));
    t_.supply = supply;
    t_.origin = in_.where(n_.at);
    if (unit_of_supply(resource_of(supply)) != core::unit_kind::bytes)
      refuse(algorithm, ".algorithm: background work is held back by its data only");
    if (!total)
      refuse(n_, fmt::format(": what there is for {} on {} is not known: write a \"limit\" here, "
                             "or a capacity of the target that does not move",
                             resource_of(supply), target_of_supply(supply)));
    read_rates(milli_per_second(*total));
    read_roles(roles);
    return t_;
  }

 private:
  [[noreturn]] void refuse(node const& at, std::string const& what) const {
    in_.fail(at.at, path_ + what);
  }

  std::uint64_t read_rate(char const* key, std::uint64_t usual, char const* why_not_0) const {
    node const* const n = n_.find(key);
    if (n == nullptr) return usual;
    rate const r = in_.resource_rate(*n, resource_of(t_.supply), fmt::format("{}.{}", path_, key));
    if (r.rate_q40 == 0) refuse(*n, fmt::format(".{} is 0: {}", key, why_not_0));
    return milli_per_second(r);
  }

  void read_rates(std::uint64_t total) {
    t_.total = total;
    t_.floor = read_rate("floor", total / usual_floor_part, "background work would never end");
    if (t_.floor >= total)
      refuse(n_, fmt::format(": a floor of {} leaves nothing of the {} that a job may have",
                             text_of(t_.floor), text_of(total)));
    if (node const* f = n_.find("foreground"); f != nullptr && t_.algorithm != 0)
      refuse(*f, fmt::format(".foreground says nothing to {}: it keeps free whatever the "
                             "foreground uses",
                             background_rows[t_.algorithm].name));
    t_.foreground = read_rate("foreground", total - t_.floor, "nothing would ever be kept free");
    if (t_.foreground > total - t_.floor)
      refuse(n_, fmt::format(": {} for the foreground and a floor of {} are more than the {} that "
                             "a job may have",
                             text_of(t_.foreground), text_of(t_.floor), text_of(total)));
  }

  std::string read_role(background_kind const& kind, std::vector<role_spec> const& roles) const {
    node const* const written = n_.find(kind.key);
    if (written == nullptr)
      return roles_called(roles, kind.usual_role) == 0 ? std::string() : kind.usual_role;
    std::string const at = fmt::format("{}.{}", path_, kind.key);
    std::string const name = in_.string(*written, at);
    check_role(roles, name, fmt::format("{}: {}", in_.where(written->at), at));
    return name;
  }

  void read_roles(std::vector<role_spec> const& roles) {
    bool is_any = false;
    for (unsigned i = 0; i < background_kind_count; ++i) {
      std::string const name = read_role(background_kinds[i], roles);
      if (name.empty()) continue;
      if (std::find(t_.roles.begin(), t_.roles.end(), name) != t_.roles.end())
        refuse(n_, fmt::format(": role \"{}\" is two kinds of background work", name));
      t_.roles[i] = name;
      t_.channels[i] = channel_of(t_.supply, name);
      is_any = true;
    }
    if (!is_any)
      refuse(n_,
             " has no role to hold back: the policy has no role flush, compaction-low or "
             "compaction-high, and \"flush\", \"low\", \"high\" name none");
    t_.foreground_channel = channel_of(t_.supply, "(foreground)");  // no role is called so
  }

  reading const& in_;
  node const& n_;
  std::string const& path_;
  background_terms t_;
};

channel_spec background_channel(std::string const& name, background_terms const& t) {
  channel_spec c;
  c.name = name;
  c.origin = t.origin;
  c.ops = core::ops_of_selector(resource_of(t.supply));
  c.amount.unit = core::unit_kind::bytes;
  c.amount.rate_q40 = rate_q40_of(unlimited(c.amount.unit), c.amount.unit);
  c.target = target_of_supply(t.supply);
  return c;
}

}  // namespace

reading::names background_keys() {
  reading::names out = {"algorithm", "foreground", "floor"};
  for (auto const& kind : background_kinds) out.emplace_back(kind.key);
  return out;
}

std::optional<background_terms> read_background(reading const& in, node const& n,
                                                std::string const& supply,
                                                std::optional<rate> const& total,
                                                std::vector<role_spec> const& roles,
                                                std::string const& path) {
  if (node const* algorithm = n.find("algorithm"))
    return background_reader(in, n, path).read(*algorithm, supply, total, roles);
  for (auto const& key : background_keys())
    if (node const* at = n.find(key))
      in.fail(at->at, fmt::format("{}.{} says nothing without an \"algorithm\", such as \"{}\"",
                                  path, key, background_rows[0].name));
  return std::nullopt;
}

void add_background_channels(std::vector<background_terms> const& of,
                             std::vector<channel_spec>& channels) {
  for (auto const& t : of) {
    channel_spec rest = background_channel(t.foreground_channel, t);
    for (unsigned i = 0; i < background_kind_count; ++i) {
      if (t.roles[i].empty()) continue;
      rest.besides.push_back(t.roles[i]);
      if (std::any_of(channels.begin(), channels.end(),
                      [&](channel_spec const& c) { return c.name == t.channels[i]; }))
        continue;
      channels.push_back(background_channel(t.channels[i], t));
      channels.back().role = t.roles[i];
    }
    channels.push_back(std::move(rest));
  }
}

std::string background_in_words(background_terms const& t) {
  std::vector<std::string> roles;
  std::copy_if(t.roles.begin(), t.roles.end(), std::back_inserter(roles),
               [](std::string const& role) { return !role.empty(); });
  std::string const kept =
      t.algorithm == 0
          ? fmt::format("up to {} of {} is kept free for the foreground", text_of(t.foreground),
                        text_of(t.total))
          : fmt::format("what the foreground uses of {} is kept free", text_of(t.total));
  return fmt::format("background work by {}: {}, {} {} the rest and at least {}{}",
                     background_rows[t.algorithm].name, kept, fmt::join(roles, ", "),
                     roles.size() == 1 ? "has" : "have", text_of(t.floor),
                     roles.size() == 1 ? "" : " each");
}

}  // namespace sluice::policy
