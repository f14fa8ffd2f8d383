// SPDX-License-Identifier: Apache-2.0
// Tables of roles: what each condition lets through, lines of logs, and that nothing in a table or
// a text leads outside.
#include "core/roles.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <string>

using namespace sluice::core;

namespace {

struct table {
  std::unique_ptr<role_table> at = std::make_unique<role_table>();

  text keep(std::string const& s) const {
    text const t{at->string_bytes, static_cast<std::uint32_t>(s.size())};
    std::memcpy(at->strings + t.offset, s.data(), s.size());
    at->string_bytes += t.length;
    return t;
  }
  /// A role, with its clause that is told.
  role_clause& add_role(char const* group, char const* name, char const* program = "") const {
    unsigned const i = at->role_count++;
    at->role[i] = {keep(group), keep(name)};
    role_clause& c = add_clause(i);
    c.program = keep(program);
    return c;
  }
  role_clause& add_clause(unsigned role) const {
    role_clause& c = at->clause[at->clause_count++];
    c.role = static_cast<std::uint8_t>(role);
    c.ops = ~std::uint64_t{0};
    return c;
  }
  role_clause& add_log(char const* head, char const* line, unsigned word = 0) const {
    role_clause& c = add_clause(0);
    c.log_path = keep("LOG");
    c.log_head = keep(head);
    c.log_line = keep(line);
    c.thread_word = static_cast<std::uint8_t>(word);
    return c;
  }
};

std::string told(table const& t, std::uint64_t logs, std::string const& text) {
  std::string out;
  read_log(*t.at, logs, text, [&](unsigned clause, log_line said) {
    out += std::to_string(clause) + (said.is == log_verdict::holds ? "+" : "-");
    if (said.thread != 0) out += std::to_string(said.thread);
    out += " ";
  });
  return out;
}

}  // namespace

TEST_CASE("roles: each condition lets through what it names", "[roles]") {
  table t;
  t.add_role("db", "flush", "*/db_bench");
  t.add_role("db", "other", "tool");
  role_clause& named = t.add_clause(0);
  named.thread = t.keep("rocksdb:*");
  named.path = t.keep("*.sst");
  named.environment = t.keep("KIND=night*");
  role_clause& made = t.add_clause(1);
  made.made_by = 1;
  made.title = t.keep("postgres: *");
  made.ops = op_bit(op::write);
  REQUIRE(validate(*t.at) == nullptr);

  char const* const night[] = {"A=b", "KINDS=x", "KIND=nightly", nullptr};
  CHECK(clauses_of_process(*t.at, {"/usr/bin/db_bench", "x", night}) == 0b1101);
  CHECK(clauses_of_process(*t.at, {"/usr/bin/x", "/a/tool", nullptr}) == 0b1010);
  CHECK(clauses_of_thread(*t.at, "rocksdb:low") == 0b1111);
  CHECK(clauses_of_thread(*t.at, "low") == 0b1011);
  CHECK(clauses_of_title(*t.at, "postgres: checkpointer") == 0b1111);
  CHECK(clauses_of_title(*t.at, "") == 0b0111);
  CHECK(file_named(*t.at, "/a/b/7.sst").clauses == 0b1111);
  CHECK(file_named(*t.at, "7.log").clauses == 0b1011);
  CHECK(clauses_of_maker(*t.at, 0) == 0b1111);
  CHECK(clauses_of_maker(*t.at, 1) == 0b0111);
  CHECK(clauses_of_maker(*t.at, no_role) == 0b0111);
  CHECK(clauses_of_op(*t.at, op::write) == 0b1111);
  CHECK(clauses_of_op(*t.at, op::read) == 0b0111);
}

TEST_CASE("roles: a program says a role of its own group", "[roles]") {
  table t;
  t.add_role("a", "scan");
  t.add_role("b", "scan");
  t.add_role("b", "copy");
  CHECK(role_told(*t.at, 0b111, "scan") == 0);
  CHECK(role_told(*t.at, 0b110, "scan") == 1);
  CHECK(role_told(*t.at, 0b111, "b.scan") == 1);
  CHECK(role_told(*t.at, 0b001, "b.scan") == no_role);
  CHECK(role_told(*t.at, 0b111, "b.") == no_role);
  CHECK(role_told(*t.at, 0b111, "") == no_role);
}

TEST_CASE("roles: lines of one kind begin and end a role", "[roles]") {
  table t;
  t.add_role("db", "low");
  t.add_log("Compacting ", "Compacting *@0 *");
  t.add_log("job ", "job *fast*", 2);
  REQUIRE(validate(*t.at) == nullptr);
  CHECK(told(t, 0b110, "x Compacting 4@0 + 2@1 files\n") == "1+ ");
  CHECK(told(t, 0b110, "x Compacting 4@1 + 2@2 files") == "1- ");
  CHECK(told(t, 0b110, "x Flushing 4@0 files\n\n\n").empty());
  CHECK(told(t, 0b110, "a 17 job fast\nb 18 job slow\nc x job fast\n") == "2+17 2-18 ");
  CHECK(told(t, 0b010, "a 17 job fast\n").empty());
  CHECK(told(t, 0b110, "Compacting 1@1, Compacting 2@0 \n") == "1+ ");
  // What is looked at is bounded.
  CHECK(told(t, 0b010, std::string(most_line_bytes, 'x') + "Compacting 4@0 \n").empty());
  CHECK(told(t, 0b010, std::string(most_log_bytes, '\n') + "Compacting 4@0 \n").empty());
}

TEST_CASE("roles: numbers of threads are bounded", "[roles]") {
  table t;
  t.add_role("db", "low");
  t.add_log("job ", "job *", 1);
  CHECK(told(t, 0b10, "4294967295 job \n") == "1+4294967295 ");
  CHECK(told(t, 0b10, "4294967296 job \n").empty());
  CHECK(told(t, 0b10, "99999999999999999999999999999999999 job \n").empty());
  CHECK(told(t, 0b10, "-1 job \n").empty());
  CHECK(told(t, 0b10, "job \n").empty());
}

TEST_CASE("roles: a table that is wrong is refused, and any bytes do no harm", "[roles]") {
  table t;
  t.add_role("db", "low");
  t.add_log("Compacting ", "Compacting *");
  REQUIRE(validate(*t.at) == nullptr);
  std::mt19937_64 random(3);
  auto copy = std::make_unique<role_table>();
  for (int round = 0; round < 20000; ++round) {
    std::memcpy(copy.get(), t.at.get(), sizeof *copy);
    auto* const bytes = reinterpret_cast<unsigned char*>(copy.get());
    for (int i = 0; i < 4; ++i)
      bytes[random() % (i < 3 ? 2048 : sizeof *copy)] = static_cast<unsigned char>(random());
    if (validate(*copy) != nullptr) continue;
    clauses_of_process(*copy, {"/a/b", "c", nullptr});
    file_named(*copy, "/a/LOG");
    told({std::move(copy)}, ~std::uint64_t{0}, "1 Compacting 4@0\n");
    copy = std::make_unique<role_table>();
  }
  t.at->clause[1].role = 1;
  CHECK(std::string(validate(*t.at)) == "a clause");
  t.at->clause[1].role = 0;
  t.at->clause[1].reads = 2;
  CHECK(std::string(validate(*t.at)) == "a clause");
  t.at->clause[1].reads = 0;
  t.at->clause[1].log_line.length = role_pool_bytes;
  CHECK(std::string(validate(*t.at)) == "a clause");
  t.at->clause_count = 0;
  CHECK(std::string(validate(*t.at)) == "clause count");
}
