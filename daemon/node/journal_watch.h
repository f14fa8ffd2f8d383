// SPDX-License-Identifier: Apache-2.0
// sluiced's side of the journal: the reports of its keeper go into our log, the metrics and the
// answers to users. Nothing here waits for the keeper, except at the end of the daemon, and then
// not for ever.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "node/journal_keeper.h"
#include "runtime/log.h"
#include "runtime/metric_table.h"
#include "segment/order_look.h"

namespace sluice::node {

class journal_watch {
 public:
  /// `socket`: services::journal_keeper, not ours to close; -1: there is none, and all below is
  /// empty. `status`: where its daemon speaks for itself, see abi/order_status.h.
  journal_watch(int socket, std::string file, std::string status, runtime::logger& log);

  /// To poll; -1: nothing will come.
  int fd() const { return is_there() ? socket_ : -1; }
  /// Takes what has come.
  void listen();
  /// Everything home, and the end.
  void stop() { say(journal_word::stop); }
  /// Not to wait for the next try: somebody has mended something.
  void again() { say(journal_word::again); }
  /// Files may be used: the first attempt is over, well or not, so what a crash left is at home or
  /// cannot get there; or it only syncs, and has for so long that a disk may hang.
  bool is_settled(std::int64_t waited_ns) const;
  /// What the journal has may not be in the files yet, and they must not be used as durable ones.
  bool is_unrecovered() const;
  /// The keeper runs, so the journal may still be in use.
  bool is_there() const { return socket_ >= 0 && !is_gone_; }

  /// Null without a journal. Others than operators get the state alone: a reason may name files.
  nlohmann::json row(bool is_for_operator) const;
  /// Looks how it fares, too.
  void publish(runtime::metric_table& m, std::int64_t now_ns);

 private:
  void say(journal_word word) const;
  void take(journal_report const& fresh);
  void gone();
  char const* state() const;
  bool is_served() const;
  std::optional<segment::journal_status> look_at_status() const;

  int const socket_;
  std::string const file_, status_;
  runtime::logger& log_;
  journal_report last_;
  bool is_gone_ = false, is_settled_ = false, is_silent_ = false;
  bool has_recovered_ = false;  // since it was last refused
};

}  // namespace sluice::node
