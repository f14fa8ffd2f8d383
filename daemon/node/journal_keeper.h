// SPDX-License-Identifier: Apache-2.0
// The process that keeps the journal's daemon of a node: it starts `sluice-order serve`, starts it
// again when it dies, after longer and longer pauses, and ends it. It is forked before sluiced
// gives up its privileges, because the journal needs many, and sluiced listens to users and the
// network.
// What stays true: it listens to sluiced alone, and knows only two words of it; it never waits for
// sluiced; when sluiced is gone, for whatever reason, it has the journal brought home and ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace sluice::node {

struct journal_settings {
  std::string program;  // sluice-order
  std::string file;
  std::uint64_t size_mib = 256;
  std::string jobs;  // directory
};

enum class journal_phase : std::uint32_t {
  recovering,  // what was in the journal comes home
  serving,
  pausing,  // it ended; the next start is due at due_ns
  over,     // ended as asked
};

/// What the keeper says, one message each; the last one counts.
struct journal_report {
  journal_phase phase = journal_phase::recovering;
  std::uint32_t pid = 0;     // 0: none runs
  std::uint32_t deaths = 0;  // how often it ended unasked
  std::int32_t status = 0;   // of the last of them, as wait gives it
  std::int64_t due_ns = 0;   // CLOCK_MONOTONIC
  char lacks[128] = {};      // capabilities it should have
  char said[512] = {};       // its last line on standard error since it was started
  std::uint32_t line = 0;    // grows with each of them
};

/// sluiced's words to the keeper.
enum class journal_word : char { stop = 's', again = 'a' };

struct journal_child {
  pid_t pid = 0;
  descriptor socket;
};

/// Forks the keeper. Call it while there is one thread. Throws.
journal_child keep_journal(journal_settings const& settings);

}  // namespace sluice::node
