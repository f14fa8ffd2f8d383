// SPDX-License-Identifier: Apache-2.0
// Problem: a thread that waits has booked its units. If it is killed or cancelled meanwhile, those
// after it wait for a call that nobody makes.
// Idea: it has left a record of its wait. Of those who wait for the same bucket one looks, now and
// then, through the records for such whose threads are gone, and gives back what they had booked.
// What stays true: nobody who waits comes sooner by more than what is paid between two looks. What
// was booked after those that would is given back when they are due. Nobody is called gone who may
// be there: what another pid namespace has is left alone. A call that was made stays paid for.
#pragma once

#include "abi/segment.h"
#include "core/token_bucket.h"

namespace sluice {

struct gone_look {
  bool gave_back = false;
  bool keeps = false;  // there are more, to be given back later: look again soon
};

/// For a thread that is about to sleep until its ticket is due.
gone_look look_for_the_gone(abi::segment& s, unsigned channel, core::ticket const& mine,
                            std::int64_t at_ns);

}  // namespace sluice
