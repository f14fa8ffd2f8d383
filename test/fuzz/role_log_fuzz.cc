// SPDX-License-Identifier: Apache-2.0
// Lines of a log that a hostile program writes, against patterns of a policy that somebody else
// wrote. The input: patterns, each ended by a zero byte, as roles; then the text. Whatever both
// are, a table is refused or valid, clauses stay those of the log, and the text is read to its end.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/roles.h"

namespace {

using namespace sluice;

constexpr std::size_t most_patterns = 6;

void must(bool holds) {
  if (!holds) std::abort();
}

std::string next_word(std::string& text) {
  std::string const word = text.substr(0, text.find('\0'));
  text.erase(0, std::min(word.size() + 1, text.size()));
  return word;
}

policy::role_spec role_of(std::string const& line, std::size_t number) {
  policy::role_spec role{"g", "r" + std::to_string(number), "", "here", {}};
  policy::clause_spec clause;
  clause.origin = "here";
  clause.ops = ~std::uint64_t{0};
  clause.log_file = "*LOG*";
  clause.log_line = line;
  clause.thread_word = static_cast<std::uint8_t>(number);
  role.clauses.push_back(clause);
  return role;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  std::string text(reinterpret_cast<char const*>(data), size);
  std::vector<policy::role_spec> roles;
  while (roles.size() < most_patterns && !text.empty())
    roles.push_back(role_of(next_word(text), roles.size()));
  try {
    auto const table = policy::compile_roles(roles, {});
    must(core::validate(*table) == nullptr);
    std::uint64_t const logs = core::file_named(*table, text).logs;
    must(table->clause_count == 64 || (logs >> table->clause_count) == 0);
    core::read_log(*table, ~std::uint64_t{0}, text, [&](unsigned clause, core::log_line said) {
      must(clause < table->clause_count && said.is != core::log_verdict::another_kind);
      must(said.thread == 0 || table->clause[clause].thread_word != 0);
    });
    core::clauses_of_thread(*table, text);
    core::role_told(*table, ~std::uint64_t{0}, text);
  } catch (error const&) {
    // Patterns that are too long.
  }
  return 0;
}
