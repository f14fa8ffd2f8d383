// SPDX-License-Identifier: Apache-2.0
// Ordered targets: an fsync posts a barrier and returns; the next change that the process makes in
// a target of the area (the gate) waits until all its barriers are durable. So home never has a
// later change before its barrier is durable, and a power cut leaves no later change without the
// earlier ones. Outstanding barriers lie in this process's own memory: a fork child inherits them,
// and waits too.
// Must stay true: a barrier is forgotten only when it is durable, by the daemon's word or by a sync
// made here; or when it failed, and then the next change and the next fsync of its file say so.
#pragma once

#include "order/notes.h"
#include "place.h"

namespace sluice::order {

/// A barrier as anybody in the job may know it: sluice_token of sluice_order.h.
struct barrier {
  std::uint32_t slot;  // + 1; 0: there is nothing to wait for
  std::uint32_t user;
  std::uint32_t unsure, failed;  // of the area, when it was posted
};

inline constexpr std::uint64_t error_untold = std::uint64_t{1} << 63;
/// Bit i: entry i of the table is taken; error_untold. 0: the gate is open.
extern std::atomic<std::uint64_t> gate_word;
/// Barriers of shared streams that this process has looked at; and un-durable ones, since.
extern std::atomic<std::uint64_t> posted_seen;
extern std::atomic<std::uint32_t> unsure_seen;
inline bool others_posted() {
  if (durable.shared == 0) return false;
  abi::order_header const& h = durable.area->head;
  return h.posted.load() != posted_seen.load() || h.unsure.load() != unsure_seen.load();
}
inline bool has_barriers() {
  return gate_word.load(std::memory_order_acquire) != 0 || others_posted();
}

/// fsync, fdatasync in an ordered target: 0 or -1 with errno. A barrier stands for it where one can
/// be posted; else it is durable. No cancellation point.
int make_ordered(int fd, abi::order_request kind, barrier& to);

/// A change of any stream, and a barrier that stands before all.
inline constexpr std::uint32_t every_stream = ~0u;
/// Waits for all barriers of that stream. 0, or the error of one that nobody was told of yet, which
/// is told now: then the change is not to be made. EAGAIN without `may_wait`.
int pass_barriers(std::uint32_t stream = every_stream, bool may_wait = true);
/// The same where a change cannot be refused: the error stays for the next one.
void wait_for_barriers();

/// 0 or the error number for a change of that file, of any name, through a place of calls.def.
inline int closed_for(int fd) {
  return has_barriers() && is_durable(fd) ? pass_barriers(stream_of(fd)) : 0;
}
inline int closed_for_names() { return has_barriers() ? pass_barriers() : 0; }
inline int closed_for(place const& where) {
  return where.kind == place_kind::fd || where.kind == place_kind::fd_now ? closed_for(where.fd)
                                                                          : closed_for_names();
}

/// Fds [first, last] are about to be closed: while the daemon has not taken a barrier of one of
/// them, only we can make it durable.
void close_gated(unsigned first, unsigned last);
inline void before_close(unsigned first, unsigned last) {
  if (has_barriers()) close_gated(first, last);
}

/// The error of an earlier barrier of that file, or 0; it is told now.
int late_error(file_now const& f);

}  // namespace sluice::order
