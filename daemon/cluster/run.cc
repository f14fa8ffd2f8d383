// SPDX-License-Identifier: Apache-2.0
// The loop of a controller: poll, drain, settle, and once a second what has time.
//
// What stays true: every queue is empty before anything is allocated, so after a stall of our own
// the newest report of each child counts and not the oldest; and one child that floods cannot keep
// the loop from its cycle.
#include <zmq.h>

#include <algorithm>
#include <cerrno>

#include "cluster/clock.h"
#include "cluster/controller.h"
#include "policy/error.h"

namespace sluice::cluster {

namespace {

constexpr unsigned most_at_once = 2000;
constexpr unsigned look_every = 16;  // messages between looks at the time
constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t most_flood_ns = second;
constexpr std::int64_t least_spacing_ns = 20'000'000;

}  // namespace

/// False: the cap was reached and there may be more. Half a cycle of messages is enough at a time,
/// however few they are.
bool controller::drain(std::int64_t now) {
  std::int64_t const end_ns =
      steady_ns() + std::min(brain_->set().time.cycle_ns, most_flood_ns) / 2;
  if (above_)
    for (unsigned i = 0; i < most_at_once; ++i) {
      auto m = above_->receive();
      if (!m) break;
      hear_above(m->second, now);
    }
  for (unsigned i = 0; i < most_at_once; ++i) {
    auto m = below_->receive();
    if (!m) return true;
    hear(*m, now);
    if (i % look_every == 0 && steady_ns() >= end_ns) break;
  }
  return false;
}

void controller::settle(std::int64_t now) {
  bool const demand_turned = brain_->edge();
  if (up_) up_->serve(now);
  std::int64_t const began = steady_ns();
  if (brain_->settle(now, *this)) {
    settle_ns_ = steady_ns() - began;
    // Never more than a quarter of the time on allocations between cycles.
    brain_->set_spacing(std::max(least_spacing_ns, 4 * settle_ns_));
    remember(now);
  }
  if (up_) talk_up(now, demand_turned);
  settle_gates(now);
  tell_notices();
}

int controller::wait_ms(std::int64_t now) const {
  if (!asked_.empty()) return 0;
  std::int64_t until = std::min(brain_->due(), second_at_ + second);
  if (up_ && is_welcome_) until = std::min(until, up_->due());
  return static_cast<int>(std::clamp<std::int64_t>((until - now + 999'999) / 1'000'000, 0, 100));
}

/// True: stop.
bool controller::take_orders() {
  for (auto o = control::next_order(services_.signal_fd); o != control::order::none;
       o = control::next_order(services_.signal_fd)) {
    if (o == control::order::stop) return true;
    services_.notify.reloading(steady_ns());
    reload();
    services_.notify.ready();
  }
  return false;
}

int controller::run() {
  services_.notify.ready();
  bool drained = true;
  bool is_settled = true;
  std::int64_t began = 0;  // of the drains since the last settle
  for (;;) {
    zmq_pollitem_t items[] = {
        {nullptr, services_.signal_fd, ZMQ_POLLIN, 0},
        {nullptr, local_->fd(), ZMQ_POLLIN, 0},
        {below_->zmq_handle(), 0, ZMQ_POLLIN, 0},
        {above_ ? above_->zmq_handle() : nullptr, 0, ZMQ_POLLIN, 0},
        {above_ ? above_->monitor_handle() : nullptr, 0, ZMQ_POLLIN, 0},
    };
    int const count = !above_ ? 3 : above_->monitor_handle() != nullptr ? 5 : 4;
    if (zmq_poll(items, count, drained ? wait_ms(boot_ns()) : 0) < 0 && errno != EINTR)
      throw sluice_error(std::string("zmq_poll: ") + zmq_strerror(errno));
    if (items[0].revents != 0 && take_orders()) break;
    std::int64_t const now = boot_ns();
    if (is_settled) began = now;
    drained = drain(now);
    // A flood may delay an allocation by two cycles; after a stall there is no such hurry.
    is_settled =
        drained || boot_ns() - began > std::min(2 * brain_->set().time.cycle_ns, most_flood_ns);
    if (!is_settled) continue;
    if (items[1].revents != 0) local_->serve(steady_ns());
    settle(boot_ns());
    std::int64_t const settled_at = boot_ns();
    answer_questions();
    if (up_) look_after_parent(settled_at);
    if (settled_at - second_at_ >= second) each_second(settled_at);
    services_.notify.alive(steady_ns());
  }
  services_.notify.stopping();
  services_.log.info("stopping");
  return 0;
}

/// Asked for few jobs: for those that somebody changed by hand.
presence controller::look_for(std::uint64_t job, job_override& o) const {
  roster const& r = brain_->who();
  auto const is_live = [&] { return o.child < r.children.size() && r.children[o.child].live; };
  std::uint32_t const row = r.job_of(job);
  if (row == roster::nobody) return is_live() ? presence::gone : presence::unknown;
  if (!is_live()) o.child = r.child_of(row);
  return presence::here;
}

void controller::each_second(std::int64_t now) {
  second_at_ = now;
  local_->serve(steady_ns());  // its time limits
  forget_questions(now);
  std::vector<std::string> ended = overrides_.expire(unix_s());
  auto const look = [this](std::uint64_t job, job_override& o) { return look_for(job, o); };
  for (std::string& line : overrides_.retire(now, look)) ended.push_back(std::move(line));
  for (std::string const& line : ended) services_.log.info("override ended", {{"what", line}});
  if (!ended.empty()) overrides_changed();
  for (std::string line = below_->complaint(); !line.empty(); line = below_->complaint())
    services_.log.warning("peer refused", {{"what", line}});
  publish(now);
}

}  // namespace sluice::cluster
