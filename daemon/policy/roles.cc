// SPDX-License-Identifier: Apache-2.0
#include "policy/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/suggest.h"
#include "core/glob.h"

namespace sluice::policy {

namespace {

using core::most_glob_bytes;
using core::role_source;

constexpr std::size_t least_head_bytes = 4;  // of a line of a log: what tells its kind
constexpr char const* wildcards = "*?[\\";

/// Conditions that are one pattern, with what they say of a request.
struct pattern_row {
  char const* key;
  std::string clause_spec::*at;
  char const* words;
};
constexpr pattern_row patterns[] = {
    {"environment", &clause_spec::environment, "in processes with {}"},
    {"title", &clause_spec::title, "in processes that call themselves {}"},
    {"thread", &clause_spec::thread, "of threads named {}"},
    {"path", &clause_spec::path, "on files like {}"},
    {"made_by", &clause_spec::made_by, "on files that {} made"},
};

std::string read_pattern(reading const& r, node const& n, std::string const& path) {
  std::string text = r.string(n, path);
  if (text.empty() || text.size() > most_glob_bytes)
    r.fail(n.at, fmt::format("{} must have 1 to {} bytes", path, most_glob_bytes));
  return text;
}

void read_log(reading const& r, node const& n, std::string const& path, clause_spec& c) {
  r.keys(n, path, {"file", "line", "thread_word"});
  node const* const file = n.find("file");
  node const* const line = n.find("line");
  if (file == nullptr || line == nullptr)
    r.fail(n.at, path + " wants both: {\"file\": PATTERN, \"line\": PATTERN}");
  c.log_file = read_pattern(r, *file, path + ".file");
  c.log_line = read_pattern(r, *line, path + ".line");
  if (std::min(c.log_line.find_first_of(wildcards), c.log_line.size()) < least_head_bytes)
    r.fail(line->at, fmt::format("{}.line must begin with {} letters before its first wildcard: "
                                 "they tell which lines are of this kind",
                                 path, least_head_bytes));
  if (node const* word = n.find("thread_word"))
    c.thread_word = static_cast<std::uint8_t>(r.number(*word, path + ".thread_word", 1, 16));
}

void read_reads(reading const& r, node const& n, std::string const& path, clause_spec& c) {
  r.keys(n, path, {"made_by", "until"});
  node const* const role = n.find("made_by");
  node const* const until = n.find("until");
  if (role == nullptr || until == nullptr)
    r.fail(n.at, path + " wants both: {\"made_by\": ROLE, \"until\": PATTERN}");
  c.reads = r.string(*role, path + ".made_by");
  c.until = read_pattern(r, *until, path + ".until");
}

clause_spec read_clause(reading const& r, node const& n, std::string const& path) {
  reading::names known = {"rest", "call", "log", "reads"};
  for (auto const& row : patterns) known.emplace_back(row.key);
  r.keys(n, path, known);
  if (n.members.empty()) r.fail(n.at, path + " has no condition; for all others write rest: true");
  clause_spec c;
  c.origin = r.where(n.at);
  c.ops = core::ops_of_selector("all") | core::class_mask(core::call_class::local);
  if (node const* rest = n.find("rest")) {
    c.is_rest = r.boolean(*rest, path + ".rest");
    if (!c.is_rest || n.members.size() != 1) r.fail(rest->at, path + ".rest is true, and alone");
  }
  for (auto const& row : patterns)
    if (node const* at = n.find(row.key))
      c.*row.at = read_pattern(r, *at, fmt::format("{}.{}", path, row.key));
  if (!c.environment.empty() && c.environment.find('=') == std::string::npos)
    r.fail(n.find("environment")->at, path + ".environment is written NAME=PATTERN");
  if (node const* call = n.find("call")) c.ops = r.calls(*call, path + ".call");
  if (node const* log = n.find("log")) read_log(r, *log, path + ".log", c);
  if (node const* reads = n.find("reads")) read_reads(r, *reads, path + ".reads", c);
  return c;
}

role_spec read_role(reading const& r, member const& m, std::string const& group,
                    std::string const& program) {
  r.check_plain(m, "role");
  std::string const path = fmt::format("roles.{}.{}", group, m.key);
  role_spec role{group, m.key, program, r.where(m.at), {}};
  if (m.value.kind != node::array) {
    role.clauses.push_back(read_clause(r, m.value, path));
    return role;
  }
  for (std::size_t i = 0; i < m.value.items.size(); ++i)
    role.clauses.push_back(read_clause(r, m.value.items[i], fmt::format("{}[{}]", path, i)));
  if (role.clauses.empty()) r.fail(m.value.at, path + " has no condition");
  return role;
}

/// A role of the same group, by its name.
unsigned role_in_group(std::vector<role_spec> const& roles, role_spec const& asks,
                       std::string const& name, std::string const& origin) {
  std::vector<std::string> known;
  for (unsigned i = 0; i < roles.size(); ++i) {
    if (roles[i].group != asks.group) continue;
    known.push_back(roles[i].name);
    if (roles[i].name == name) return i;
  }
  throw usage_error(fmt::format("{}: roles.{} has no role \"{}\"{}{}", origin, asks.group, name,
                                did_you_mean(name, known), it_has(known)));
}

class table_builder {
 public:
  explicit table_builder(std::vector<role_spec> const& roles)
      : roles_(roles), out_(std::make_unique<core::role_table>()) {
    std::memset(static_cast<void*>(out_.get()), 0, sizeof *out_);
  }

