// SPDX-License-Identifier: Apache-2.0
// Streams that write, each in its own way and file, and mark what was
// acknowledged; and the oracle: what of it is there, is there whole, without a
// gap, and up to the last acknowledgement.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/service.h"
#include "recorder.h"

namespace sluice::crash {

/// What happens to the daemon of a served run.
enum class fate { none, serves, is_killed, is_stopped };

/// How a stream makes its writes durable.
struct mode {
  char const* name;
  bool logged;        // through the log
  bool waits;         // fsync, or the commit of the log, before it goes on
  bool flushes;       // the log flushes before it says so
  bool must_fail;     // a control: the oracle has to object
  bool acknowledges;  // losing what was marked is an offence (else only gaps are)
  bool recovers = true;
  fate daemon = fate::none;  // fsync is asked of it, as a stage does
  journal::service_rules keep = {};
  bool marks = true;        // who goes without the daemon says so on the file
  bool syncs = false;       // and who does syncs everything, and says so on the log
  bool is_ordered = false;  // fsync is a barrier; every fourth epoch is waited for
  bool gates = true;        // what is to change waits for the barriers
  bool is_staged = false;   // processes below `sluice run`; nothing is marked, only order is asked
  unsigned user = 0;        // whose files and journal they are, and who recovers them

  bool is_served() const { return daemon != fate::none; }
  bool has_log() const { return logged || is_served() || is_staged; }
};

inline constexpr unsigned nobody = 65534;

inline mode const modes[] = {
    {"none", false, false, false, true, true},
    {"fsync", false, true, false, false, true},
    {"jdurhome", true, true, true, false, true},
    {"user",
     true,
     true,
     true,
     false,
     true,
     true,
     fate::none,
     {},
     true,
     false,
     false,
     true,
     false,
     nobody},
    {"jordhome", true, false, true, true, false},
    {"ack", true, true, false, true, true},
    {"norecover", true, true, true, true, true, false},
    {"durable", false, true, true, false, true, true, fate::serves},
    {"killed", false, true, true, false, true, true, fate::is_killed},
    {"stopped", false, true, true, false, true, true, fate::is_stopped},
    {"noreplay", false, true, true, true, true, false, fate::serves},
    {"noflush",
     false,
     true,
     true,
     true,
     true,
     true,
     fate::serves,
     {.log = {.flush_before_ack = false}}},
    {"norevoke", false, true, true, true, true, true, fate::serves, {.log = {}, .revokes = false}},
    {"noremove",
     false,
     true,
     true,
     true,
     true,
     true,
     fate::serves,
     {.log = {}, .tells_removed = false}},
    {"nomark", false, true, true, true, true, true, fate::is_stopped, {}, false},
    {"synced", false, true, true, false, true, true, fate::is_stopped, {}, true, true},
    {"novoid", false, true, true, true, true, true, fate::is_stopped, {}, false, true},
    {"ordered", false, true, true, false, true, true, fate::serves, {}, true, false, true},
    {"okilled", false, true, true, false, true, true, fate::is_killed, {}, true, false, true},
    {"ostopped", false, true, true, false, true, true, fate::is_stopped, {}, true, false, true},
    {"stage", false, true, false, false, true, true, fate::none, {}, true, false, true, true, true},
    {"nogate", false, true, true, true, true, true, fate::serves, {}, true, false, true, false},
};

struct run_size {
  unsigned streams = 5;
  unsigned epochs = 40;
};

/// Files that are there before the first epoch.
void prepare(std::string const& dir, mode const& m, run_size size);
/// `beside`: a directory that no power cut reaches.
void write_all(std::string const& dir, std::string const& beside, mode const& m, run_size size,
               recorder& marks, std::uint64_t seed);

/// Streams that are processes and know of no log; the oracle is asked about the same files.
int run_streams(std::string const& dir, run_size size, std::uint64_t seed);

/// present[stream][epoch]
using picture = std::vector<std::vector<bool>>;
picture look(std::string const& dir, run_size size);

struct offences {
  unsigned order = 0;  // an epoch behind a gap
  unsigned lost = 0;   // an acknowledged epoch that is not there, or a removed file that is
  std::string first;   // the first lost one, in words
};
/// `acknowledged`: epochs per stream whose mark was before the power cut.
offences judge(picture const& p, mode const& m, std::vector<std::uint64_t> const& acknowledged);

}  // namespace sluice::crash
