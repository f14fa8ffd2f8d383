// SPDX-License-Identifier: Apache-2.0
// What a journal has of files that recovery left as they are, for what their users did to them: a
// journal of its own beside that one, so that all others come home and the journal goes on. It is
// recovered like any journal, later or never.
// What stays true: it is whole and on its disk before the journal lets go of what is in it; it says
// of crash, boot and marks what the journal said, so nothing passes there that would not have here;
// whoever can write the journal owns it, and nobody else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "journal/format.h"
#include "journal/record.h"

namespace sluice::journal {

struct kept_log {
  std::string log;               // beside which it lies
  unsigned owner = 0;            // of that
  superblock super = {};         // in force there when its recovery began
  std::uint64_t written_ns = 0;  // the last that it was written, as it says
};

using take_record = std::function<void(record const&)>;

/// A journal's size for records of so many bytes, with the heads of their batches and what fills up
/// their blocks.
std::uint64_t room_for_records(std::uint64_t bytes);

/// `each` gives all records, in order, as often as it is called. Returns the name of the new
/// journal: that of the old one and its generation. Throws sluice::error.
std::string keep_aside(kept_log const& of, std::function<void(take_record const&)> const& each);

/// An attempt of the same recovery, that was cut off, may have kept what is home now.
void remove_kept_of_attempt(kept_log const& of);

/// How many such journals lie beside that journal.
std::uint64_t kept_beside(std::string const& log);

}  // namespace sluice::journal
