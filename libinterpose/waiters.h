// SPDX-License-Identifier: Apache-2.0
// Who waits, as the segment shows it. A record stands as long as its thread waits for a ticket. So
// one whose thread is gone tells what was booked for a call that nobody makes, and that is given
// back.
// What stays true: who takes a record away gives back, and nobody else does.
#pragma once

#include "abi/segment.h"
#include "core/token_bucket.h"
#include "visit.h"

namespace sluice::waiters {

/// A wait of the calling thread.
struct wait {
  visit const& of;
  unsigned channel;
  std::int64_t since_ns;
  std::uintptr_t frame;  // where it waits, on its stack
};

void show(wait const& w, core::ticket const& t);
/// It is over.
void hide();
/// It may be over: the thread looks whether it was cancelled.
void show_leaving();

/// Of tickets for calls that are not made.
void give_back(core::bucket& b, std::uint64_t units);
/// Of a record that was taken away: its bucket, and what to give back there. `taken`: its channel
/// as it was.
core::bucket* bucket_of(abi::segment& s, std::uint32_t taken);
std::uint64_t write_off(core::bucket& b, abi::waiter const& record, std::int64_t at_ns);
/// The calling thread has got a shard. Gives back what the one before it left there.
void settle_left(abi::segment& s, abi::waiter const& record, std::uint32_t taken);
/// Waits of the calling thread that were given back so far: see was_settled().
std::uint32_t settled_so_far();
/// The ticket of a wait that came after `before` were, was. Its thread is in that wait all the
/// same, if it asks: the stack of a fiber tells nothing. In doubt it was.
bool was_settled(std::uint32_t before, core::ticket const& t);
/// The calling thread begins to wait. True: it had jumped out of its last wait, and what it had
/// booked there was given back.
bool settle_own(abi::segment& s, std::uintptr_t frame, std::int64_t at_ns);

}  // namespace sluice::waiters
