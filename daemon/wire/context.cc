// SPDX-License-Identifier: Apache-2.0
#include "wire/context.h"

#include <fmt/format.h>
#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

// Declared with the draft API only, but honoured by the stable library; set() looks at the answer.
#ifndef ZMQ_ZAP_ENFORCE_DOMAIN
#define ZMQ_ZAP_ENFORCE_DOMAIN 93
#endif

namespace sluice::wire {

namespace {

std::string because(std::string const& what) {
  return fmt::format("{}: {}", what, zmq_strerror(zmq_errno()));
}

constexpr char judge_address[] = "inproc://zeromq.zap.01";

}  // namespace

// ---- sockets ----

zmq_socket::zmq_socket(void* context, int type) : at_(::zmq_socket(context, type)) {
  if (at_ == nullptr) throw sluice_error(because("cannot make a ZeroMQ socket"));
  set(ZMQ_LINGER, 0);
}

void zmq_socket::check(int status, int option) {
  if (status != 0)
    throw sluice_error(because(fmt::format("this libzmq refuses socket option {}", option)));
}

void zmq_socket::set(int option, int value) {
  check(zmq_setsockopt(at_, option, &value, sizeof value), option);
}
void zmq_socket::set(int option, std::int64_t value) {
  check(zmq_setsockopt(at_, option, &value, sizeof value), option);
}
void zmq_socket::set(int option, key const& value) {
  check(zmq_setsockopt(at_, option, value.data(), value.size()), option);
}
void zmq_socket::set(int option, std::string const& value) {
  check(zmq_setsockopt(at_, option, value.data(), value.size()), option);
}

std::string zmq_socket::last_endpoint() const {
  char text[256] = {};
  std::size_t size = sizeof text - 1;
  zmq_getsockopt(at_, ZMQ_LAST_ENDPOINT, text, &size);
  // With IPv6 allowed, 127.0.0.1 comes back as [::ffff:127.0.0.1].
  std::string address = text;
  constexpr std::string_view mapped = "[::ffff:";
  auto const begin = address.find(mapped);
  auto const end = address.find(']');
  if (begin == std::string::npos || end == std::string::npos) return address;
  return address.substr(0, begin) +
         address.substr(begin + mapped.size(), end - begin - mapped.size()) +
         address.substr(end + 1);
}

bool zmq_frame::receive(void* socket) {
  for (;;) {
    if (zmq_msg_recv(&msg_, socket, ZMQ_DONTWAIT) >= 0) return true;
    if (zmq_errno() != EINTR) return false;
  }
}

void set_common_options(zmq_socket& s) {
  s.set(ZMQ_MAXMSGSIZE, static_cast<std::int64_t>(most_bytes + 256));  // and CURVE's own bytes
  s.set(ZMQ_HANDSHAKE_IVL, 10000);  // who does not say who he is holds a descriptor so long
  s.set(ZMQ_TCP_MAXRT, 3000);
  s.set(ZMQ_IPV6, 1);
  // Room for what comes while the process is stopped: a full queue stops the reading of a
  // connection, and when that one then ends, libzmq up to 4.3.5 aborts (its issue 4841).
  s.set(ZMQ_RCVHWM, 4096);
}

void serve_curve(zmq_socket& s, std::string const& domain, key const& secret) {
  s.set(ZMQ_CURVE_SERVER, 1);
  s.set(ZMQ_CURVE_SECRETKEY, secret);
  s.set(ZMQ_ZAP_DOMAIN, domain);
  s.set(ZMQ_ZAP_ENFORCE_DOMAIN, 1);
}

monitor::monitor(zmq_context& c, zmq_socket const& watched)
    : watched_(watched.get()), pair_(c.get(), ZMQ_PAIR) {
  pair_.set(ZMQ_RCVHWM, 0);  // a full pipe would stop the I/O thread
  std::string const address = "inproc://" + c.fresh_name("monitor");
  constexpr int events = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED |
                         ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                         ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
  if (zmq_socket_monitor(watched.get(), address.c_str(), events) != 0 ||
      zmq_connect(pair_.get(), address.c_str()) != 0)
    throw sluice_error(because("cannot watch a ZeroMQ socket"));
}

std::optional<monitor::event> monitor::next() {
  zmq_frame numbers, address;
  if (pair_.get() == nullptr || !numbers.receive(pair_.get())) return {};
  if (numbers.more()) address.receive(pair_.get());
  auto const bytes = numbers.bytes();
  if (bytes.size() != 6) return event{};
  std::uint16_t what = 0;
  std::uint32_t value = 0;
  std::memcpy(&what, bytes.data(), sizeof what);
  std::memcpy(&value, bytes.data() + 2, sizeof value);
  return event{what, value};
}

// ---- the list, and the thread that judges by it ----

void key_list::replace(std::set<key> keys) {
  std::lock_guard const hold(lock_);
  keys_ = std::move(keys);
}

bool key_list::admits(key const& k, std::string const& address) {
  std::lock_guard const hold(lock_);
  if (keys_.contains(k)) return true;
  refused_.fetch_add(1, std::memory_order_relaxed);
  last_refused_ = fmt::format("key {} from {}", hex(k), address);
  return false;
}

std::string key_list::last_refused() const {
  std::lock_guard const hold(lock_);
  return last_refused_;
}

std::unique_ptr<context> make_context(context_options const& options) {
  return std::make_unique<zmq_context>(options);
}

zmq_context::zmq_context(context_options const& options) : at_(zmq_ctx_new()) {
  if (at_ == nullptr) throw sluice_error(because("cannot make a ZeroMQ context"));
  zmq_ctx_set(at_, ZMQ_IO_THREADS, options.io_threads);
  if (!options.judge) return;
  // Bound before any server socket can be: what connects early is judged too.
  zmq_socket requests(at_, ZMQ_REP), stop(at_, ZMQ_PAIR);
  stop_ = zmq_socket(at_, ZMQ_PAIR);
  std::string const stop_address = "inproc://" + fresh_name("stop");
  if (zmq_bind(requests.get(), judge_address) != 0 ||
      zmq_bind(stop.get(), stop_address.c_str()) != 0 ||
      zmq_connect(stop_.get(), stop_address.c_str()) != 0)
    throw sluice_error(because("cannot judge keys"));
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  judge_ = std::thread(&zmq_context::judge, this, std::move(requests), std::move(stop));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void zmq_context::stop_judging() {
  if (!judge_.joinable()) return;
  zmq_send(stop_.get(), "", 0, 0);
  judge_.join();
}

zmq_context::~zmq_context() {
  stop_judging();
  stop_ = zmq_socket();
  while (zmq_ctx_term(at_) != 0 && zmq_errno() == EINTR) {
  }
}

std::string zmq_context::fresh_name(char const* what) {
  return fmt::format("{}-{}", what, names_.fetch_add(1));
}

std::shared_ptr<key_list> zmq_context::add_domain(std::string const& domain) {
  std::lock_guard const hold(lock_);
  return domains_[domain] = std::make_shared<key_list>();
}

void zmq_context::remove_domain(std::string const& domain) {
  std::lock_guard const hold(lock_);
  domains_.erase(domain);
}

void zmq_context::judge(zmq_socket requests, zmq_socket stop) {
  for (;;) {
    zmq_pollitem_t items[] = {{requests.get(), 0, ZMQ_POLLIN, 0}, {stop.get(), 0, ZMQ_POLLIN, 0}};
    if (zmq_poll(items, 2, -1) < 0) {
      if (zmq_errno() == EINTR) continue;
      return;
    }
    if (items[1].revents != 0) return;
    while (answer(requests.get())) {
    }
  }
}

/// One request: version, id, domain, address, identity, mechanism, credentials. libzmq believes
/// the answer only if it has the same id.
bool zmq_context::answer(void* requests) {
  std::vector<std::string> in;
  for (;;) {
    zmq_frame frame;
    if (!frame.receive(requests)) return false;
    in.emplace_back(frame.text());
    if (!frame.more()) break;
  }
  bool admitted = false;
  std::string user_id;
  key k{};
  if (in.size() == 7 && in[0] == "1.0" && in[5] == "CURVE" && in[6].size() == k.size()) {
    std::memcpy(k.data(), in[6].data(), k.size());
    std::shared_ptr<key_list> list;
    {
      std::lock_guard const hold(lock_);
      if (auto const found = domains_.find(in[2]); found != domains_.end()) list = found->second;
    }
    admitted = list != nullptr && list->admits(k, in[3]);
    user_id = hex(k);
  }
  // 400, not 300: a refused peer gives up, and its daemon asks again when it sees fit.
  std::string const out[] = {"1.0",
                             in.size() > 1 ? in[1] : "",
                             admitted ? "200" : "400",
                             admitted ? "OK" : "this key is not allowed",
                             admitted ? user_id : "",
                             ""};
  for (std::size_t i = 0; i < std::size(out); ++i)
    zmq_send(requests, out[i].data(), out[i].size(), i + 1 < std::size(out) ? ZMQ_SNDMORE : 0);
  return true;
}

// ---- trying the lock ----

namespace {

enum class knock { let_in, refused, no_answer };

knock knock_at(zmq_context& c, std::string const& address, key const& server,
               key_pair const& with) {
  zmq_socket client(c.get(), ZMQ_DEALER);
  set_common_options(client);
  client.set(ZMQ_CURVE_SERVERKEY, server);
  client.set(ZMQ_CURVE_PUBLICKEY, with.public_key);
  client.set(ZMQ_CURVE_SECRETKEY, with.secret_key);
  monitor watch(c, client);
  if (zmq_connect(client.get(), address.c_str()) != 0) return knock::no_answer;
  std::int64_t const end_ns = boot_ns() + 5'000'000'000;
  for (;;) {
    std::int64_t const left_ms = (end_ns - boot_ns()) / 1'000'000;
    zmq_pollitem_t item{watch.handle(), 0, ZMQ_POLLIN, 0};
    if (left_ms <= 0) return knock::no_answer;
    zmq_poll(&item, 1, static_cast<long>(left_ms));
    while (auto const e = watch.next()) {
      if (e->what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) return knock::let_in;
      if (e->what == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ||
          e->what == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
          e->what == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        return knock::refused;
    }
  }
}

}  // namespace

void try_lock(zmq_context& c, key_list& list, std::set<key> const& allowed,
              std::string const& address, key const& server) {
  key_pair const friendly = new_key_pair(), strange = new_key_pair();
  std::set<key> with_friend = allowed;
  with_friend.insert(friendly.public_key);
  list.replace(std::move(with_friend));
  knock const first = knock_at(c, address, server, friendly);
  knock const second = first == knock::let_in ? knock_at(c, address, server, strange) : first;
  list.replace(allowed);
  if (first != knock::let_in)
    throw sluice_error(
        fmt::format("{}: a key that is allowed was {}; keys are not judged, so nobody is served",
                    address, first == knock::refused ? "refused" : "not answered"));
  if (second != knock::refused)
    throw sluice_error(
        fmt::format("{}: a key that is not allowed was {}; refusing to serve strangers", address,
                    second == knock::let_in ? "let in" : "not answered"));
}

void require_loopback(std::string const& address) {
  for (char const* local :
       {"tcp://127.", "tcp://[::1]:", "tcp://localhost:", "ipc://", "inproc://"})
    if (address.starts_with(local)) return;
  throw usage_error(
      fmt::format("{}: without keys only this machine is served (tcp://127.0.0.1:PORT); make keys "
                  "with `sluiced keys new`, or use a loopback address",
                  address));
}

}  // namespace sluice::wire
