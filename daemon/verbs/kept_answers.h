// SPDX-License-Identifier: Apache-2.0
// Answers to changes that must be written first, or a daemon that is killed would take back what it
// has acknowledged. To write is dear, and anybody may change his job in a loop. So it happens at
// most every `every_ns`, once for all changes until then, and their answers wait for it.
// What stays true: nobody is told of a change that is not written, but with a warning where it
// cannot be. That is tried again, and at an end.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "local/local.h"

namespace sluice::verbs {

/// To an answer: the change is in force, and no more than that.
inline void warn_unsaved(nlohmann::json& answer) {
  answer["warnings"].push_back("it could not be saved: a restart of the daemon takes it back");
}

class kept_answers {
 public:
  static constexpr std::int64_t every_ns = 50'000'000, again_ns = 5'000'000'000;
  struct told {
    std::uint64_t ticket;
    std::string text;
  };

  /// Something has changed that is to be written.
  void changed() { is_changed_ = is_new_ = true; }

  /// The answer to a request, or later() when that request has changed something.
  nlohmann::json hold(local::peer const& who, nlohmann::json answer) {
    if (!std::exchange(is_new_, false)) return answer;
    waiting_.push_back({who.ticket, std::move(answer)});
    return local::later();
  }

  /// When it is to be written; none: there is nothing.
  std::optional<std::int64_t> due_ns() const {
    if (!is_changed_ && !is_unsaved_) return std::nullopt;
    return tried_ns_ + (is_changed_ ? every_ns : again_ns);
  }

  /// All of it is written, or nothing could be.
  void tried(std::int64_t now_ns, bool is_written) {
    is_changed_ = false;
    is_unsaved_ = !is_written;
    tried_ns_ = now_ns;
    for (auto& w : waiting_) w.is_unsaved = !is_written;
  }
  /// Those who can be told now.
  std::vector<told> take() {
    constexpr auto replace = nlohmann::json::error_handler_t::replace;
    std::vector<told> out;
    if (is_changed_) return out;
    for (auto& w : std::exchange(waiting_, {})) {
      if (w.is_unsaved) warn_unsaved(w.answer);
      out.push_back({w.ticket, w.answer.dump(-1, ' ', false, replace)});
    }
    return out;
  }

 private:
  bool is_changed_ = false, is_new_ = false, is_unsaved_ = false;
  std::int64_t tried_ns_ = -every_ns;
  struct waiting {
    std::uint64_t ticket;
    nlohmann::json answer;
    bool is_unsaved = false;
  };
  std::vector<waiting> waiting_;
};

}  // namespace sluice::verbs