  std::unique_ptr<core::role_table> build(std::vector<std::uint64_t> const& roles_of_rule) {
    if (roles_.size() > core::max_roles)
      throw usage_error(
          fmt::format("{}: more than {} roles", roles_.back().origin, core::max_roles));
    for (auto const& role : roles_) add_told(role);
    // What takes all the rest comes after what asks for something.
    for (bool const rest : {false, true})
      for (unsigned i = 0; i < roles_.size(); ++i)
        for (auto const& clause : roles_[i].clauses)
          if (clause.is_rest == rest) add(i, clause);
    for (unsigned role = 0; role <= core::max_roles; ++role)
      out_->rules_of[role] = rules_of(role, roles_of_rule);
    if (char const* wrong = core::validate(*out_))
      throw sluice_error(fmt::format("compiled an invalid table of roles: {}", wrong));
    return std::move(out_);
  }

 private:
  core::text keep(std::string const& s, std::string const& origin) {
    if (s.empty()) return {};
    if (s.size() > core::role_pool_bytes - out_->string_bytes)
      throw usage_error(origin + ": names and patterns of roles together are too long");
    core::text const at = {out_->string_bytes, static_cast<std::uint32_t>(s.size())};
    std::memcpy(out_->strings + at.offset, s.data(), s.size());
    out_->string_bytes += at.length;
    return at;
  }

  core::role_clause& next(std::string const& origin) {
    if (out_->clause_count == core::max_clauses)
      throw usage_error(fmt::format("{}: roles have more than {} sets of conditions together",
                                    origin, core::max_clauses - roles_.size()));
    return out_->clause[out_->clause_count++];
  }

  void add_told(role_spec const& role) {
    unsigned const i = out_->role_count++;
    out_->role[i] = {keep(role.group, role.origin), keep(role.name, role.origin)};
    core::role_clause& c = next(role.origin);
    c.program = keep(role.program, role.origin);
    c.ops = ~std::uint64_t{0};
    c.role = static_cast<std::uint8_t>(i);
    c.source = static_cast<std::uint8_t>(role_source::told);
  }

  void add(unsigned i, clause_spec const& from) {
    role_spec const& role = roles_[i];
    core::role_clause& c = next(from.origin);
    auto const text = [&](std::string const& s) { return keep(s, from.origin); };
    c.program = text(role.program);
    c.environment = text(from.environment);
    c.title = text(from.title);
    c.thread = text(from.thread);
    c.path = text(from.path);
    c.log_path = text(from.log_file);
    c.log_line = text(from.log_line.empty() ? "" : from.log_line + "*");
    c.log_head = text(from.log_line.substr(0, from.log_line.find_first_of(wildcards)));
    c.until = text(from.until);
    c.ops = from.ops;
    auto const mask = [&](std::string const& name) {
      return name.empty() ? 0u : 1u << role_in_group(roles_, role, name, from.origin);
    };
    c.made_by = mask(from.made_by);
    c.reads = mask(from.reads);
    c.role = static_cast<std::uint8_t>(i);
    c.thread_word = from.thread_word;
    c.source = static_cast<std::uint8_t>(source_of(role, from));
  }

