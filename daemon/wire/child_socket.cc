// SPDX-License-Identifier: Apache-2.0
// The side that connects. libzmq reconnects by itself after a lost connection, but never again
// after the parent refused our key: that is seen on the monitor, and answered with a fresh socket
// after a while. There is always a socket to poll, connected or not.
#include <fmt/format.h>

#include <cerrno>
#include <deque>
#include <random>

#include "base/clock.h"
#include "base/error.h"
#include "wire/context.h"
#include "wire/layout.h"

namespace sluice::wire {

namespace {

struct target {
  std::string address;
  key parent_key{};
  std::int64_t pause_ns = 0;       // after the last refusal
  std::int64_t not_before_ns = 0;  // connect again
};

class dealer final : public child_socket {
 public:
  dealer(zmq_context& c, std::vector<std::string> const& parents, security const* keys,
         std::uint64_t incarnation, child_options const& options);

  void* zmq_handle() override { return socket_.get(); }
  void* monitor_handle() override { return monitor_.handle(); }
  std::string const& address() const override { return here().address; }
  bool is_connected() const override { return is_connected_; }
  void next() override;
  std::string maintain(std::int64_t now_ns) override;
  std::optional<std::pair<envelope, message>> receive() override;
  bool send(message const& m, std::uint64_t cycle) override;
  std::uint64_t refused() const override { return refused_; }
  void parent_is(role who) override { is_below_relay_ = who == role::relay; }

 private:
  target& here() { return targets_[at_]; }
  target const& here() const { return targets_[at_]; }
  void fresh_socket();
  void connect();
  void see(unsigned event, std::int64_t now_ns);
  void refused_by_parent(std::int64_t now_ns, std::string const& why);
  void complain_of_length(std::int64_t now_ns);

