// SPDX-License-Identifier: Apache-2.0
// The loop: one thread that waits for messages, clients, signals and its clock, and then does what
// is due. Everything else is in state.h and verbs.h.
#include "node/run.h"

#include <sys/timerfd.h>
#include <zmq.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "node/clock.h"
#include "node/state.h"
#include "node/verbs.h"
#include "policy/descriptor.h"
#include "policy/error.h"
#include "segment/guard.h"

namespace sluice::node {

namespace {

constexpr std::int64_t early_every_ns = 20'000'000;
constexpr std::int64_t first_policy_ns = 2'000'000'000;
constexpr std::int64_t log_patience_ns = 75'000'000'000;  // all may have to go home

descriptor make_timer(std::int64_t every_ns) {
  descriptor fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  itimerspec t = {};
  t.it_interval = {every_ns / second_ns, every_ns % second_ns};
  t.it_value = t.it_interval;
  if (!fd || timerfd_settime(fd.get(), 0, &t, nullptr) != 0) throw sluice_error("timerfd");
  return fd;
}

class loop {
 public:
  loop(control::config const& config, control::services& services)
      : state_(config, services),
        services_(services),
        timer_(make_timer(config.local_cycle_ns)),
        begun_ns_(now().mono_ns) {}

  int run() {
    while (!is_over_) {
      wait();
      moment const at = now();
      state_.log.listen();
      heed_signals(at);
      if (stopping_ns_ != 0 && may_end(at)) break;
      state_.listen(at);
      open_when_ready(at);
      if (server_) serve(at);
      if (has_ticked()) tick(at);
      state_.gates.turn(state_.jobs, state_.up.get(), at.mono_ns);
      state_.talk(false, now());
    }
    services_.notify.stopping();
    return 0;
  }

 private:
  void wait() {
    zmq_pollitem_t items[6] = {{nullptr, services_.signal_fd, ZMQ_POLLIN, 0},
                               {nullptr, timer_.get(), ZMQ_POLLIN, 0}};
    int count = 2;
    if (server_) items[count++] = {nullptr, server_->fd(), ZMQ_POLLIN, 0};
    if (state_.log.fd() >= 0) items[count++] = {nullptr, state_.log.fd(), ZMQ_POLLIN, 0};
    if (state_.has_parent()) {
      items[count++] = {state_.up->socket().zmq_handle(), 0, ZMQ_POLLIN, 0};
      if (void* const m = state_.up->socket().monitor_handle(); m != nullptr)
        items[count++] = {m, 0, ZMQ_POLLIN, 0};
    }
    zmq_poll(items, count, 1000);  // EINTR: again
  }

  void heed_signals(moment at) {
    while (true) {
      switch (control::next_order(services_.signal_fd)) {
        case control::order::none:
          return;
        case control::order::stop:
          stop(at);
          break;
        case control::order::reload:
          state_.reload(at);
          state_.log.again();
          break;
      }
    }
  }

  /// Jobs go on while their files go home, so limits are kept until that is done. Who tells us
  /// twice does not want to wait.
  void stop(moment at) {
    is_over_ = stopping_ns_ != 0 || !state_.log.is_there();
    if (is_over_) return;
    stopping_ns_ = at.mono_ns;
    services_.notify.stopping();
    state_.log.stop();
  }

  bool may_end(moment at) const {
    return !state_.log.is_there() || at.mono_ns - stopping_ns_ > log_patience_ns;
  }

  /// Clients are let in once a policy is there: a job made before would not be metered by it; and
  /// once what a crash left in the log is at home.
  void open_when_ready(moment at) {
    if (server_) return;
    bool const patient = state_.has_parent() && at.mono_ns - begun_ns_ < first_policy_ns;
    if (!state_.site.is_set() && patient) return;
    if (!state_.log.is_settled(at.mono_ns - begun_ns_)) return;
    unsigned const mode = geteuid() == 0 ? 0666 : 0600;
    server_ = local::server::open(state_.config.run_dir + "/" + local::socket_name, mode,
                                  [this](local::peer const& who, nlohmann::json const& request) {
                                    return answer(state_, who, request);
                                  });
    services_.notify.ready();
    services_.log.info("serving", {{"run_dir", state_.config.run_dir},
                                   {"policy", state_.site.is_set() ? "yes" : "none yet"}});
  }

  void serve(moment at) {
    server_->serve(at.mono_ns);
    for (auto const& told : state_.asked.take(at.mono_ns)) server_->reply(told.ticket, told.text);
  }

  bool has_ticked() const {
    std::uint64_t ticks = 0;
    return read(timer_.get(), &ticks, sizeof ticks) == sizeof ticks;
  }

  void tick(moment at) {
    state_.has_news = state_.measure(at) || state_.has_news;
    bool const due = at.mono_ns >= next_cycle_ns_;
    bool const early =
        state_.has_news && !state_.has_parent() && at.mono_ns - last_cycle_ns_ >= early_every_ns;
    if (due || early) {
      state_.end_cycle(at);
      last_cycle_ns_ = at.mono_ns;
      if (!state_.has_parent()) state_.has_news = false;
      state_.enforce(at);
    }
    if (due) {
      state_.expire_overrides(at);
      state_.talk(true, at);
      next_cycle_ns_ = std::max(next_cycle_ns_ + state_.cycle_ns(), at.mono_ns);
      services_.notify.alive(at.mono_ns);
      state_.count();
      state_.remember(at);
      state_.publish(at);
    }
    state_.watch(at);
  }

  state state_;
  control::services& services_;
  descriptor timer_;
  std::unique_ptr<local::server> server_;
  std::int64_t begun_ns_, next_cycle_ns_ = 0, last_cycle_ns_ = 0;
  std::int64_t stopping_ns_ = 0;  // 0: nobody has told us to
  bool is_over_ = false;
};

}  // namespace

int run(control::config const& config, control::services& services) {
  segment::install_guard();
  return loop(config, services).run();
}

}  // namespace sluice::node
