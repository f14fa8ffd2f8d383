// SPDX-License-Identifier: Apache-2.0
// One connection of the HTTP server, with an end: the library gives each byte a patience of its
// own, so a client of one byte a second would hold its thread for hours. It keeps any number of
// header lines, so what a connection may send is bounded too.
#pragma once

#include <httplib.h>

#include <cstdint>

namespace sluice::runtime {

class http_stream final : public httplib::Stream {
 public:
  /// Until when a request has to be there, and until when its answer has to be taken.
  static constexpr std::int64_t request_ns = 2'000'000'000, answer_ns = 10'000'000'000;
  static constexpr std::size_t request_bytes = 32 * 1024;

  explicit http_stream(int socket);

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, std::size_t most) override;
  ssize_t write(char const* from, std::size_t bytes) override;
  using httplib::Stream::write;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  int socket() const override { return socket_; }

 private:
  bool wait(short event, std::int64_t until_ns) const;

  int const socket_;
  std::int64_t const begun_ns_;
  std::size_t received_ = 0;
  std::size_t from_ = 0, end_ = 0;  // of what is in room_ and not read
  char room_[4096] = {};
};

}  // namespace sluice::runtime
