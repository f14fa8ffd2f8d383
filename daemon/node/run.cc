// SPDX-License-Identifier: Apache-2.0
// The loop: one thread that waits for messages, clients, signals and its clock, and then does what
// is due. Everything else is in state.h and verbs.h.
#include "node/run.h"

#include <zmq.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/guard.h"
#include "node/clock.h"
#include "node/node_role.h"
#include "node/pace.h"
#include "node/state.h"
#include "runtime/fresh_look.h"
#include "verbs/serve.h"

namespace sluice::node {

namespace {

constexpr std::int64_t early_every_ns = 20'000'000;
constexpr std::int64_t journal_patience_ns = 75'000'000'000;  // all may have to go home

class loop {
 public:
  loop(runtime::config const& config, runtime::services& services)
      : state_(config, services), services_(services), begun_ns_(now().mono_ns) {
    if (services.looks != nullptr) services.looks->open();
  }

  int run() {
    while (!is_over_) {
      bool const is_asked = wait();
      moment const at = now();
      state_.heed_journals(at);
      heed_signals(at);
      if (stopping_ns_ != 0 && may_end(at)) break;
      state_.listen(at);
      state_.folders.listen(at.mono_ns);
      state_.jobs.heed_tidier();
      look(is_asked, at);
      open_when_ready(at);
      if (server_) serve(at);
      state_.turn_gates(at);
      state_.talk(false, now());
      if (state_.has_news || state_.gates.is_busy()) state_.stir(at);
    }
    if (state_.kept.due_ns()) state_.keep_overrides(now());
    if (server_) tell_kept();
    services_.notify.stopping();
    if (services_.looks != nullptr) services_.looks->close();
    return 0;
  }

 private:
  /// True: somebody asks, so what he is told should be fresh.
  bool wait() {
    zmq_pollitem_t items[9] = {};
    int count = 0;
    auto const add = [&](int fd) {
      if (fd >= 0) items[count++] = {nullptr, fd, ZMQ_POLLIN, 0};
    };
    add(server_ ? server_->fd() : -1);
    add(services_.looks != nullptr ? services_.looks->fd() : -1);
    int const asking = count;
    add(services_.signal_fd);
    add(state_.folders.fd());
    add(state_.jobs.tidier_fd());
    add(state_.journals.fd());
    if (state_.has_parent()) {
      wire::child_socket& socket = state_.parent->uplink().socket();
      items[count++] = {socket.zmq_handle(), 0, ZMQ_POLLIN, 0};
      if (void* const m = socket.monitor_handle(); m != nullptr)
        items[count++] = {m, 0, ZMQ_POLLIN, 0};
    }
    int const events = zmq_poll(items, count, poll_ms(next_ns(), now().mono_ns));  // EINTR: again
    return events > 0 &&
           std::any_of(items, items + asking, [](auto const& i) { return i.revents != 0; });
  }

  std::int64_t next_ns() const {
    step_reasons r = state_.reasons();
    r.stepped_ns = stepped_ns_;
    r.is_between = !server_ || stopping_ns_ != 0;
    if (state_.has_parent()) r.cycle_ns = next_cycle_ns_;
    if (server_) r.clients_ns = server_->due_ns();
    if (auto const due = state_.kept.due_ns()) r.clients_ns = std::min(r.clients_ns, *due);
    r.feed_ns = services_.notify.due_ns();
    return next_step_ns(r);
  }

  void heed_signals(moment at) {
    while (true) {
      switch (runtime::next_order(services_.signal_fd)) {
        case runtime::order::none:
          return;
        case runtime::order::stop:
          stop(at);
          break;
        case runtime::order::reload:
          state_.reload(at);
          state_.journals.again();
          break;
      }
    }
  }

  /// Jobs go on while their files go home, so limits are kept until that is done. Who tells us
  /// twice does not want to wait.
  void stop(moment at) {
    is_over_ = stopping_ns_ != 0 || !state_.journals.is_there();
    if (is_over_) return;
    stopping_ns_ = at.mono_ns;
    services_.notify.stopping();
    state_.journals.stop();
  }

