// SPDX-License-Identifier: Apache-2.0
#include "runtime/settings.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/duration.h"
#include "base/error.h"
#include "base/suggest.h"
#include "core/durations.h"
#include "core/units.h"
#include "policy/hostlist.h"
#include "policy/reading.h"
#include "runtime/address.h"
#include "runtime/log.h"

namespace sluice::runtime {

namespace {

constexpr char const* roles[] = {"node", "relay", "cluster"};
constexpr unsigned most_journal_mib = 65536;  // as sluice-order takes it
constexpr unsigned most_journals_mib = 16 * most_journal_mib;

std::int64_t time_between(std::string const& value, std::string const& where, std::int64_t least,
                          std::int64_t most) {
  std::int64_t const ns = parse_duration(value, where);
  if (ns < least || ns > most)
    throw usage_error(fmt::format("{}: {} is not between {} and {}", where, value,
                                  duration_text(least), duration_text(most)));
  return ns;
}

/// An absolute path: the daemon's working directory is not the user's.
std::string path_of(std::string const& value, std::string const& where) {
  if (value.empty()) throw usage_error(where + ": the name is empty");
  if (value[0] == '/') return value;
  char cwd[4096];
  if (getcwd(cwd, sizeof cwd) == nullptr) throw usage_error(where + ": use a path from / on");
  return std::string(cwd) + "/" + value;
}

void apply_role(config& c, std::string const& value, std::string const& where) {
  for (unsigned i = 0; i < 3; ++i)
    if (value == roles[i]) {
      c.role = static_cast<role_kind>(i);
      return;
    }
  throw usage_error(fmt::format("{}: \"{}\" is no role; there are node, relay, cluster{}", where,
                                value, did_you_mean(value, {roles, roles + 3})));
}

void apply_name(config& c, std::string const& value, std::string const& where) {
  if (value.find_first_of("[],") != std::string::npos)
    throw usage_error(fmt::format("{}: \"{}\" is a list, wanted one name", where, value));
  c.name = policy::expand_hostlist(value, where).at(0);
}

void apply_run_dir(config& c, std::string const& value, std::string const& where) {
  c.run_dir = path_of(value, where);
}

void apply_state_dir(config& c, std::string const& value, std::string const& where) {
  c.state_dir = path_of(value, where);
}

void apply_shared_dir(config& c, std::string const& value, std::string const& where) {
  c.shared_dir = path_of(value, where);
}

void apply_parent(config& c, std::string const& value, std::string const& where) {
  check_endpoint(value, false, where);
  if (std::find(c.parents.begin(), c.parents.end(), value) != c.parents.end())
    throw usage_error(fmt::format("{}: {} is given twice", where, value));
  c.parents.push_back(value);
}

void apply_listen(config& c, std::string const& value, std::string const& where) {
  check_endpoint(value, true, where);
  c.listen = value;
}

void apply_keys(config& c, std::string const& value, std::string const& where) {
  c.keys = path_of(value, where);
}

void apply_plain(config& c, std::string const& value, std::string const&) {
  c.plain = value == "true";
}

void apply_policy(config& c, std::string const& value, std::string const& where) {
  c.policy = path_of(value, where);
}

void apply_cycle(config& c, std::string const& value, std::string const& where) {
  c.cycle_ns = time_between(value, where, 10 * ms_ns, 60'000 * ms_ns);
}

void apply_local_cycle(config& c, std::string const& value, std::string const& where) {
  c.local_cycle_ns = time_between(value, where, 1 * ms_ns, 1'000 * ms_ns);
}

void apply_view(config& c, std::string const& value, std::string const& where) {
  if (value != "node" && value != "cluster")
    throw usage_error(fmt::format("{}: \"{}\" is no view; there are node, cluster", where, value));
  c.view = value == "node" ? view_kind::node : view_kind::cluster;
}

void apply_metrics(config& c, std::string const& value, std::string const& where) {
  if (value != "none") host_and_port(value, where);
  c.metrics = value == "none" ? "" : value;
}

void apply_metrics_jobs(config& c, std::string const& value, std::string const&) {
  c.metrics_jobs = value == "true";
}

void apply_journal(config& c, std::string const& value, std::string const& where) {
  c.journal = path_of(value, where);
}

void apply_journal_shared(config& c, std::string const&, std::string const& where) {
  c.warnings.push_back(fmt::format(
      "{}: each user has a journal of his own now, and this goes with the next version", where));
}

std::uint64_t mib_of(std::string const& value, std::string const& where, std::uint64_t most_mib) {
  auto const size = core::parse_amount(value);
  std::uint64_t const mib = size.value.units >> 20;
  if (!size.ok() || !size.value.is_bytes || mib < 1 || mib > most_mib)
    throw usage_error(fmt::format("{}: \"{}\" is no size from 1MiB to {}GiB, such as 256MiB", where,
                                  value, most_mib >> 10));
  return mib;
}

void apply_journal_size(config& c, std::string const& value, std::string const& where) {
  c.journal_mib = mib_of(value, where, most_journal_mib);
}

void apply_journal_total(config& c, std::string const& value, std::string const& where) {
  c.journal_total_mib = mib_of(value, where, most_journals_mib);
}

void apply_journal_idle(config& c, std::string const& value, std::string const& where) {
  c.journal_idle_ns = time_between(value, where, 100 * ms_ns, 86'400'000 * ms_ns);
}

void apply_log_level(config& c, std::string const& value, std::string const& where) {
  try {
    parse_level(value);
  } catch (error const& e) {
    throw usage_error(fmt::format("{}: {}", where, e.what()));
  }
  c.log_level = value;
}

void apply_user(config& c, std::string const& value, std::string const& where) {
  if (getpwnam(value.c_str()) == nullptr)
    throw usage_error(fmt::format("{}: there is no user \"{}\"", where, value));
  c.user = value;
}

constexpr setting table[] = {
#define SETTING(key, type, help) {#key, type, help, apply_##key},
#include "runtime/settings.def"
};

constexpr renamed_setting renamed_table[] = {
#define RENAMED(old, key) {#old, #key},
#include "runtime/settings.def"
};

std::string written(std::string_view key) {
  std::string out(key);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::string key_of(setting const& s) { return written(s.key); }

/// The key of today for one that a file has, which may be the old one.
std::string present_key(std::string const& key) {
  for (auto const& r : renamed_settings())
    if (written(r.was) == key) return written(r.is);
  return key;
}

std::string default_name() {
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0 || *host == 0) return "localhost";
  std::string const name = host;
  return name.substr(0, std::min<std::size_t>(name.find('.'), 63));
}

/// The file's value as text, of the kind that the setting has.
std::string text_of(policy::reading const& in, setting const& s, policy::node const& n,
                    std::string const& key) {
  if (s.is_flag()) return in.boolean(n, key) ? "true" : "false";
  return in.string(n, key);
}

}  // namespace

char const* name_of(role_kind role) { return roles[static_cast<unsigned>(role)]; }

std::span<setting const> settings() { return table; }

std::span<renamed_setting const> renamed_settings() { return renamed_table; }

std::string flag_of(setting const& s) { return "--" + key_of(s); }

std::string old_flag_of(setting const& s) {
  for (auto const& r : renamed_settings())
    if (r.is == s.key) return "--" + written(r.was);
  return {};
}

std::vector<given> parse_config(std::string_view text, std::string const& file) {
  policy::reading const in(file);
  policy::node const root = policy::parse_json(text, file);
  policy::reading::names known;
  for (auto const& s : settings()) known.push_back(key_of(s));
  policy::reading::names allowed = known;
  for (auto const& r : renamed_settings()) allowed.push_back(written(r.was));
  in.keys(root, "the configuration", allowed);
  std::vector<given> out;
  for (auto const& m : root.members) {
    std::string const key = present_key(m.key);
    auto const i =
        static_cast<std::size_t>(std::find(known.begin(), known.end(), key) - known.begin());
    std::string const was = key == m.key ? "" : m.key;
    auto const add = [&](policy::node const& n) {
      out.push_back({i, text_of(in, table[i], n, m.key), in.where(n.at) + ": " + m.key, was});
    };
    if (table[i].is_list() && m.value.kind == policy::node::array)
      for (auto const& item : m.value.items) add(item);
    else
      add(m.value);
  }
  return out;
}

config make_config(std::vector<given> const& file, std::vector<given> const& flags) {
  std::set<std::size_t> replaced;
  for (auto const& g : flags) replaced.insert(g.setting);
  config c;
  c.name = default_name();
  bool has_role = false;
  for (auto const* from : {&file, &flags})
    for (auto const& g : *from) {
      if (from == &file && replaced.contains(g.setting)) continue;
      has_role = has_role || table[g.setting].key == "role";
      table[g.setting].apply(c, g.value, g.where);
      if (!g.was.empty())
        c.warnings.push_back(
            fmt::format("{}: this is called {} now, and the old name goes with the "
                        "next version",
                        g.where, key_of(table[g.setting])));
    }
  if (!has_role) throw usage_error("--role is missing: node, relay or cluster");
  check(c);
  return c;
}

void check(config const& c) {
  char const* const role = name_of(c.role);
  auto const refuse = [&](std::string const& why) {
    throw usage_error(fmt::format("--role {}: {}", role, why));
  };
  bool const is_node = c.role == role_kind::node, is_cluster = c.role == role_kind::cluster;
  if (is_node && !c.listen.empty()) refuse("a node has no children, leave --listen out");
  if (!is_node && c.listen.empty()) refuse("--listen says where children connect");
  if (is_cluster && !c.parents.empty()) refuse("nothing is above it, leave --parent out");
  if (c.role == role_kind::relay && c.parents.empty()) refuse("--parent says whose relay it is");
  if (is_cluster && c.policy.empty()) refuse("--policy says what it hands out");
  if (!is_cluster && !c.policy.empty() && !c.parents.empty())
    refuse("its parent sends the policy, leave --policy out");
  if (!is_cluster && !c.shared_dir.empty()) refuse("--shared-dir is for a cluster and its standby");
  if (!c.keys.empty() && c.plain) refuse("--keys and --plain exclude each other");
  bool const speaks = !c.parents.empty() || !c.listen.empty();
  if (speaks && c.keys.empty() && !c.plain)
    refuse(
        "--keys DIR says who is listened to (make one with `sluiced keys new`); "
        "--plain does without, on loopback addresses");
  if (c.plain) {
    std::vector<std::string> all = c.parents;
    if (!c.listen.empty()) all.push_back(c.listen);
    for (auto const& address : all)
      if (!is_loopback(address))
        refuse(fmt::format("--plain is for loopback addresses, {} is none; use --keys", address));
  }
  if (c.view == view_kind::cluster && (!is_node || c.parents.empty()))
    refuse("--view cluster is for a node with a --parent, which it asks");
  if (!c.journal.empty() && !is_node) refuse("a journal is kept on nodes, leave --journal out");
  config const unset;
  bool const is_sized = c.journal_mib != unset.journal_mib ||
                        c.journal_total_mib != unset.journal_total_mib ||
                        c.journal_idle_ns != unset.journal_idle_ns;
  if (c.journal.empty() && is_sized)
    refuse("--journal-size, --journal-total and --journal-idle are for a --journal");
  if (c.journal_total_mib < c.journal_mib)
    refuse("--journal-total is less than one journal has (--journal-size)");
  if (!c.user.empty() && is_node)
    refuse("--user would take away what a node of root is started for; start it as that user");
}

}  // namespace sluice::runtime
