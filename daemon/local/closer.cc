// SPDX-License-Identifier: Apache-2.0
#include "local/closer.h"

#include <sys/socket.h>

#include <algorithm>
#include <future>
#include <system_error>
#include <thread>

#include "base/leave_descriptors.h"
#include "local/attachment.h"

namespace sluice::local {

namespace {

/// Takes what may be taken. True: nothing is left in it.
bool is_emptied(int socket) {
  shutdown(socket, SHUT_RDWR);  // nothing can be added now
  while (true) {
    switch (look_at_packet(socket)) {
      case next_packet::none:
        return true;
      case next_packet::burdened:
        return false;
      case next_packet::plain:
        char byte;
        recv(socket, &byte, 1, MSG_DONTWAIT);
    }
  }
}

}  // namespace

void closer::close(descriptor socket) {
  if (is_emptied(socket.get())) return;
  kept_.push_back(std::move(socket));
  hand_over();
}

void closer::hand_over(bool at_once) {
  if (kept_.empty() || *busy_ >= most_threads) return;
  if (*busy_ != 0 && !is_full() && !at_once) return;
  std::vector<int> sockets;
  for (descriptor const& s : kept_) sockets.push_back(s.get());
  std::sort(sockets.begin(), sockets.end());
  std::promise<bool> settled;
  auto has_them = settled.get_future();
  auto ours_closed = std::make_shared<std::promise<void>>();
  ++*busy_;
  try {
    std::thread([sockets = std::move(sockets), &settled, ours_closed, busy = busy_] {
      bool const is_alone = leave_descriptors(sockets);
      settled.set_value(is_alone);
      ours_closed->get_future().wait();  // who closes one last must not be left to chance
      for (int const s : sockets)
        if (is_alone) ::close(s);
      --*busy;
    }).detach();
  } catch (std::system_error const&) {  // no thread to be had
    --*busy_;
    return;
  }
  // Before, the thread has all that we have, and may be the last to hold it.
  if (has_them.get()) kept_.clear();
  ours_closed->set_value();
}

closer::~closer() {
  hand_over(true);
  // The end of the process closes them, after all locks and ports.
  for (descriptor& s : kept_) [[maybe_unused]] auto* const left = new descriptor(std::move(s));
}

}  // namespace sluice::local
