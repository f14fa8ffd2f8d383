// SPDX-License-Identifier: Apache-2.0
// Names of users. The name service may hang for seconds, and the loop of the daemon waits for it
// with all its jobs. So an answer is kept for some minutes, also if there was no such user.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace sluice::runtime {

class user_names {
 public:
  using lookup = std::function<std::string(uid_t)>;
  explicit user_names(lookup ask) : ask_(std::move(ask)) {}

  std::string of(uid_t uid, std::int64_t now_ns);

 private:
  struct known {
    std::string name;
    std::int64_t asked_ns;
  };
  lookup ask_;
  std::map<uid_t, known> known_;
};

/// Of a user of this machine; the number when he has no name here.
std::string user_name(uid_t uid);

}  // namespace sluice::runtime
