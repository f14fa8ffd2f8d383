// SPDX-License-Identifier: Apache-2.0
// Text that does not fit a packet goes beside it: the packet says {"attached": BYTES} and carries
// the descriptor of a file in memory that holds the text. For operators only, who apply policies;
// what stays true: nothing is mapped, and a file that is not as announced is refused, not waited
// for.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/descriptor.h"

namespace sluice::local {

inline constexpr std::size_t most_attached_bytes = 4u << 20;

/// As send(2): in the packet if it fits, else attached. -1 with errno.
ssize_t send_text(int socket, std::string const& text, int flags);

struct received {
  ssize_t bytes;        // as recv(2) with MSG_TRUNC
  descriptor attached;  // what came beside the packet, or none
  bool shed = false;    // more came than may: the kernel dropped it
};

/// What lies in the queue of a socket; descriptors are a burden. Looking takes nothing.
enum class next_packet { none, plain, burdened };

/// Packets come with credentials from then on, so the socket can only be emptied and closed.
next_packet look_at_packet(int socket);

/// A peer that `may_attach` brings one descriptor at most. Of all others none is taken, and a
/// packet with some stays where it is, `shed`: taking it would release what a stranger opened,
/// which may wait for the stranger's file server. Such a socket is for `closer`.
received receive_packet(int socket, std::span<char> buffer, bool may_attach);

/// None: no file, or one that is too long or shorter than it says.
std::optional<std::string> read_attached(descriptor const& file);

}  // namespace sluice::local
