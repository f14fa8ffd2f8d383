// SPDX-License-Identifier: Apache-2.0
// What the requests of a process are for, where the job's policy has roles. The conditions of a
// role are looked at once per process, thread and file (core/roles.h); a call puts three masks
// together. The plan of the stage sends every counted call the slow way then (see plan_of in
// state.cc), and only that way leads here, so a job without roles runs the same instructions as
// ever.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "abi/role_area.h"
#include "state.h"
#include "sys.h"
#include "visit.h"

namespace sluice::roles {

/// What a class of files is for the clauses. Written before `is_ready`, then read.
struct file_class {
  std::atomic<std::uint64_t> clauses, logs, ends;
  std::atomic<std::uint32_t> maker;  // role, or core::no_role
  std::atomic<bool> is_ready;
};

/// What lines of logs say of a thread. Threads whose numbers meet here forget.
struct logged_thread {
  std::atomic<std::uint32_t> tid;
  std::atomic<std::uint64_t> clauses;  // those that hold
};
inline constexpr unsigned logged_threads = 1024;

/// What a process remembers.
struct memory {
  core::role_table table;  // a copy: nobody else can change it
  std::uint64_t of_process = 0, with_log = 0, with_reads = 0;
  std::uint64_t of_op[core::op_count];
  std::uint64_t of_maker[core::max_roles + 1], of_reader[core::max_roles + 1];  // last: no role
  bool asks_title = false, asks_maker = false;
  std::atomic<std::uint64_t> of_title, title_seen;
  logged_thread logged[logged_threads];
  file_class file[max_path_classes];  // [0]: nobody looked at its name
};

extern memory* mine;  // null: the job has no roles
extern abi::role_area* area;

/// Maps the file `roles` in the directory of `segment_path`, whose last part is replaced, and looks
/// at the process.
void begin(char* segment_path);
/// Whether lines of logs tell roles.
bool reads_logs();

/// The clause that has a call of this thread on such an entry; core::no_clause.
unsigned decide(core::op what, unsigned entry);
/// Rules that hold for it.
std::uint64_t rules_of(unsigned clause);
void count_call(visit const& v);
void count_moved(visit const& v, std::uint64_t moved);
void count_wait(visit const& v, std::uint64_t waited_ns, bool is_first);

/// This thread is called so.
void look_at_thread(std::string_view name);
/// The class of a file with this name; `rules`: the path rules that let it through.
unsigned class_of_name(std::uint64_t rules, std::string_view path);
/// The same class for a file of which is known who made it, if somebody did.
unsigned class_of_file(unsigned path_class, sys::file_identity const& file);
/// Whether it matters who made a file, and the class of one that this open has made.
bool asks_maker();
unsigned class_of_made(unsigned path_class, sys::file_identity const& file, visit const& v);

/// A thread wrote `text` to a file of this class, which is a log.
void note_written(unsigned path_class, std::string_view text);
bool is_log(unsigned path_class);

}  // namespace sluice::roles
