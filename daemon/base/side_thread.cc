// SPDX-License-Identifier: Apache-2.0
#include "base/side_thread.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace sluice {

side_thread::side_thread() : bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_) throw sluice_error(fmt::format("eventfd: {}", std::strerror(errno)));
}

side_thread::~side_thread() {
  if (is_busy()) thread_.join();
}

bool side_thread::begin(std::function<void()> work) try {
  is_over_ = false;
  thread_ = std::thread([this, work = std::move(work)] {
    work();
    is_over_ = true;
    std::uint64_t const one = 1;
    (void)!write(bell_.get(), &one, sizeof one);
  });
  return true;
} catch (std::system_error const&) {
  return false;
}

void side_thread::end() {
  thread_.join();
  std::uint64_t rung = 0;
  (void)!read(bell_.get(), &rung, sizeof rung);
}

}  // namespace sluice
