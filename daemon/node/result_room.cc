// SPDX-License-Identifier: Apache-2.0
#include "node/result_room.h"

#include <algorithm>
#include <map>
#include <utility>

namespace sluice::node {

namespace {

struct share {
  std::size_t results = 0, bytes = 0;
};

/// In the order in which they go; none: there is room.
std::vector<kept_result>::iterator next_to_go(std::vector<kept_result>& oldest_first, uid_t owner) {
  std::map<uid_t, share> has;
  for (kept_result const& r : oldest_first) {
    ++has[r.owner].results;
    has[r.owner].bytes += r.bytes;
  }
  share const his = has[owner];
  std::size_t most = 0;
  for (auto const& [one, of_one] : has) most = std::max(most, of_one.results);
  bool const is_large = his.bytes + most_result_bytes > most_bytes_of_an_owner;
  if (!is_large && oldest_first.size() < most_results) return oldest_first.end();
  bool const gives_up_his = is_large || (his.results != 0 && his.results + 1 >= most);
  return std::ranges::find_if(oldest_first, [&](kept_result const& r) {
    return gives_up_his ? r.owner == owner : has[r.owner].results == most;
  });
}

}  // namespace

std::vector<std::string> results_to_go(std::vector<kept_result> kept, uid_t owner) {
  std::ranges::sort(kept, {}, &kept_result::changed_ns);
  std::vector<std::string> out;
  for (auto at = next_to_go(kept, owner); at != kept.end(); at = next_to_go(kept, owner)) {
    out.push_back(std::move(at->path));
    kept.erase(at);
  }
  return out;
}

}  // namespace sluice::node
