// SPDX-License-Identifier: Apache-2.0
// Whose claims of processes in other pid namespaces a walk through /proc asks for. A user may fill
// all slots of all his jobs with them, so a walk has a bounded number of each user, and his jobs
// take turns. Pure: jobs and their claims are arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include <sys/types.h>

namespace sluice::node {

class foreign_turns {
 public:
  /// More than containers of one user have on a machine. A job is asked for as a whole.
  static constexpr std::size_t most_asked = 2048;

  /// How many processes a user's jobs claim, by folder.
  using claims = std::map<std::string, std::size_t>;

  /// Folders of the jobs whose turn it is.
  std::set<std::string> next(std::map<uid_t, claims> const& all) {
    std::set<std::string> out;
    std::erase_if(last_, [&](auto const& one) { return !all.contains(one.first); });
    for (auto const& [owner, of] : all) add(of, last_[owner], out);
    return out;
  }

 private:
  static void add(claims const& of, std::string& last, std::set<std::string>& out) {
    auto at = of.upper_bound(last);
    std::size_t asked = 0;
    for (std::size_t left = of.size(); left > 0 && asked < most_asked; --left, ++at) {
      if (at == of.end()) at = of.begin();
      asked += at->second;
      out.insert(last = at->first);
    }
  }

  std::map<uid_t, std::string> last_;  // folder that was asked for last
};

}  // namespace sluice::node
