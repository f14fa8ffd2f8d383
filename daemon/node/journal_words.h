// SPDX-License-Identifier: Apache-2.0
// What sluiced and the keeper of journals say to each other: messages of fixed size, one kind in
// each direction.
#pragma once

#include <cstdint>
#include <string>

#include "base/owners.h"

namespace sluice::node {

inline constexpr std::uint64_t most_journals_of_an_owner = 2;

struct journal_settings {
  std::string program;    // sluice-order
  std::string recover;    // sluice-recover; for a journal of all users, as older versions kept it
  std::string directory;  // where each user has one of his own
  std::uint64_t size_mib = 256, total_mib = 4096;
  std::int64_t idle_ns = 0;  // so long a journal stays that no job needs
  std::string run_dir;
  owner_lookup owner_of = {};  // whose a uid is, where bounds hold for one user
};

enum class journal_phase : std::uint32_t {
  none,        // he has no journal, and nothing is left of one
  recovering,  // what was in it comes home, or will when it is its turn
  serving,
  pausing,  // its daemon ended; the next start is due at due_ns
  full,     // journals of others take all the room; it is tried again when one goes
  emptied,  // he has none, and what he put beside it keeps its directory
  over,     // ended as asked; of nobody: the keeper ends
  listed,   // of nobody: all that were left at the start have been told of
};

inline constexpr std::uint32_t nobody = 0xffffffff;

/// What the keeper says of one user's journal; the last one counts.
struct journal_report {
  std::uint32_t uid = nobody;
  journal_phase phase = journal_phase::none;
  std::uint32_t pid = 0;           // 0: none runs
  std::uint32_t deaths = 0;        // how often it ended unasked
  std::int32_t status = 0;         // of the last of them, as wait gives it
  std::uint32_t is_recovered = 0;  // what a journal had is in the files, or was never there
  std::int64_t due_ns = 0;         // CLOCK_MONOTONIC
  char lacks[128] = {};            // of nobody: capabilities that the keeper should have
  char said[512] = {};             // its last line on standard error since it was started
  std::uint32_t line = 0;          // grows with each of them
  std::uint32_t is_gone = 0;       // of one that is over: there is no file of it
};

/// sluiced's words to the keeper.
enum class journal_verb : std::uint32_t {
  stop,   // all of them
  again,  // do not wait for the next try of any: somebody has mended something
  want,   // this user has jobs that need it; the processes have that group
  leave,  // he has none any more
};
struct journal_word {
  journal_verb verb;
  std::uint32_t uid = nobody;
  std::uint32_t gid = nobody;
};

}  // namespace sluice::node
