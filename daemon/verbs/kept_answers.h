// SPDX-License-Identifier: Apache-2.0
// Answers to changes that must be written first, or a daemon that is killed would take back what it
// has acknowledged. To write is dear, and anybody may change his job in a loop. So it begins no
// sooner than `every_ns` after the last time, once for all changes until then, and their answers
// wait for it. Who writes may take long: changes in the meantime wait for the next time.
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

class kept_answers {
 public:
  static constexpr std::int64_t every_ns = 50'000'000, again_ns = 5'000'000'000;
  struct told {
    std::uint64_t ticket;
    std::string text;
    bool is_afar;  // as local::peer says it: no client of our socket has that ticket
  };

  /// A request has changed something that is to be written.
  void changed() { is_changed_ = is_new_ = true; }
  /// The same, and nobody waits for it.
  void changed_unasked() { is_changed_ = true; }

  /// What `serve` answers to a request, or later() when that has changed something. Where it throws
  /// after a change, nobody waits for that.
  template <class Serve>
  nlohmann::json hold(local::peer const& who, Serve const& serve) {
    is_new_ = false;
    nlohmann::json answer = serve();
    if (!is_new_) return answer;
    waiting_.push_back({who.ticket, who.is_afar, false, std::move(answer)});
    return local::later();
  }
  /// `is_gone`, of a ticket and whether it is from afar: nobody waits there any more.
  template <class Predicate>
  void forget_if(Predicate is_gone) {
    std::erase_if(waiting_, [&](waiting const& w) { return is_gone(w.ticket, w.is_afar); });
  }

  /// When it is to be written; none: there is nothing, or it is being done.
  std::optional<std::int64_t> due_ns() const {
    if (is_writing_ || (!is_changed_ && !is_unsaved_)) return std::nullopt;
    return tried_ns_ + (is_changed_ ? every_ns : again_ns);
  }

  /// All of it is written from now on, as it is.
  void begin() {
    is_changed_ = false;
    is_writing_ = true;
    for (auto& w : waiting_) w.is_in_hand = true;
  }
  /// What was begun is written, or could not be.
  void tried(std::int64_t now_ns, bool is_written) {
    is_writing_ = false;
    is_unsaved_ = !is_written;
    tried_ns_ = now_ns;
    tell(is_written ? nullptr : "it could not be saved: a restart of the daemon takes it back");
  }
  /// What was begun is to be written once more before anybody is told.
  void again() {
    is_writing_ = false;
    is_changed_ = true;
    for (auto& w : waiting_) w.is_in_hand = false;
  }
  /// It is not to be written any more, and who waits is told why.
  void give_up(char const* why) {
    begin();
    is_writing_ = is_unsaved_ = false;
    tell(why);
  }
  /// Those who can be told now.
  std::vector<told> take() { return std::exchange(told_, {}); }

 private:
  void tell(char const* warning) {
    constexpr auto replace = nlohmann::json::error_handler_t::replace;
    for (auto& w : waiting_) {
      if (!w.is_in_hand) continue;
      if (warning != nullptr) w.answer["warnings"].push_back(warning);
      told_.push_back({w.ticket, w.answer.dump(-1, ' ', false, replace), w.is_afar});
    }
    std::erase_if(waiting_, [](waiting const& w) { return w.is_in_hand; });
  }

  bool is_changed_ = false, is_new_ = false, is_unsaved_ = false, is_writing_ = false;
  std::int64_t tried_ns_ = -every_ns;
  struct waiting {
    std::uint64_t ticket;
    bool is_afar, is_in_hand;
    nlohmann::json answer;
  };
  std::vector<waiting> waiting_;
  std::vector<told> told_;
};

}  // namespace sluice::verbs
