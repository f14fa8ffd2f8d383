// SPDX-License-Identifier: Apache-2.0
// The calls. Each op of a trace is one real call on files of the replay's own; a call that needs
// something (an open descriptor, a name to remove) takes it from earlier calls, so that a close
// follows an open and an unlink a create. If nothing is left a helper call makes it, and is
// counted.
#pragma once

#include <dirent.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "commands/replay/pools.h"
#include "commands/replay/tree.h"
#include "commands/trace/trace.h"

namespace sluice::replay {

/// What the threads of one process share.
struct work_place {
  work_place(names const& n, unsigned job, std::size_t fds_most);
  ~work_place();
  work_place(work_place const&) = delete;
  work_place& operator=(work_place const&) = delete;

  /// False while the op would take what an op that is late has yet to leave: a close waits for the
  /// opens that are held up rather than open files itself.
  bool has_what_it_takes(unsigned op, std::int64_t now_ns) const;

  names where;
  unsigned job;
  std::vector<std::string> leaves;
  pool<int> fds;
  pool<std::string> made_names, made_folders;
  std::uint64_t read_bytes = 65536, write_bytes = 65536;  // of one call
  bool opens_create = false;  // names are removed: opens make new ones when few are left
  /// When the next op of a kind is meant for, written by its threads; the far future: never.
  std::atomic<std::int64_t> due_ns[trace::op_count];
};

/// What one thread has for itself.
class hand {
 public:
  hand(work_place& place, unsigned worker, std::uint64_t seed);
  ~hand();
  hand(hand const&) = delete;
  hand& operator=(hand const&) = delete;

  /// Opens what the op will need, before the time counts. An error number, or 0.
  int prepare(unsigned op);
  /// One call; an error number, or 0.
  int act(unsigned op);
  std::uint64_t helpers() const { return helpers_; }

 private:
#define TRACE_OP(name, as, aliases, sentence) int act_##name();
#include "commands/trace/ops.def"

  char const* any_file();
  std::string new_name(char kind);
  int open_one(bool create);
  int make_name(std::string const& name);
  int keep_name(std::string name);
  int own();
  int data();

  work_place& place_;
  std::string folder_;
  std::string file_;  // the last any_file()
  std::uint64_t random_;
  std::uint64_t helpers_ = 0;
  std::uint64_t made_ = 0;
  unsigned renamed_ = 0, changed_ = 0, locked_ = 0;
  std::uint64_t write_at_ = 0;
  int own_fd_ = -1, data_fd_ = -1;
  std::unique_ptr<DIR, int (*)(DIR*)> dir_{nullptr, closedir};
  std::vector<char> buffer_;
};

}  // namespace sluice::replay