  bool may_end(moment at) const {
    return !state_.journals.is_there() || at.mono_ns - stopping_ns_ > journal_patience_ns;
  }

  /// Clients are let in once a policy is there: a job made before would not be metered by it; and
  /// once it is known whose journals a crash left.
  void open_when_ready(moment at) {
    if (server_) return;
    bool const patient = state_.has_parent() && at.mono_ns - begun_ns_ < first_policy_ns;
    if (!state_.site.is_set() && patient) return;
    if (!state_.journals.is_settled()) return;
    unsigned const mode = geteuid() == 0 ? 0666 : 0600;
    server_ = local::server::open(
        state_.config.run_dir + "/" + local::socket_name, mode,
        [this](local::peer const& who, nlohmann::json const& request) {
          return state_.kept.hold(who, [&] { return verbs::serve(role_, who, request); });
        },
        services_.owner_of);
    services_.notify.ready();
    services_.log.info("serving", {{"run_dir", state_.config.run_dir},
                                   {"policy", state_.site.is_set() ? "yes" : "none yet"}});
  }

  void serve(moment at) {
    server_->serve(at.mono_ns);
    for (auto const& told : state_.asked.take(at.mono_ns)) server_->reply(told.ticket, told.text);
    if (auto const due = state_.kept.due_ns(); due && at.mono_ns >= *due) state_.keep_overrides(at);
    tell_kept();
  }
  void tell_kept() {
    for (auto const& told : state_.kept.take()) server_->reply(told.ticket, told.text);
  }

  /// Before anybody is served: what was until now is told as it was, and a new job's share of the
  /// history begins now.
  void look(bool is_asked, moment at) {
    if (at.mono_ns >= next_ns() || (is_asked && at.mono_ns - stepped_ns_ >= quiet_step_ns))
      step(is_asked, at);
    if (is_asked && at.mono_ns - told_ns_ >= runtime::fresh_look::fresh_ns) tell(at);
  }

  /// What is steered has to be looked at also while nobody waits.
  bool is_calm(moment at) const {
    return !state_.has_parent() && !state_.steered.is_any() &&
           !is_stirred(state_.reasons(), at.mono_ns);
  }

  void step(bool is_asked, moment at) {
    stepped_ns_ = at.mono_ns;
    ++state_.steps;
    state_.has_news = state_.measure(at) || state_.has_news;
    state_.expire_overrides(at);
    bool const due =
        is_cycle_over(last_cycle_ns_, next_cycle_ns_, !is_asked && is_calm(at), at.mono_ns);
    bool const early =
        state_.has_news && !state_.has_parent() && at.mono_ns - last_cycle_ns_ >= early_every_ns;
    if (due || early) {
      state_.end_cycle(at);
      last_cycle_ns_ = at.mono_ns;
      if (!state_.has_parent()) state_.has_news = false;
      state_.enforce(at);
    }
    if (due) {
      state_.talk(true, at);
      next_cycle_ns_ = std::max(next_cycle_ns_, at.mono_ns - state_.cycle_ns()) + state_.cycle_ns();
      bool const is_fast = is_stirred(state_.reasons(), at.mono_ns);
      if (is_fast || at.mono_ns - told_ns_ >= quiet_tell_ns) tell(at);
    }
    services_.notify.alive(at.mono_ns);
    state_.watch(at);
  }

  void tell(moment at) {
    told_ns_ = at.mono_ns;
    if (server_) verbs::publish(services_.metrics, server_->in_use());
    state_.tell(at);
    if (services_.looks != nullptr) services_.looks->taken(at.mono_ns);
  }

  state state_;
  node_role role_{state_};
  runtime::services& services_;
  std::unique_ptr<local::server> server_;
  std::int64_t begun_ns_, next_cycle_ns_ = 0, last_cycle_ns_ = 0;
  std::int64_t stepped_ns_ = 0, told_ns_ = 0;
  std::int64_t stopping_ns_ = 0;  // 0: nobody has told us to
  bool is_over_ = false;
};

}  // namespace

int run(runtime::config const& config, runtime::services& services) {
  install_guard();
  return loop(config, services).run();
}

}  // namespace sluice::node
