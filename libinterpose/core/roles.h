// SPDX-License-Identifier: Apache-2.0
// Problem: inside one program some I/O is what people wait for, and some is background work, and
// the program does not say which. Idea: a policy has roles, and each role has clauses: conditions
// on the program, the thread, the file and the call. What a clause asks of each of these is a mask
// of clauses, computed once per process, thread and file; the first clause that is in all masks has
// the request. So a call costs a few loads, and no pattern is matched for it.
// What stays true: flat data without pointers, fixed width; written once by the creator; readers
// validate() a copy. Everything here is bounded for any content and any text that a program writes.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/request.h"
#include "core/ruleset.h"

namespace sluice::core {

inline constexpr unsigned max_roles = 32;
inline constexpr unsigned max_clauses = 64;  // bits of a mask; the first are those that are told
inline constexpr unsigned role_pool_bytes = 8192;
inline constexpr unsigned no_clause = max_clauses;  // whoever has no role
inline constexpr unsigned no_role = 0xff;

/// The least sure condition of a clause, the surest first.
enum class role_source : std::uint8_t {
  told,         // the program said it: sluice_role()
  environment,  // a variable of the process
  program,      // its file
  title,        // what the process calls itself now
  thread,       // the name of the thread
  file,         // the name of the file, or the kind of call
  log,          // a line that this thread wrote before
  lineage,      // which role made the file, or the files that the thread reads
  rest,         // none of the others
  count
};

inline constexpr std::string_view role_source_names[] = {
    "told", "environment", "program", "title", "thread", "file", "log", "lineage", "rest"};
static_assert(sizeof role_source_names / sizeof *role_source_names ==
              static_cast<unsigned>(role_source::count));
inline constexpr unsigned role_source_count = static_cast<unsigned>(role_source::count);

struct role_row {
  text group;  // of roles: what kind of program, `rocksdb`
  text name;   // `flush`
};

/// All conditions that are set must hold. Texts are patterns of glob.h; length 0: any.
struct role_clause {
  text program;      // with a '/' against the whole path, else against its last part
  text environment;  // NAME=pattern
  text title;        // the command line as the process shows it
  text thread;
  text path;              // as of rule_row
  text log_path;          // both or none: the thread wrote such a line to such a file, and no other
  text log_line;          // line of that kind since. It ends in a star
  text log_head;          // its beginning without wildcards: what tells the kind
  text until;             // with `reads`: a write to such a file ends it
  std::uint64_t ops;      // mask of op
  std::uint32_t made_by;  // mask of roles, one of which made the file; 0: any
  std::uint32_t reads;    // mask of roles: the thread has read a file that one of them made
  std::uint8_t role;
  std::uint8_t source;       // role_source
  std::uint8_t thread_word;  // of a line of the log: that has the number of its thread, the first
                             // is 1; 0: it is about the thread that wrote it
  std::uint8_t unused[5];
};

struct role_table {
  std::uint32_t role_count;
  std::uint32_t clause_count;  // the first role_count of them: their roles are told
  std::uint32_t string_bytes;
  std::uint32_t unused;
  role_row role[max_roles];
  role_clause clause[max_clauses];
  std::uint64_t rules_of[max_roles + 1];  // limits that hold for a role; the last: for none
  char strings[role_pool_bytes];
};

inline std::string_view view(role_table const& t, text at) {
  return {t.strings + at.offset, at.length};
}

/// Null when every offset, count and index is in range; else what is wrong.
char const* validate(role_table const& t);

/// What is known of a process.
struct role_process {
  std::string_view program;  // the file that it runs
  std::string_view script;   // what it was started as; may be the same
  char const* const* environment;
};
std::uint64_t clauses_of_process(role_table const& t, role_process const& p);
std::uint64_t clauses_of_title(role_table const& t, std::string_view title);
std::uint64_t clauses_of_thread(role_table const& t, std::string_view name);
/// The role that a program names, or no_role: a name, or group.name. `may`: the clauses of the
/// process.
unsigned role_told(role_table const& t, std::uint64_t may, std::string_view name);

/// What is known of a file by its name: masks of clauses.
struct role_file {
  std::uint64_t clauses = 0;  // those that its name lets through
  std::uint64_t logs = 0;     // those whose log it is
  std::uint64_t ends = 0;     // those that a write to it ends
};
role_file file_named(role_table const& t, std::string_view path);
/// Clauses that a file lets through which this role made; no_role: nobody knows who.
std::uint64_t clauses_of_maker(role_table const& t, unsigned role);
/// Clauses that begin to hold for a thread that reads such a file.
std::uint64_t clauses_of_reader(role_table const& t, unsigned role);
std::uint64_t clauses_of_op(role_table const& t, op what);
/// Clauses that ask for a line of the log; that ask for what was read.
std::uint64_t clauses_with_log(role_table const& t);
std::uint64_t clauses_with_reads(role_table const& t);

/// At most so much of a write is looked at, and so much of a line.
inline constexpr unsigned most_log_bytes = 8192;
inline constexpr unsigned most_line_bytes = 512;

/// What a line of its log says of a clause. One that has the head of the pattern is of its kind:
/// the clause holds from then on when the whole pattern matches, and else no longer.
enum class log_verdict : std::uint8_t { another_kind, holds, ends };
struct log_line {
  log_verdict is;
  unsigned thread;  // its number; 0: the one that wrote it
};
log_line read_line(role_table const& t, unsigned clause, std::string_view line);

/// Cuts the next line off `text`: false at its end.
bool next_line(std::string_view& text, std::string_view& line);

/// Tells what was written to the log of these clauses: tell(clause, log_line).
template <class Tell>
void read_log(role_table const& t, std::uint64_t logs, std::string_view text, Tell&& tell) {
  if (text.size() > most_log_bytes) text.remove_suffix(text.size() - most_log_bytes);
  for (std::string_view line; next_line(text, line);)
    for (std::uint64_t left = logs; left != 0; left &= left - 1) {
      auto const clause = static_cast<unsigned>(__builtin_ctzll(left));
      if (clause >= t.clause_count) break;
      if (auto const said = read_line(t, clause, line); said.is != log_verdict::another_kind)
        tell(clause, said);
    }
}

}  // namespace sluice::core
