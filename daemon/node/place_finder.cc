// SPDX-License-Identifier: Apache-2.0
#include "node/place_finder.h"

#include <chrono>
#include <future>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/leave_descriptors.h"
#include "base/rights.h"

namespace sluice::node {

namespace {

constexpr std::size_t most_known = 1000;

}  // namespace

/// What threads look for.
struct place_finder::waiting {
  std::mutex lock;
  std::set<std::string> paths;

  bool begin(std::string const& path) {
    std::lock_guard const hold(lock);
    return paths.size() < most_stuck && paths.insert(path).second;
  }
  void end(std::string const& path) {
    std::lock_guard const hold(lock);
    paths.erase(path);
  }
};

place_finder::place_finder(look find)
    : find_(std::move(find)), waiting_(std::make_shared<waiting>()) {}

policy::file_system place_finder::files() {
  return {read_mounts(), [this](std::string const& path) { return find(path); }};
}

policy::place place_finder::no_answer(std::string const& path) const {
  if (auto const at = known_.find(path); at != known_.end()) return at->second;
  throw sluice_error("target " + path + ": its file system does not answer");
}

policy::place place_finder::find(std::string const& path) {
  std::int64_t const begun_ns = steady_ns();
  if (!patience_.may_wait(path, begun_ns) || !waiting_->begin(path)) return no_answer(path);
  auto task = std::make_shared<std::packaged_task<policy::place()>>(
      [look = find_, path] { return look(path); });
  auto answer = task->get_future();
  try {
    auto const look = [task, path, all = waiting_] {
      leave_descriptors();
      (*task)();
      all->end(path);
    };
    // It has the rights of its maker: not every folder of the site is open to all.
    with_rights([&] { std::thread(look).detach(); });
  } catch (std::system_error const&) {  // no thread to be had
    waiting_->end(path);
    return no_answer(path);
  }
  bool const is_there =
      answer.wait_for(std::chrono::nanoseconds(patience::longest_ns)) == std::future_status::ready;
  std::int64_t const now_ns = steady_ns();
  patience_.waited(path, now_ns - begun_ns, now_ns);
  if (!is_there) return no_answer(path);
  policy::place const found = answer.get();
  if (known_.size() >= most_known) known_.clear();
  return known_[path] = found;
}

}  // namespace sluice::node
