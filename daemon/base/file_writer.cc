// SPDX-License-Identifier: Apache-2.0
#include "base/file_writer.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/whole_file.h"

namespace sluice {

file_writer::file_writer(std::string path)
    : path_(std::move(path)), bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_) throw sluice_error(fmt::format("eventfd: {}", std::strerror(errno)));
}

file_writer::~file_writer() {
  if (is_busy()) thread_.join();
}

bool file_writer::begin(std::string text) try {
  is_over_ = false;
  thread_ = std::thread([this, text = std::move(text)] {
    is_written_ = replace_file(path_, text, {.is_durable = true});
    is_over_ = true;
    std::uint64_t const one = 1;
    (void)!write(bell_.get(), &one, sizeof one);
  });
  return true;
} catch (std::system_error const&) {
  return false;
}

std::optional<bool> file_writer::take() {
  if (!is_busy() || !is_over_) return std::nullopt;
  return wait();
}

bool file_writer::wait() {
  thread_.join();
  std::uint64_t rung = 0;
  (void)!read(bell_.get(), &rung, sizeof rung);
  return is_written_;
}

}  // namespace sluice
