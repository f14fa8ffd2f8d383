// SPDX-License-Identifier: Apache-2.0
// What order_calls.cc and order_stdio.cc share.
#pragma once

#include "order.h"

namespace sluice::order {

/// stdio's rows, by order_stdio.cc.
void stand_between_streams();

/// What an open did to its file: made it, or cut it.
struct opening {
  bool creates;  // and the name was not there before
  bool cuts;
};
opening before_open(int dir, char const* path, int flags);
void after_open(opening const& o, int fd);

}  // namespace sluice::order
