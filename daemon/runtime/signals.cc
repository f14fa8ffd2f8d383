// SPDX-License-Identifier: Apache-2.0
#include "runtime/signals.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace sluice::runtime {

int open_signals() {
  sigset_t mine;
  sigemptyset(&mine);
  for (int s : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&mine, s);
  // Who started us may have ignored SIGHUP (nohup); an ignored signal is never read.
  for (int s : {SIGTERM, SIGINT, SIGHUP}) signal(s, SIG_DFL);
  // A limit of file sizes (RLIMIT_FSIZE) is told by EFBIG then, like a full file system.
  for (int s : {SIGPIPE, SIGXFSZ}) signal(s, SIG_IGN);
  pthread_sigmask(SIG_BLOCK, &mine, nullptr);
  int const fd = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) throw sluice_error(fmt::format("signalfd: {}", std::strerror(errno)));
  return fd;
}

order next_order(int signal_fd) {
  signalfd_siginfo info = {};
  if (read(signal_fd, &info, sizeof info) != sizeof info) return order::none;
  return info.ssi_signo == SIGHUP ? order::reload : order::stop;
}

}  // namespace sluice::runtime
