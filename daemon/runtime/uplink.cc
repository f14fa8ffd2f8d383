// SPDX-License-Identifier: Apache-2.0
#include "runtime/uplink.h"

namespace sluice::runtime {

namespace {

constexpr unsigned most_at_once = 64;
constexpr std::int64_t maintain_every_ns = 10'000'000;
constexpr std::int64_t hello_every_ns = 200'000'000;
constexpr std::int64_t early_every_ns = 20'000'000;

template <class... Cases>
struct cases : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
cases(Cases...) -> cases<Cases...>;

}  // namespace

uplink::uplink(std::unique_ptr<wire::child_socket> socket, identity who, std::size_t addresses,
               logger& log)
    : socket_(std::move(socket)),
      who_(std::move(who)),
      choice_(addresses, wire::peer_key(0, who_.name)),
      log_(log) {}

void uplink::forget_parent() {
  parent_ = 0;
  waits_ = false;
  last_hello_ns_ = 0;
}

void uplink::walk() {
  socket_->next();
  forget_parent();
}

void uplink::hear(wire::welcome& w, news& out, std::int64_t now_ns) {
  if (!choice_.welcomed(w.lacks_pool, now_ns)) return walk();
  // A name is an identity here: two controllers of one name would be one parent.
  parent_ = wire::peer_key(0, w.name);
  if (w.name != parent_name_)
    log_.info("parent found", {{"parent", w.name}, {"at", socket_->address()}});
  parent_name_ = w.name;
  socket_->parent_is(w.who);
  waits_ = false;
  out.welcome = w;
}

void uplink::replace(std::unique_ptr<wire::child_socket> socket) {
  socket_ = std::move(socket);
  was_connected_ = false;
  forget_parent();
}

void uplink::hear(wire::message& m, news& out, std::int64_t now_ns) {
  std::visit(cases{[&](wire::welcome& w) { hear(w, out, now_ns); },
                   [&](wire::policy_part& p) {
                     if (auto whole = parts_.add(p.hash, p.total_bytes, p.offset, p.text))
                       out.policy = std::move(whole);
                   },
                   [&](wire::grant& g) {
                     waits_ = false;
                     out.grants.push_back(std::move(g));
                   },
                   [&](wire::answer& a) { out.answers.push_back(std::move(a)); },
                   [&](wire::gate_known& k) { out.gates.emplace_back(std::move(k)); },
                   [&](wire::gate_sync& s) { out.gates.emplace_back(s); },
                   [&](wire::gate_open& o) { out.gates.emplace_back(std::move(o)); },
                   [&](wire::restart const&) { forget_parent(); },
                   [&](wire::bye const&) { forget_parent(); },
                   [&](wire::error const& e) {
                     log_.warning("refused by the parent", {{"why", e.text}});
                     last_hello_ns_ = now_ns + refused_pause_ns - hello_every_ns;
                     parent_ = 0;
                     out.is_displaced |= e.code == wire::fault::displaced;
                   },
                   [](auto const&) {}},
             m);
}

uplink::news uplink::receive(std::int64_t now_ns) {
  news out;
  for (unsigned i = 0; i < most_at_once; ++i) {
    auto got = socket_->receive();
    if (!got) break;
    hear(got->second, out, now_ns);
  }
  return out;
}

void uplink::maintain(bool silent, std::uint64_t policy_hash, std::int64_t now_ns) {
  if (now_ns - last_retry_ns_ >= maintain_every_ns) {
    last_retry_ns_ = now_ns;
    if (std::string const line = socket_->maintain(now_ns); !line.empty()) {
      level const how = line.starts_with("connected to ") ? level::info : level::warning;
      log_.write(how, "connection to the parent", {{"what", line}});
    }
    bool const connected = socket_->is_connected();
    if (connected && !was_connected_) forget_parent();  // whoever it is now: hello at once
    was_connected_ = connected;
  }
  if (silent != was_silent_ && parent_ != 0) {
    was_silent_ = silent;
    log_.warning(silent ? "parent silent" : "parent answers again", {{"parent", parent_name_}});
  }
  bool const lost = silent || parent_ == 0;
  if (choice_.leaves(lost, now_ns)) {
    if (!lost) log_.info("looking for a parent with the pool", {{"from", parent_name_}});
    walk();
  }
  if (parent_ != 0 || now_ns - last_hello_ns_ < hello_every_ns) return;
  last_hello_ns_ = now_ns;
  wire::hello h;
  h.who = who_.role;
  h.name = who_.name;
  h.policy_hash = policy_hash;
  socket_->send(h, cycle_);
}

bool uplink::has_credit(std::int64_t cycle_ns, std::int64_t now_ns) const {
  if (parent_ == 0) return false;
  return !waits_ || now_ns - last_report_ns_ >= 2 * cycle_ns;
}

bool uplink::may_be_early(std::int64_t now_ns) const {
  return now_ns - last_report_ns_ >= early_every_ns;
}

bool uplink::send(wire::report const& r, std::int64_t now_ns) {
  last_report_ns_ = now_ns;
  bool const left = socket_->send(r, ++cycle_);
  waits_ = left || waits_;
  return left;
}

void uplink::send(wire::job_list const& jobs) { socket_->send(jobs, cycle_); }

bool uplink::send(wire::question const& q) { return socket_->send(q, cycle_); }

}  // namespace sluice::runtime
