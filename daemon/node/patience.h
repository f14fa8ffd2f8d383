// SPDX-License-Identifier: Apache-2.0
// How long the loop waits for the file systems of the site. A path that answers slowly or not at
// all runs into debt; the loop does not wait for a path in debt.
// What stays true: of any span of time the waiting for one path is at most a twentieth, and once
// `most_debt_ns` and one wait more. Pure: time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace sluice::node {

class patience {
 public:
  static constexpr std::int64_t longest_ns = 250'000'000;  // one wait
  static constexpr std::int64_t most_debt_ns = 250'000'000;
  static constexpr std::int64_t forgiven_of = 20;  // a twentieth of the time that passes

  bool may_wait(std::string const& path, std::int64_t now_ns) {
    auto const at = debts_.find(path);
    if (at == debts_.end()) return true;
    if (debt_of(at->second, now_ns) > most_debt_ns) return false;
    if (debt_of(at->second, now_ns) == 0) debts_.erase(at);
    return true;
  }
  void waited(std::string const& path, std::int64_t took_ns, std::int64_t now_ns) {
    if (took_ns <= 0) return;
    debt& d = debts_[path];
    d = {debt_of(d, now_ns) + took_ns, now_ns};
  }

 private:
  struct debt {
    std::int64_t owed_ns = 0, at_ns = 0;
  };
  static std::int64_t debt_of(debt const& d, std::int64_t now_ns) {
    return std::max<std::int64_t>(0, d.owed_ns - (now_ns - d.at_ns) / forgiven_of);
  }
  std::map<std::string, debt> debts_;
};

}  // namespace sluice::node
