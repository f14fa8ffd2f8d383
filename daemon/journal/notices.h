// SPDX-License-Identifier: Apache-2.0
// Eventfds of programs that want to know the outcome of a barrier. A notice only says that there is
// something to ask for. All of it belongs to the loop.
// What stays true: an eventfd may be full, for good, and the loop must not wait for its owner. A
// request of that kind stays held, so a daemon that comes after this one finds it again.
#pragma once

#include <linux/aio_abi.h>

#include <vector>

#include "base/descriptor.h"
#include "journal/area.h"

namespace sluice::journal {

/// Adds to a foreign eventfd without ever waiting. A write would wait where the count is full, and
/// its owner can make it so at any time; the end of an aio request is told by the kernel.
class bell {
 public:
  bell();
  ~bell();
  bell(bell const&) = delete;
  bell& operator=(bell const&) = delete;

  bool is_there() const { return context_ != 0 && nothing_; }
  void ring(int eventfd);

 private:
  aio_context_t context_ = 0;
  descriptor nothing_;  // is read from
};

class notices {
 public:
  /// It is held until its barrier is not under way any more, and then answered; else sent back.
  void add(request const& r);
  void look();
  /// The area goes.
  void drop(area const& a);
  /// Nobody will look again.
  void tell_all();

 private:
  struct one {
    request asked;
    descriptor to;
  };
  void tell(one const& o);

  bell bell_;
  std::vector<one> all_;
};

}  // namespace sluice::journal
