// SPDX-License-Identifier: Apache-2.0
#include "journal/late_looks.h"

#include <algorithm>
#include <utility>

namespace sluice::journal {

namespace {

constexpr std::uint64_t call_ns = 400, page_ns = 13;

}  // namespace

std::uint64_t look_ns(page_ranges const& known, std::uint64_t pages) {
  std::uint64_t in_ranges = 0;
  for (auto const& [first, end] : known) in_ranges += end - first;
  return known.size() * call_ns + (pages - std::min(pages, in_ranges)) * page_ns;
}

late_looks::late_looks() : thread_([this] { serve(); }) {}

late_looks::~late_looks() {
  {
    std::lock_guard const held(mutex_);
    is_over_ = true;
  }
  arrived_.notify_all();
  thread_.join();
}

late_looks::look_ptr late_looks::begin(std::shared_ptr<held_file> at, page_ranges known,
                                       std::uint64_t end) {
  auto look = std::make_shared<late_look>(late_look{std::move(at), std::move(known), end});
  std::lock_guard const held(mutex_);
  queue_.push_back(look);
  arrived_.notify_one();
  return look;
}

bool late_looks::has_found(late_look const& look) {
  std::unique_lock held(mutex_);
  done_.wait(held, [&] { return look.is_done; });
  return look.has_found;
}

void late_looks::serve() {
  std::unique_lock held(mutex_);
  for (;;) {
    arrived_.wait(held, [&] { return is_over_ || !queue_.empty(); });
    if (queue_.empty()) return;
    look_ptr const look = std::move(queue_.front());
    queue_.pop_front();
    held.unlock();
    bool const has_found = dirty_pages(look->at->fd.get(), look->known, look->end) != 0;
    look->at.reset();  // perhaps it was removed: that frees its blocks here
    held.lock();
    look->has_found = has_found;
    look->is_done = true;
    done_.notify_all();
  }
}

}  // namespace sluice::journal
