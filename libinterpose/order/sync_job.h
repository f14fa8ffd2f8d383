// SPDX-License-Identifier: Apache-2.0
// One fsync on its way: the file is looked at once, then one way is chosen, then that way is gone.
#pragma once

#include "order/notes.h"

namespace sluice::order {

enum class sync_way : std::uint8_t {
  undecided,
  kernel,     // the program's own sync: the journal has nothing of the file, or it is none
  lone,       // the same, counted in as the only one at the moment (order_header::lone)
  own,        // the program's own sync of a file that the journal may have as well
  journal,    // the daemon is asked
  sent_back,  // the daemon was asked, and did nothing
  home,       // without the daemon: sync, and tell recovery to leave the file alone
};

struct sync_job {
  int fd;
  abi::order_request kind;
  sync_way where;
  file_now file;
  std::uint64_t seen;  // flags of its inode, after the writes that are to be durable
  int late_error;      // of a barrier of this file, which nobody was told of: it is told now
};

sync_job look_before_sync(int fd, abi::order_request kind);
/// Whether the daemon may be asked to make the file durable. False: it is bypassed by now.
bool is_for_daemon(sync_job& j);
/// 0, or -1 with errno.
int finish(sync_job& j);

}  // namespace sluice::order
