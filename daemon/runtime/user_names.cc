// SPDX-License-Identifier: Apache-2.0
#include "runtime/user_names.h"

#include <pwd.h>

#include <mutex>

#include "base/clock.h"

namespace sluice::runtime {

namespace {

constexpr std::int64_t good_for_ns = 600'000'000'000;
constexpr std::size_t most_known = 10'000;

std::string ask_machine(uid_t uid) {
  passwd entry = {}, *found = nullptr;
  char text[4096];
  if (getpwuid_r(uid, &entry, text, sizeof text, &found) == 0 && found != nullptr)
    return found->pw_name;
  return std::to_string(uid);
}

}  // namespace

std::string user_names::of(uid_t uid, std::int64_t now_ns) {
  auto const at = known_.find(uid);
  if (at != known_.end() && now_ns - at->second.asked_ns < good_for_ns) return at->second.name;
  if (known_.size() >= most_known) known_.clear();
  std::string name = ask_(uid);
  known_[uid] = {name, now_ns};
  return name;
}

std::string user_name(uid_t uid) {
  static std::mutex one;
  static user_names known(ask_machine);
  std::lock_guard const hold(one);
  return known.of(uid, steady_ns());
}

}  // namespace sluice::runtime
