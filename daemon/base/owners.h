// SPDX-License-Identifier: Apache-2.0
// The person to whom a uid belongs. /etc/subuid gives a user whole ranges of uids, which he takes
// in user namespaces. Bounds that hold for one user count all of them as his, or he would be
// thousands. What stays true: what no range has is its own owner, and nobody but uid 0 is owned by
// uid 0. The file is looked at once a second at most. Names are asked for when one of their range
// comes: once, or where that was told no uid, once a minute.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// None: every uid is its own owner.
using owner_lookup = std::function<uid_t(uid_t)>;
inline uid_t owner_by(owner_lookup const& of, uid_t uid) { return of ? of(uid) : uid; }

struct uid_range {
  uid_t first;
  uid_t count;
  std::string user;  // a name or a number, as it is written
};

/// Of lines USER:FIRST:COUNT, sorted. Left out: lines that are none, ranges with uid 0 or past the
/// last uid, and of two that overlap the one that begins later.
std::vector<uid_range> read_uid_ranges(std::string_view text);

class owners {
 public:
  using name_lookup = std::function<std::optional<uid_t>(std::string const&)>;
  static constexpr char const* machine_path = "/etc/subuid";

  /// `ask`: for the uid of a name; the machine's own when none is given.
  explicit owners(std::string path = machine_path, name_lookup ask = {});

  /// From any thread.
  uid_t of(uid_t uid, std::int64_t now_ns);

 private:
  void look(std::int64_t now_ns);
  uid_t owner_of(uid_range const& range, std::int64_t now_ns);

  std::string path_;
  name_lookup ask_;
  std::mutex lock_;  // of all below
  std::vector<uid_range> ranges_;
  struct answer {
    uid_t uid;              // what stands for the user
    std::int64_t until_ns;  // then he is asked for again
  };
  std::map<std::string, answer> asked_;  // by name
  struct stat seen_ = {};
  std::int64_t look_ns_ = 0;
};

}  // namespace sluice
