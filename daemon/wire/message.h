// SPDX-License-Identifier: Apache-2.0
// The messages between controllers as values. Their layout on the wire is in messages.def; codec.h
// turns one into the other, and refuses a message whole if anything in it is wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lease/message.h"
#include "policies/allocate.h"
#include "policies/steer.h"

namespace sluice::wire {

inline constexpr std::uint16_t major_version = 6;

/// No rate or amount on the wire is larger (72 TB/s); encoding cuts what is. Sums of many children
/// may still overflow 64 bits: clamp each to its supply's capacity first.
inline constexpr std::uint64_t most_rate = std::uint64_t{1} << 56;

enum class role : std::uint8_t { node = 1, relay = 2, cluster = 3, admin = 4 };

/// child -> parent, first message of a connection.
struct hello {
  role who = role::node;
  std::uint64_t policy_hash = 0;  // of the policy text it has, 0 none
  std::string name;  // at most 63 bytes; with CURVE the key's name counts, this is compared
};

/// parent -> child.
struct welcome {
  role who = role::cluster;
  std::uint32_t level = 0;  // edges between the child and the top, minus 1: see lease/timers.h
  std::int64_t cycle_ns = 0;
  std::int64_t lease_ns = 0;
  std::uint64_t policy_hash = 0;
  std::string name;
  bool lacks_pool = false;  // most nodes lend to somebody else, if to anybody: look around
};

/// parent -> child: a part of the policy text (at most 60000 bytes; policies up to 1 MiB).
struct policy_part {
  std::uint64_t hash = 0;
  std::uint32_t total_bytes = 0;
  std::uint32_t offset = 0;
  std::string text;
};

/// child -> parent: who the keys in reports are. Sent for new jobs and all again every 10 s.
struct job_entry {
  core::job_id job;  // job_key(uid, name)
  std::uint32_t uid = 0;
  std::uint32_t class_key = 0;
  std::uint32_t processes = 0;
  std::uint32_t escaped = 0;  // processes of the job that nobody meters
  std::string name;           // at most 63 bytes
  std::string qos_class;      // at most 31 bytes
  bool watched = false;       // --monitor: nothing holds it back
};
struct job_list {
  std::vector<job_entry> jobs;
};

/// One stream: a job on one supply below this child.
struct stream_report {
  core::job_id job;
  std::uint32_t supply = 0;     // index into report::supplies
  std::uint32_t class_key = 0;  // 0: no class
  std::uint32_t nodes = 1;      // nodes the job is on below this child
  lease::rate served = 0;       // last report cycle
  std::uint64_t waiting = 0;    // milli-tokens booked, not served
  std::uint32_t waiters = 0;
  std::uint32_t blocked_ppm = 0;  // share of the cycle in which a request waited, in millionths
  bool has_bins = false;          // relays send them: a histogram of demand over nodes
  std::uint32_t blocked = 0;      // of the histogram: how many nodes wait, and their weight
  std::uint64_t blocked_weight = 0;
  lease::rate need = 0;  // what requests that its class promises the whole job take; 0: none
};

/// A bin that is not empty, of the histogram of a stream.
struct demand_bin {
  std::uint32_t stream = 0;  // index into report::streams
  std::uint16_t bin = 0;
  std::uint32_t nodes = 0;
  std::uint64_t demand = 0;
};

/// How fast the calls of a supply were since the last report, where its capacity is steered.
struct speed_entry {
  std::uint32_t supply = 0;  // index into report::supplies
  policies::call_speeds is;
};

struct report {
  lease::report lease;                  // lease.supply[i] belongs to supplies[i]
  std::vector<std::uint32_t> supplies;  // keys: supply_key(resource, target)
  std::uint64_t policy_hash = 0;
  std::uint64_t applied_sequence = 0;  // of the newest grant message applied
  bool early = false;                  // sent on a block edge or to acknowledge
  bool same_streams = false;           // as in the report before: none are listed
  std::vector<stream_report> streams;
  std::vector<demand_bin> bins;  // by stream, then by bin, each once
  std::vector<speed_entry> speeds;
};

/// Gives a stream its histogram. Streams must come in their order.
void put_bins(report& to, std::uint32_t stream, policies::demand_bins const& bins);
/// The other way: `bins` are those of one stream.
policies::demand_bins histogram(std::uint32_t blocked, std::uint64_t blocked_weight,
                                std::span<demand_bin const> bins);

struct stream_grant {
  core::job_id job;
  std::uint32_t supply = 0;  // index into grant::supplies
  lease::rate value = 0;
  // Of the job on all nodes together, by its class or by hand; 0: it may be paused. Where there is
  // one, the job gets no more than `value`, whatever else the node has.
  lease::rate limit = policies::unbounded;
};

struct grant {
  lease::grant lease;  // lease.supply[i] belongs to supplies[i]
  std::vector<std::uint32_t> supplies;
  std::uint64_t sequence = 0;         // of grant messages to this child, grows
  std::vector<stream_grant> streams;  // how the values are meant to be split over jobs
};

enum class fault : std::uint32_t {
  version = 1,
  not_allowed,
  malformed,
  too_many_faults,
  displaced,  // a newer process with the child's key is connected: it lends what they both own
};
struct error {
  fault code = fault::malformed;
  std::string text;  // at most 80 bytes
};
struct bye {};
struct restart {};  // parent -> child: I do not know you, say hello

/// child -> parent: what a user asked the local socket of a node (`daemon/local`), for the cluster
/// to answer. The node's word is taken for the uid, and nobody is an operator from afar.
struct question {
  std::uint64_t id = 0;  // the child's; the answer has it
  std::uint32_t uid = 0;
  std::string text;  // JSON, at most 8000 bytes
};
inline constexpr std::size_t most_question_bytes = 8000;

/// parent -> child.
struct answer {
  std::uint64_t id = 0;
  std::string text;  // JSON, at most 64 KiB
};

// Cluster epochs: nothing that a job names in a manifest is to be less durable than the manifest.
// Which nodes the job writes on is written down above before they write; who wants to go on asks,
// all of them sync, and their answers open the gate. See cluster/README.md.

/// Of one question, the same all the way up and down.
struct gate_id {
  std::uint64_t node = 0;     // incarnation of the daemon that asks
  std::uint64_t counter = 0;  // its own
  bool operator==(gate_id const&) const = default;
};

/// child -> parent: jobs of this child that have epochs. Said again until it is written down.
struct gate_member {
  core::job_id job;        // job_key
  std::uint64_t boot = 0;  // of the machine; what it had not synced is lost with it
  bool is_over = false;    // the job ended here, and what it wrote is synced
  bool is_lost = false;    // … or could not be
};
struct gate_join {
  bool is_all = false;  // of a node: what is not listed is over, and nobody synced it
  std::vector<gate_member> jobs;
};

/// parent -> child: these jobs of yours are written down, or taken out.
struct gate_row {
  core::job_id job;
  bool is_over = false;
};
struct gate_known {
  std::uint64_t book = 0;  // where; another one knows nothing of what this one knew
  std::vector<gate_row> jobs;
};

/// child -> parent, and again every second: may the job go on?
struct gate_ask {
  gate_id gate;
  core::job_id job;
  std::int64_t patience_ns = 0;
};
/// parent -> child: sync what the job has changed.
struct gate_sync {
  gate_id gate;
  core::job_id job;
  std::int64_t patience_ns = 0;
};
/// child -> parent.
struct gate_done {
  gate_id gate;
  std::uint32_t error = 0;  // errno; 0: all is durable
  std::string text;         // why not, at most 120 bytes
};
/// parent -> child: the answer to a gate_ask.
struct gate_open {
  gate_id gate;
  std::uint64_t book = 0;
  std::uint32_t error = 0;
  std::string text;
};

inline constexpr std::size_t most_gate_text = 120;

using message = std::variant<hello, welcome, policy_part, job_list, report, grant, error, bye,
                             restart, question, answer, gate_join, gate_known, gate_ask, gate_sync,
                             gate_done, gate_open>;

/// What every message carries besides its body.
struct envelope {
  std::uint64_t incarnation = 0;  // of the sender's process
  std::uint64_t sequence = 0;     // of the sender's messages on this connection
  std::uint64_t cycle = 0;        // sender's cycle, for people
};

/// Who a job is: BLAKE2b over both. Users choose names, so nobody may find two with one key.
core::job_id job_key(std::uint32_t uid, std::string_view name);
// FNV-1a of what only operators name. 64 bits of "NUMBER/NAME"; 32 bits of "RESOURCE@TARGET" and of
// a class name (never 0).
std::uint64_t peer_key(std::uint32_t number, std::string_view name);
std::uint32_t supply_key(std::string_view resource, std::string_view target);
std::uint32_t class_key(std::string_view name);

}  // namespace sluice::wire
