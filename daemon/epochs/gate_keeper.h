// SPDX-License-Identifier: Apache-2.0
// The book of epochs of a running controller: kept on disk, exchanged on the wire. Decisions are in
// gate_book.h.
// What stays true: no child is told that it is in the book before the disk has it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "epochs/gate_book.h"
#include "epochs/gate_log.h"
#include "runtime/log.h"
#include "wire/socket.h"

namespace sluice::epochs {

class gate_keeper {
 public:
  /// `path`: of the book. `incarnation`: of the controller; a book that is begun anew has it as its
  /// number.
  gate_keeper(std::string path, bool is_relay, std::uint64_t incarnation, runtime::logger& log);

  void hear(wire::parent_socket::incoming const& m, time_ns now);
  void hear_above(wire::message const& m, time_ns now);
  /// A relay has another parent: all is said anew.
  void above_anew() { book_.above_anew(); }

  /// How letters leave. False of `to_parent`: it was not sent.
  struct post {
    std::function<void(std::uint32_t child, wire::message const&)> to_child;
    std::function<bool(wire::message const&)> to_parent;  // empty: none
  };
  void settle(time_ns now, post const& out);

 private:
  void keep(time_ns now);

  std::string path_;
  runtime::logger& log_;
  gate_book book_;
  gate_log disk_;
  time_ns tried_at_ = 0, retry_ns_ = 0;
};

}  // namespace sluice::epochs