  zmq_context& c_;
  child_options const options_;
  std::uint64_t const incarnation_;
  std::uint64_t sequence_ = static_cast<std::uint64_t>(boot_ns());
  bool const has_keys_;
  std::string name_;
  key public_key_{}, secret_key_{};
  std::vector<target> targets_;
  std::size_t at_ = 0;
  zmq_socket socket_;
  monitor monitor_;  // ends before the socket it watches
  bool is_connected_ = false, is_trying_ = false;
  bool is_below_relay_ = false, is_quick_ = false;
  std::int64_t complain_after_ns_ = 0, complain_of_length_after_ns_ = 0;
  std::size_t longest_ = most_bytes;  // of a message of our role
  envelope newest_;                   // of what was received on this connection
  std::uint64_t refused_ = 0;
  std::deque<std::string> lines_;
  std::minstd_rand random_{std::random_device{}()};
  std::vector<std::byte> buffer_;
};

dealer::dealer(zmq_context& c, std::vector<std::string> const& parents, security const* keys,
               std::uint64_t incarnation, child_options const& options)
    : c_(c), options_(options), incarnation_(incarnation), has_keys_(keys != nullptr) {
  if (parents.empty()) throw usage_error("no parent to connect to");
  for (std::string const& address : parents) {
    if (keys == nullptr) require_loopback(address);
    if (keys != nullptr && !address.starts_with("tcp://"))
      throw usage_error(address + ": keys need an address like tcp://controller:7421");
    targets_.emplace_back().address = address;
  }
  if (keys != nullptr) {
    if (keys->parent_key == key{})
      throw usage_error(fmt::format(
          "no key of the parent: copy the parent's `public` to {}/parent.pub", keys->dir));
    if (!keys->more_parents.empty() && keys->more_parents.size() + 1 != parents.size())
      throw usage_error(
          fmt::format("parent.pub has {} keys for {} parents; give one line for each address, in "
                      "their order, or one for all",
                      keys->more_parents.size() + 1, parents.size()));
    for (std::size_t i = 0; i < targets_.size(); ++i)
      targets_[i].parent_key =
          i == 0 || keys->more_parents.empty() ? keys->parent_key : keys->more_parents[i - 1];
    name_ = keys->name;
    public_key_ = keys->public_key;
    secret_key_ = keys->secret_key;
  }
  fresh_socket();
  connect();
}

void dealer::fresh_socket() {
  monitor_ = monitor();
  socket_ = zmq_socket(c_.get(), ZMQ_DEALER);
  set_common_options(socket_);
  socket_.set(ZMQ_SNDHWM, 2);
  socket_.set(ZMQ_IMMEDIATE, 1);
  is_quick_ = is_below_relay_;
  socket_.set(ZMQ_RECONNECT_IVL, is_quick_ ? 200 : 1000);
  socket_.set(ZMQ_RECONNECT_IVL_MAX, 0);
  socket_.set(ZMQ_CONNECT_TIMEOUT, 2000);
  socket_.set(ZMQ_HEARTBEAT_IVL, 5000);
  socket_.set(ZMQ_HEARTBEAT_TIMEOUT, 15000);
  if (has_keys_) {
    socket_.set(ZMQ_CURVE_SERVERKEY, here().parent_key);
    socket_.set(ZMQ_CURVE_PUBLICKEY, public_key_);
    socket_.set(ZMQ_CURVE_SECRETKEY, secret_key_);
  }
  monitor_ = monitor(c_, socket_);
  is_connected_ = is_trying_ = false;
}

void dealer::connect() {
  if (zmq_connect(socket_.get(), here().address.c_str()) != 0)
    throw usage_error(fmt::format("{}: {}; an address looks like tcp://controller:7421",
                                  here().address, zmq_strerror(zmq_errno())));
  is_trying_ = true;
}

void dealer::next() {
  at_ = (at_ + 1) % targets_.size();
  fresh_socket();
  if (here().not_before_ns <= boot_ns()) connect();
}

// ---- the monitor ----

std::string dealer::maintain(std::int64_t now_ns) {
  while (auto const e = monitor_.next()) see(e->what, now_ns);
  if (!is_trying_ && now_ns >= here().not_before_ns) connect();
  while (lines_.size() > 10) lines_.pop_front();
  if (lines_.empty()) return {};
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

void dealer::see(unsigned event, std::int64_t now_ns) {
  switch (event) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      is_connected_ = true;
      newest_ = {};
      here().pause_ns = here().not_before_ns = complain_after_ns_ = 0;
      lines_.push_back("connected to " + here().address);
      break;
    case ZMQ_EVENT_DISCONNECTED:
      if (is_connected_) lines_.push_back(fmt::format("lost the connection to {}", here().address));
      is_connected_ = false;
      if (is_quick_ == is_below_relay_) break;
      fresh_socket();  // options of a socket that has connected are fixed
      connect();
      break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      refused_by_parent(
          now_ns,
          fmt::format("does not allow our key {}; there: sluiced keys allow --dir ITS-KEYS {} "
                      "PUBLICFILE, then reload it",
                      hex(public_key_), name_));
      break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      refused_by_parent(now_ns, has_keys_ ? "speaks without keys" : "wants keys");
      break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      // The library tries again by itself, each second: one line a minute is enough.
      if (now_ns < complain_after_ns_) break;
      complain_after_ns_ = now_ns + 60'000'000'000;
      lines_.push_back(
          fmt::format("{} ends the handshake{}", here().address,
                      has_keys_ ? "; is parent.pub its key?" : "; does it want keys?"));
      break;
    default:
      break;
  }
}

/// 5 s, 10 s … 60 s, give or take a half: many nodes must not come back in step.
void dealer::refused_by_parent(std::int64_t now_ns, std::string const& why) {
  target& t = here();
  t.pause_ns = std::clamp(t.pause_ns * 2, options_.retry_first_ns, options_.retry_most_ns);
  std::uniform_int_distribution<std::int64_t> spread(t.pause_ns / 2, t.pause_ns / 2 * 3);
  std::int64_t const pause_ns = spread(random_);
  t.not_before_ns = now_ns + pause_ns;
  lines_.push_back(fmt::format("{} {}; trying again in {} s", t.address, why,
                               (pause_ns + 999'999'999) / 1'000'000'000));
  fresh_socket();
}

// ---- messages ----

std::optional<std::pair<envelope, message>> dealer::receive() {
  for (;;) {
    zmq_frame body;
    if (!body.receive(socket_.get())) return {};
    bool const is_single = !body.more();
    for (bool more = body.more(); more;) {
      zmq_frame rest;
      more = rest.receive(socket_.get()) && rest.more();
    }
    decoded d = is_single ? decode(body.bytes()) : decode({});
    bool const is_old =
        d.head.incarnation < newest_.incarnation ||
        (d.head.incarnation == newest_.incarnation && d.head.sequence <= newest_.sequence);
    if (d.refused != nullptr || is_old ||
        layout::senders[d.body.index()] == layout::sender::child) {
      ++refused_;
      continue;
    }
    newest_ = d.head;
    return std::pair(d.head, std::move(d.body));
  }
}

void dealer::complain_of_length(std::int64_t now_ns) {
  if (now_ns < complain_of_length_after_ns_) return;
  complain_of_length_after_ns_ = now_ns + 60'000'000'000;
  lines_.push_back(fmt::format("not sent to {}: a message of {} bytes, where {} are allowed",
                               here().address, buffer_.size(), longest_));
}

bool dealer::send(message const& m, std::uint64_t cycle) {
  encode({incarnation_, ++sequence_, cycle}, m, buffer_);
  if (auto const* const h = std::get_if<hello>(&m); h != nullptr && h->who == role::node)
    longest_ = most_bytes_node;
  if (buffer_.size() > longest_) {
    complain_of_length(boot_ns());
    return false;
  }
  while (zmq_send(socket_.get(), buffer_.data(), buffer_.size(), ZMQ_DONTWAIT) < 0)
    if (zmq_errno() != EINTR) return false;
  return true;
}

}  // namespace

std::unique_ptr<child_socket> child_socket::make(context& c,
                                                 std::vector<std::string> const& parents,
                                                 security const* keys, std::uint64_t incarnation,
                                                 child_options const& options) {
  return std::make_unique<dealer>(dynamic_cast<zmq_context&>(c), parents, keys, incarnation,
                                  options);
}

}  // namespace sluice::wire
