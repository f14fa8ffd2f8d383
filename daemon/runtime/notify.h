// SPDX-License-Identifier: Apache-2.0
// Messages to the service manager, over the datagram socket that $NOTIFY_SOCKET names
// (sd_notify(3), written out: fifteen lines are no reason for a library). Without the variable it
// does nothing. The variables are removed from the environment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::runtime {

class notifier {
 public:
  notifier();  // from the environment
  ~notifier();
  notifier(notifier const&) = delete;
  notifier& operator=(notifier const&) = delete;

  void ready();                         // once all sockets listen, and again after reloading()
  void reloading(std::int64_t now_ns);  // now of CLOCK_MONOTONIC
  void stopping();
  void status(std::string_view line);  // sent when it differs from the last
  /// At each step: sends WATCHDOG=1, at most three times per watchdog period.
  void alive(std::int64_t now_ns);
  /// When alive() must be called at the latest; the largest number: no watchdog was asked for.
  std::int64_t due_ns() const;

 private:
  void send(std::string const& text);

  int socket_ = -1;
  std::string path_;
  std::string last_status_;
  std::int64_t watchdog_ns_ = 0;  // 0: not asked for
  std::int64_t last_alive_ns_ = 0;
};

}  // namespace sluice::runtime
