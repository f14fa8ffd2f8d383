// SPDX-License-Identifier: Apache-2.0
// Answers to changes that must be written first, or a daemon that is killed would take back what it
// has acknowledged. To write is dear, and anybody may change his job in a loop. So it happens at
// most every `every_ns`, once for all changes until then, and their answers wait for it.
// What stays true: nobody is told of a change that is not written; at an end all is written.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "local/local.h"

namespace sluice::verbs {

class kept_answers {
 public:
  static constexpr std::int64_t every_ns = 50'000'000;
  struct told {
    std::uint64_t ticket;
    std::string text;
  };

  /// Something has changed that is to be written.
  void changed() { is_changed_ = is_new_ = true; }

  /// The answer to a request, or later() when that request has changed something.
  nlohmann::json hold(local::peer const& who, nlohmann::json answer) {
    if (!std::exchange(is_new_, false)) return answer;
    constexpr auto replace = nlohmann::json::error_handler_t::replace;
    waiting_.push_back({who.ticket, answer.dump(-1, ' ', false, replace)});
    return local::later();
  }

  /// When it is to be written; none: there is nothing.
  std::optional<std::int64_t> due_ns() const {
    if (!is_changed_) return std::nullopt;
    return written_ns_ + every_ns;
  }

  /// All of it is written.
  void written(std::int64_t now_ns) {
    is_changed_ = false;
    written_ns_ = now_ns;
  }
  /// Those who can be told now.
  std::vector<told> take() {
    if (is_changed_) return {};
    return std::exchange(waiting_, {});
  }

 private:
  bool is_changed_ = false, is_new_ = false;
  std::int64_t written_ns_ = -every_ns;
  std::vector<told> waiting_;
};

}  // namespace sluice::verbs