  static role_source source_of(role_spec const& role, clause_spec const& c) {
    constexpr std::uint64_t any =
        core::ops_of_selector("all") | core::class_mask(core::call_class::local);
    if (c.is_rest) return role_source::rest;
    if (!c.reads.empty() || !c.made_by.empty()) return role_source::lineage;
    if (!c.log_file.empty()) return role_source::log;
    if (!c.path.empty() || c.ops != any) return role_source::file;
    if (!c.thread.empty()) return role_source::thread;
    if (!c.title.empty()) return role_source::title;
    return role.program.empty() || !c.environment.empty() ? role_source::environment
                                                          : role_source::program;
  }

  static std::uint64_t rules_of(unsigned role, std::vector<std::uint64_t> const& roles_of_rule) {
    std::uint64_t mask = 0;
    for (std::size_t r = 0; r < roles_of_rule.size(); ++r)
      if (roles_of_rule[r] == 0 || (roles_of_rule[r] >> role & 1) != 0)
        mask |= std::uint64_t{1} << r;
    return mask;
  }

  std::vector<role_spec> const& roles_;
  std::unique_ptr<core::role_table> out_;
};

std::string clause_in_words(clause_spec const& c) {
  if (c.is_rest) return "all the rest";
  std::vector<std::string> parts;
  for (auto const& row : patterns)
    if (!(c.*row.at).empty()) parts.push_back(fmt::format(fmt::runtime(row.words), c.*row.at));
  if (!c.log_file.empty())
    parts.push_back(fmt::format("after the thread's line \"{}\" in {}", c.log_line, c.log_file));
  if (!c.reads.empty())
    parts.push_back(
        fmt::format("of threads that read what {} made, until they write to {}", c.reads, c.until));
  return parts.empty() ? "by the kind of call" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<role_spec> read_roles(reading const& r, node const& n) {
  std::vector<role_spec> out;
  r.expect(n, node::object, "roles");
  for (auto const& group : n.members) {
    r.check_plain(group, "group of roles");
    r.expect(group.value, node::object, "roles." + group.key);
    std::string program;
    if (node const* at = group.value.find("program"))
      program = read_pattern(r, *at, fmt::format("roles.{}.program", group.key));
    std::size_t const before = out.size();
    for (auto const& role : group.value.members)
      if (role.key != "program") out.push_back(read_role(r, role, group.key, program));
    if (out.size() == before) r.fail(group.at, fmt::format("roles.{} has no role", group.key));
  }
  compile_roles(out, {});  // what does not fit is told here, by its line
  return out;
}

std::uint32_t roles_called(std::vector<role_spec> const& roles, std::string_view name) {
  std::uint32_t mask = 0;
  for (unsigned i = 0; i < roles.size() && i < core::max_roles; ++i)
    if (roles[i].name == name || roles[i].full_name() == name) mask |= 1u << i;
  return mask;
}

std::uint64_t roles_besides(std::vector<role_spec> const& roles,
                            std::vector<std::string> const& names) {
  std::uint64_t mask = of_no_role | (of_no_role - 1);
  for (auto const& name : names) mask &= ~std::uint64_t{roles_called(roles, name)};
  return mask;
}

void check_role(std::vector<role_spec> const& roles, std::string const& name,
                std::string const& where) {
  if (roles_called(roles, name) != 0) return;
  std::vector<std::string> known;
  for (auto const& role : roles) known.push_back(role.full_name());
  if (known.empty())
    throw usage_error(
        fmt::format("{}: there is no role \"{}\": roles come from a policy", where, name));
  throw usage_error(fmt::format("{}: there is no role \"{}\"{}{}", where, name,
                                did_you_mean(name, known), it_has(known)));
}

std::unique_ptr<core::role_table> compile_roles(std::vector<role_spec> const& roles,
                                                std::vector<std::uint64_t> const& roles_of_rule) {
  return table_builder(roles).build(roles_of_rule);
}

std::vector<std::string> roles_in_words(std::vector<role_spec> const& roles) {
  std::vector<std::string> out;
  for (auto const& role : roles) {
    std::vector<std::string> ways;
    for (auto const& clause : role.clauses) ways.push_back(clause_in_words(clause));
    out.push_back(fmt::format("role {}{}: {}", role.full_name(),
                              role.program.empty() ? "" : ", in programs like " + role.program,
                              fmt::join(ways, "; or ")));
  }
  return out;
}

}  // namespace sluice::policy
