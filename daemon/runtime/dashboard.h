// SPDX-License-Identifier: Apache-2.0
// The content of the dashboard, and who sees it. Everybody on the machine can reach the port, so
// without a key it shows only what /metrics shows: sums of supplies and QoS classes. A key is a
// secret of one user, who gets it over the local socket, where the kernel says who asks. With it
// the user sees his own jobs (an operator sees all). Keys die with the daemon. What stays true:
// nothing here speaks to the loop; details go to loopback peers only; a page of another origin can
// neither read an answer (it knows no key, and its name is not ours) nor frame it.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/history.h"
#include "runtime/op_history.h"

namespace httplib {
class Server;
}

namespace sluice::runtime {

class keyring {
 public:
  static constexpr std::size_t most_keys = 4096, most_of_one = 8;

  /// The key of this user, made when he asks first. Empty: too many users have one. `person`: to
  /// whom the uid belongs (base/owners.h). With too many uids he gives one key up for the next.
  std::string key_of(uid_t uid, uid_t person, bool sees_all);
  std::optional<history_reader> owner_of(std::string_view key) const;

 private:
  struct row {
    std::string key;
    bool sees_all;
    uid_t person;
  };
  void make_room(uid_t person);

  mutable std::mutex lock_;
  std::map<uid_t, row> keys_;
};

/// Known from the start; shown as they are.
struct dashboard_facts {
  std::string role, name, version;
};

class dashboard {
 public:
  explicit dashboard(dashboard_facts facts, owner_lookup owner_of = {})
      : past(owner_of), ops(std::move(owner_of)), facts_(std::move(facts)) {}

  history past;    // the loop puts, we read
  op_history ops;  // of a node
  keyring keys;

  /// What the verb `dashboard` answers: the address of the page with the key of who asks. Throws
  /// when nothing is served. Such an address is a secret.
  std::string url_for(std::string const& metrics_address, uid_t uid, uid_t person, bool sees_all);

  /// `/`, its style and scripts, and /dashboard/{now,history,ops}.json.
  void serve_on(httplib::Server& http) const;

 private:
  dashboard_facts facts_;
};

/// A host a browser on this machine may name us by: an address, or `localhost`. A name could be
/// anybody's that was made to point here.
bool is_own_host(std::string_view host_and_port);

// The page; they do not change.
extern char const dashboard_page[];
extern char const dashboard_style[];
extern char const dashboard_charts[];
extern char const dashboard_script[];
extern "C" char const sluice_chart_library[];

}  // namespace sluice::runtime
