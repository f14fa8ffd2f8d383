// SPDX-License-Identifier: Apache-2.0
// See roles.h. Only clauses below clause_count are looked at, which validate() has bounded.
#include "core/roles.h"

#include "core/glob.h"

namespace sluice::core {

namespace {

constexpr unsigned most_tries = 4;  // places in a line where a pattern may begin

/// substr() throws, and a guest cannot.
std::string_view part(std::string_view text, std::size_t from, std::size_t most = ~std::size_t{0}) {
  if (from > text.size()) from = text.size();
  std::size_t const left = text.size() - from;
  return {text.data() + from, most < left ? most : left};
}

std::string_view bounded(char const* text) {
  constexpr unsigned longest_variable = 4096;
  unsigned length = 0;
  while (length < longest_variable && text[length] != 0) ++length;
  return {text, length};
}

bool has_variable(char const* const* environment, std::string_view wanted) {
  if (environment == nullptr) return false;
  std::string_view const name = part(wanted, 0, wanted.find('=') + 1);
  for (; *environment != nullptr; ++environment) {
    std::string_view const one = bounded(*environment);
    if (part(one, 0, name.size()) == name)
      return glob_match(part(wanted, name.size()), part(one, name.size()));
  }
  return false;
}

template <class Holds>
std::uint64_t clauses_where(role_table const& t, Holds&& holds) {
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < t.clause_count && i < max_clauses; ++i)
    if (holds(t.clause[i])) mask |= std::uint64_t{1} << i;
  return mask;
}

bool in_pool(role_table const& t, text at) {
  return at.offset <= t.string_bytes && at.length <= t.string_bytes - at.offset;
}

bool is_good(role_table const& t, role_clause const& c) {
  for (text const& at : {c.program, c.environment, c.title, c.thread, c.path, c.log_path,
                         c.log_line, c.log_head, c.until})
    if (!in_pool(t, at) || at.length > most_glob_bytes) return false;
  std::uint32_t const roles = t.role_count >= 32 ? ~0u : (1u << t.role_count) - 1;
  return c.role < t.role_count && c.source < role_source_count &&
         ((c.made_by | c.reads) & ~roles) == 0;
}

/// The number that is the n-th word of a line; 0: it has none there.
unsigned number_at(std::string_view line, unsigned n) {
  std::size_t at = 0;
  for (; n > 1; --n) {
    while (at < line.size() && line[at] != ' ') ++at;
    while (at < line.size() && line[at] == ' ') ++at;
  }
  std::uint64_t value = 0;
  for (; at < line.size() && line[at] >= '0' && line[at] <= '9' && value <= 0xffffffff; ++at)
    value = value * 10 + static_cast<unsigned>(line[at] - '0');
  return value <= 0xffffffff ? static_cast<unsigned>(value) : 0;
}

/// A pattern of that head may begin at some places of a line.
log_verdict judge(std::string_view head, std::string_view pattern, std::string_view line) {
  log_verdict found = log_verdict::another_kind;
  std::size_t from = 0;
  for (unsigned i = 0; i < most_tries; ++i) {
    std::size_t const at = line.find(head, from);
    if (at == std::string_view::npos) break;
    if (glob_match(pattern, part(line, at))) return log_verdict::holds;
    found = log_verdict::ends;
    from = at + 1;
  }
  return found;
}

}  // namespace

char const* validate(role_table const& t) {
  if (t.role_count > max_roles) return "role count";
  if (t.clause_count > max_clauses || t.clause_count < t.role_count) return "clause count";
  if (t.string_bytes > role_pool_bytes) return "string pool size";
  for (unsigned i = 0; i < t.role_count; ++i)
    if (!in_pool(t, t.role[i].group) || !in_pool(t, t.role[i].name)) return "a role row";
  for (unsigned i = 0; i < t.clause_count; ++i) {
    if (!is_good(t, t.clause[i])) return "a clause";
    if (i < t.role_count && t.clause[i].role != i) return "a clause that is told";
  }
  return nullptr;
}

std::uint64_t clauses_of_process(role_table const& t, role_process const& p) {
  return clauses_where(t, [&](role_clause const& c) {
    std::string_view const program = view(t, c.program);
    bool const runs =
        program.empty() || path_match(program, p.program) || path_match(program, p.script);
    std::string_view const variable = view(t, c.environment);
    return runs && (variable.empty() || has_variable(p.environment, variable));
  });
}

std::uint64_t clauses_of_title(role_table const& t, std::string_view title) {
  return clauses_where(t, [&](role_clause const& c) {
    return c.title.length == 0 || glob_match(view(t, c.title), title);
  });
}

std::uint64_t clauses_of_thread(role_table const& t, std::string_view name) {
  return clauses_where(t, [&](role_clause const& c) {
    return c.thread.length == 0 || glob_match(view(t, c.thread), name);
  });
}

unsigned role_told(role_table const& t, std::uint64_t may, std::string_view name) {
  auto const dot = name.find('.');
  std::string_view const group = dot == std::string_view::npos ? "" : part(name, 0, dot);
  if (!group.empty()) name.remove_prefix(dot + 1);
  for (unsigned i = 0; i < t.role_count && i < max_roles; ++i)
    if ((may >> i & 1) != 0 && view(t, t.role[i].name) == name &&
        (group.empty() || view(t, t.role[i].group) == group))
      return i;
  return no_role;
}

role_file file_named(role_table const& t, std::string_view path) {
  return {clauses_where(t,
                        [&](role_clause const& c) {
                          return c.path.length == 0 || path_match(view(t, c.path), path);
                        }),
          clauses_where(t,
                        [&](role_clause const& c) {
                          return c.log_path.length != 0 && path_match(view(t, c.log_path), path);
                        }),
          clauses_where(t, [&](role_clause const& c) {
            return c.until.length != 0 && path_match(view(t, c.until), path);
          })};
}

std::uint64_t clauses_of_maker(role_table const& t, unsigned role) {
  return clauses_where(t, [&](role_clause const& c) {
    return c.made_by == 0 || (role < max_roles && (c.made_by >> role & 1) != 0);
  });
}

std::uint64_t clauses_of_reader(role_table const& t, unsigned role) {
  return clauses_where(
      t, [&](role_clause const& c) { return role < max_roles && (c.reads >> role & 1) != 0; });
}

std::uint64_t clauses_of_op(role_table const& t, op what) {
  return clauses_where(t, [&](role_clause const& c) { return (c.ops & op_bit(what)) != 0; });
}

std::uint64_t clauses_with_log(role_table const& t) {
  return clauses_where(t, [](role_clause const& c) { return c.log_line.length != 0; });
}

std::uint64_t clauses_with_reads(role_table const& t) {
  return clauses_where(t, [](role_clause const& c) { return c.reads != 0; });
}

bool next_line(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  std::size_t const end = text.find('\n');
  line = part(part(text, 0, end), 0, most_line_bytes);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return true;
}

log_line read_line(role_table const& t, unsigned clause, std::string_view line) {
  role_clause const& c = t.clause[clause % max_clauses];
  log_verdict const is = judge(view(t, c.log_head), view(t, c.log_line), line);
  if (is == log_verdict::another_kind || c.thread_word == 0) return {is, 0};
  unsigned const thread = number_at(line, c.thread_word);
  return {thread == 0 ? log_verdict::another_kind : is, thread};
}

}  // namespace sluice::core
