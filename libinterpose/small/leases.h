// SPDX-License-Identifier: Apache-2.0
// Asks a keeper of the job for leases, and gives them back (abi/lease_board.h). A lease is asked
// for and not waited for: it is there when the program comes again, or is not.
#pragma once

#include "abi/lease_board.h"
#include "clock.h"
#include "small/held.h"

namespace sluice::gather {

inline lease_kind kind_of(unsigned lease) {
  return lease < abi::read_leases ? lease_kind::read : lease_kind::write;
}
inline abi::lease_row& row_of(unsigned lease) {
  return lease < abi::read_leases
             ? set->reads->of[lease]
             : set->rings->board.of[(lease - abi::read_leases) % abi::write_leases];
}
inline abi::lease_head& head_of(lease_kind kind) {
  return kind == lease_kind::read ? set->reads->head : set->rings->board.head;
}

/// So many small calls in a row make a habit that is worth a lease.
unsigned patience(lease_kind kind);
/// A call of `n` bytes was made. True: one may ask, after so many of at most `small` in a row.
bool makes_habit(int fd, ssize_t n, std::uint64_t small, lease_kind kind);
/// So many were made under one.
void learn(lease_kind kind, unsigned answered);

/// False: nobody keeps leases of this kind, one was asked for already, or all are taken.
bool ask_for_lease(int fd, lease_kind kind);

struct asked_row {
  bool is_there = false;
  unsigned lease = 0;
  std::uint64_t word = 0;  // as it was when it was asked for
};
asked_row asked_for(int fd);

struct asked_answer {
  bool is_there = false;  // the keeper has answered, or nobody keeps them any more
  bool is_held = false;
  asked_row row;
};
/// Whoever gets it ends it.
asked_answer take_answer(int fd, asked_row const& a);
/// Of an eager build: looks until the one that was asked for has its answer.
template <class Look>
void await_answer(int fd, Look const& look) {
  constexpr std::int64_t most_ns = core::is_eager ? 100'000'000 : 0;
  if (most_ns == 0) return;
  for (std::int64_t const until_ns = now_ns() + most_ns; now_ns() < until_ns;) {
    asked_row const a = asked_for(fd);
    if (!a.is_there) return;
    look(fd, a);
    sys::call(SYS_sched_yield);
  }
}

/// The low half of the word of a row, which the keeper changes last: a futex.
std::uint32_t* futex_of(abi::lease_row& row);
void ring_bell(abi::lease_head& head);
/// Marks a row as ended if it is still as `word` says, but for its state; the state that it had.
/// One that has no keeper any more is free, unless it was broken and its ring is to be looked at.
abi::lease_state mark_ended(unsigned lease, std::uint64_t word);

/// The row is the keeper's again, or nobody's.
void end_read_lease(unsigned lease, std::uint64_t word);
/// Of strict.cc: one that was asked for, and nothing was written under it.
void end_unused_write_lease(unsigned lease, std::uint64_t word);

/// The one that was asked for, and is not used yet.
void forget_lease(int fd);
void forget_leases();
/// Before the program takes a lease itself, or may see ours: one that was asked for is in its way.
void before_own_lease(int fd);
/// The job may ask for leases.
bool has_leases();
/// The kernel's answer to an open may be of a lease of this job.
bool may_be_leased();
/// It may be of a lease of this file, or of one that has ended.
bool may_be_leased(file const& f, bool or_was);

}  // namespace sluice::gather
