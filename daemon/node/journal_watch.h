// SPDX-License-Identifier: Apache-2.0
// sluiced's side of the journals: the reports of their keeper go into our log, the metrics and the
// answers to users. Nothing here waits for the keeper, except at the end of the daemon, and then
// not for ever.
#pragma once

#include <sys/types.h>

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/journal_words.h"
#include "node/pace.h"
#include "runtime/log.h"
#include "runtime/metric_table.h"
#include "segment/order_look.h"

namespace sluice::node {

/// Whether a user's files may be used as durable ones.
enum class home_state {
  fine,         // what a journal had is in them
  coming_home,  // not yet, and not for long
  unrecovered,  // nobody knows when
};

class journal_watch {
 public:
  /// `socket`: services::journal_keeper, not ours to close; -1: there is none, and all below is
  /// empty. `run_dir`: where journals' daemons speak for themselves, see abi/order_status.h.
  journal_watch(int socket, std::string directory, std::string run_dir, runtime::logger& log);

  /// To poll; -1: nothing will come.
  int fd() const { return is_there() ? socket_ : -1; }
  /// Takes what has come.
  void listen(std::int64_t now_ns);
  /// When a recovery counts as one that hangs; never_ns: there is none.
  std::int64_t due_ns() const;
  /// Everything home, and the end.
  void stop() const { say({journal_verb::stop}); }
  /// Not to wait for the next try: somebody has mended something.
  void again() const { say({journal_verb::again}); }
  /// These users have jobs that need a journal, of processes with that group, and no others.
  void follow(std::map<uid_t, gid_t> const& users);
  /// It is known whose journals were left.
  bool is_settled() const { return !is_there() || has_begun_; }
  home_state home_of(uid_t user) const;
  /// Another number: what home_of() says of somebody may be another.
  std::uint64_t changes() const { return changes_; }
  /// The keeper runs, so journals may still be in use.
  bool is_there() const { return socket_ >= 0 && !is_gone_; }

  /// Null where none are kept; else {"state": …} of his journal.
  nlohmann::json row(uid_t user) const;
  /// Whose journals or directories of journals are there; true: he has a journal, too.
  std::map<uid_t, bool> known() const;
  /// Those who have one; and all that is known of it, for `sluice order`. A reason may name files.
  std::vector<uid_t> users() const;
  nlohmann::json full_row(uid_t user) const;
  /// Looks how they fare, too.
  void publish(runtime::metric_table& m, std::int64_t now_ns);

 private:
  struct one {
    journal_report last;
    bool is_silent = false;
    std::int64_t since_ns = 0;  // it is in that phase
    bool hangs = false;         // its recovery
    bool has_failed = false;    // the last one that ended
  };

  bool say(journal_word word) const;
  void take(journal_report const& fresh, std::int64_t now_ns);
  void take_own(journal_report const& fresh);
  void tell(journal_report const& was, journal_report const& fresh) const;
  void gone();
  void look_at_heart(uid_t user, one& of, std::int64_t heart_ns, std::int64_t now_ns) const;
  char const* state_of(one const& of) const;
  std::string file_of(uid_t user) const;
  std::optional<segment::journal_status> look_at_status(uid_t user) const;

  int const socket_;
  std::string const directory_, run_dir_;
  runtime::logger& log_;
  std::map<uid_t, one> all_;
  std::set<uid_t> wanted_;  // as the keeper was told
  std::string trouble_;     // why nothing was begun
  std::uint64_t changes_ = 0, deaths_ = 0;
  bool is_gone_ = false, is_over_ = false;
  bool has_begun_ = false;  // well, or not: then there is trouble
};

}  // namespace sluice::node
