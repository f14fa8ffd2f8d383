// SPDX-License-Identifier: Apache-2.0
// Things that one operation leaves for another: an open descriptor for a close, a name for an
// unlink, a directory for an rmdir. A close thereby closes something really opened. What stays
// true: the oldest goes first; a pool holds no more than `most`; the rest is handed back to be
// undone.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace sluice::replay {

template <typename Thing>
class pool {
 public:
  explicit pool(std::size_t most) : most_(most) {}

  /// The oldest, when there was no room.
  std::optional<Thing> put(Thing thing) {
    std::lock_guard const hold(lock_);
    things_.push_back(std::move(thing));
    return things_.size() > most_ ? std::optional(take_front()) : std::nullopt;
  }

  std::optional<Thing> take() {
    std::lock_guard const hold(lock_);
    return things_.empty() ? std::nullopt : std::optional(take_front());
  }

  std::size_t size() const {
    std::lock_guard const hold(lock_);
    return things_.size();
  }

 private:
  Thing take_front() {
    Thing thing = std::move(things_.front());
    things_.pop_front();
    return thing;
  }

  std::size_t most_;
  mutable std::mutex lock_;
  std::deque<Thing> things_;
};

}  // namespace sluice::replay
