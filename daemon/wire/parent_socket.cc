// SPDX-License-Identifier: Apache-2.0
// The side that binds. Who speaks is decided by the key of the connection (User-Id), never by what
// the message says; which connection is a child's is decided by its newest hello. Routing ids are
// the ROUTER's own invention and prove nothing.
#include <fmt/format.h>

#include <cerrno>
#include <deque>
#include <unordered_map>

#include "base/error.h"
#include "wire/allowance.h"
#include "wire/context.h"
#include "wire/layout.h"

namespace sluice::wire {

namespace {

constexpr unsigned most_refused_in_a_row = 2000;
constexpr std::size_t most_plain_names = 20000;
constexpr std::size_t most_complaints = 100;

struct peer {
  key id{};
  std::string name;
  role who = role::node;
  bool may_ask = true;
};

struct child_record {
  std::string name;
  role who = role::node;
  std::string connection;  // routing id; empty: none has said hello
  std::string user;        // key of that connection, in hex; empty with plain
  std::uint64_t incarnation = 0, sequence = 0;
  std::int64_t heard_ns = 0;
  unsigned faults = 0;
  std::int64_t faults_since_ns = 0, muted_until_ns = 0, complain_after_ns = 0;
  peer_counts counts;
  allowance may_say;
};

bool is_newer(envelope const& head, child_record const& r) {
  return std::pair(head.incarnation, head.sequence) > std::pair(r.incarnation, r.sequence);
}

std::string reachable(std::string address) {
  for (std::string const any : {"://0.0.0.0:", "://[::]:"})
    if (auto const at = address.find(any); at != std::string::npos)
      address.replace(at, any.size(), "://127.0.0.1:");
  return address;
}

class router final : public parent_socket {
 public:
  router(zmq_context& c, std::string const& address, security const* keys,
         std::uint64_t incarnation, parent_options const& options);
  ~router() override {
    if (list_) c_.remove_domain(domain_);
  }

  void* zmq_handle() override { return socket_.get(); }
  std::string address() const override { return address_; }
  std::optional<incoming> receive() override;
  bool send(std::uint32_t child, message const& m, std::uint64_t cycle) override;
  void drop(std::uint32_t child) override { disconnect(records_.at(child)); }
  void reload(security const* keys) override;
  peer_counts const& counts() const override { return counts_; }
  peer_counts const& counts(std::uint32_t child) const override {
    return records_.at(child).counts;
  }
  std::string complaint() override;

 private:
  struct arrival {
    std::string connection;
    peer const* who = nullptr;      // by key; null with plain
    child_record* child = nullptr;  // null: a stranger, plain only
    decoded said;
  };

  void set_options(security const* keys);
  std::optional<incoming> consider(arrival& a, std::span<std::byte const> bytes);
  bool identify(arrival& a, char const* user_id);
  bool is_registered(arrival& a, std::size_t bytes);
  bool is_from_child(arrival const& a);
  bool register_child(arrival& a);
  std::string objection(arrival& a, hello const& h);
  bool is_displaced(arrival const& a, child_record const& r) const;
  void refuse_displaced(arrival const& a, child_record& r);
  child_record& record_of(std::string const& name);
  void disconnect(child_record& r);
  void count(child_record* r, std::uint64_t peer_counts::*what);
  bool is_heard(child_record& r, std::size_t bytes);
  void fault(arrival const& a, std::uint64_t peer_counts::*what, wire::fault code,
             std::string const& why);
  void complain(child_record* r, std::string const& line);
  bool send_to(std::string const& connection, message const& m, std::uint64_t cycle);

  zmq_context& c_;
  parent_options const options_;
  std::uint64_t const incarnation_;
  std::uint64_t sequence_ = static_cast<std::uint64_t>(boot_ns());
  zmq_socket socket_;
  std::string address_;
  std::string domain_;
  std::shared_ptr<key_list> list_;  // null: plain
  std::uint64_t told_refused_ = 0;
  std::unordered_map<std::string, peer> peers_;                 // by key in hex, as allowed now
  std::deque<child_record> records_;                            // by child number
  std::unordered_map<std::string, std::uint32_t> numbers_;      // by name
  std::unordered_map<std::string, std::uint32_t> connections_;  // by routing id
  peer_counts counts_;
  std::deque<std::string> complaints_;
  std::int64_t strangers_complain_after_ns_ = 0;
  std::vector<std::byte> buffer_;
};

router::router(zmq_context& c, std::string const& address, security const* keys,
               std::uint64_t incarnation, parent_options const& options)
    : c_(c), options_(options), incarnation_(incarnation), socket_(c.get(), ZMQ_ROUTER) {
  if (keys == nullptr) require_loopback(address);
  if (keys != nullptr && !address.starts_with("tcp://"))
    throw usage_error(address + ": keys need an address like tcp://0.0.0.0:7421");
  set_options(keys);
  if (zmq_bind(socket_.get(), address.c_str()) != 0) {
    std::string const why = fmt::format("{}: {}", address, zmq_strerror(zmq_errno()));
    if (zmq_errno() == EINVAL || zmq_errno() == ENODEV)
      throw usage_error(why + "; an address looks like tcp://0.0.0.0:7421");
    throw sluice_error(why);
  }
  address_ = socket_.last_endpoint();
  if (keys == nullptr) return;
  std::set<key> allowed;
  for (auto const& [k, who] : keys->allowed) allowed.insert(k);
  try_lock(c_, *list_, allowed, reachable(address_), keys->public_key);
  told_refused_ = list_->refused();
  reload(keys);
}

void router::set_options(security const* keys) {
  set_common_options(socket_);
  socket_.set(ZMQ_BACKLOG, 4096);
  socket_.set(ZMQ_SNDHWM, 16);
  // A full queue stops the reading of a connection. When that one then ends with a heartbeat still
  // to be read, libzmq up to 4.3.5 aborts: any child could end us so. What floods is dropped.
  socket_.set(ZMQ_RCVHWM, 0);
  socket_.set(ZMQ_ROUTER_MANDATORY, 1);
  socket_.set(ZMQ_ROUTER_HANDOVER, 0);
  // No heartbeats: libzmq looks through all timers of a socket to cancel one, on every message.
  socket_.set(ZMQ_TCP_KEEPALIVE, 1);
  socket_.set(ZMQ_TCP_KEEPALIVE_IDLE, 10);
  socket_.set(ZMQ_TCP_KEEPALIVE_INTVL, 2);
  socket_.set(ZMQ_TCP_KEEPALIVE_CNT, 3);
  if (keys == nullptr) return;
  domain_ = "sluice." + c_.fresh_name("parent");
  list_ = c_.add_domain(domain_);
  serve_curve(socket_, domain_, keys->secret_key);
}

void router::reload(security const* keys) {
  if (!list_ || keys == nullptr) return;
  std::set<key> allowed;
  peers_.clear();
  for (auto const& [k, who] : keys->allowed) {
    allowed.insert(k);
    peers_[hex(k)] = {k, who.name, who.who, who.may_ask};
  }
  list_->replace(std::move(allowed));
  for (child_record& r : records_) {
    auto const found = peers_.find(r.user);
    if (found == peers_.end() || found->second.name != r.name || found->second.who != r.who)
      disconnect(r);
  }
}

// ---- receiving ----

std::optional<parent_socket::incoming> router::receive() {
  for (unsigned refused = 0; refused < most_refused_in_a_row; ++refused) {
    zmq_frame id, body;
    if (!id.receive(socket_.get())) return {};
    if (!id.more() || !body.receive(socket_.get())) continue;
    arrival a;
    a.connection = id.text();
    bool const is_single = !body.more();
    for (bool more = body.more(); more;) {
      zmq_frame rest;
      more = rest.receive(socket_.get()) && rest.more();
    }
    if (!identify(a, body.user_id())) continue;
    if (a.child != nullptr && !is_heard(*a.child, body.bytes().size())) continue;
    if (auto in = consider(a, is_single ? body.bytes() : std::span<std::byte const>())) return in;
  }
  return {};
}

/// Whose connection it is: by key, or with plain by the hello it said.
bool router::identify(arrival& a, char const* user_id) {
  auto const known = connections_.find(a.connection);
  if (!list_) {
    if (known != connections_.end()) a.child = &records_[known->second];
    return true;
  }
  auto const found = user_id == nullptr ? peers_.end() : peers_.find(user_id);
  if (found == peers_.end()) {  // taken off the list while connected
    count(nullptr, &peer_counts::refused_unknown_key);
    complain(nullptr, fmt::format("a connection with key {} is no longer allowed",
                                  user_id == nullptr ? "(none)" : user_id));
    return false;
  }
  a.who = &found->second;
  a.child = &record_of(a.who->name);
  return true;
}

std::optional<parent_socket::incoming> router::consider(arrival& a,
                                                        std::span<std::byte const> bytes) {
  a.said = decode(bytes);
  if (a.said.refused != nullptr) {
    fault(a, &peer_counts::refused_malformed,
          a.said.other_major ? fault::version : fault::malformed, a.said.refused);
    return {};
  }
  if (!is_from_child(a)) return {};
  bool const is_hello = std::holds_alternative<hello>(a.said.body);
  if (is_hello ? !register_child(a) : !is_registered(a, bytes.size())) return {};
  child_record& r = *a.child;
  r.sequence = a.said.head.sequence;
  r.heard_ns = boot_ns();
  if (std::holds_alternative<bye>(a.said.body)) disconnect(r);
  bool const may_ask = a.who == nullptr || a.who->may_ask;
  return incoming{numbers_.at(r.name),   &r.name, r.who, may_ask, a.said.head,
                  std::move(a.said.body)};
}

bool router::is_from_child(arrival const& a) {
  bool const is_parents = layout::senders[a.said.body.index()] == layout::sender::parent;
  bool const is_peer = a.who == nullptr || a.who->who == role::node || a.who->who == role::relay;
  if (!is_parents && is_peer) return true;
  fault(a, &peer_counts::refused_role, fault::not_allowed, "not a message of a child");
  return false;
}

bool router::is_registered(arrival& a, std::size_t bytes) {
  auto const known = connections_.find(a.connection);
  if (known == connections_.end()) {
    send_to(a.connection, restart{}, 0);
    return false;
  }
  child_record& r = *a.child;
  if (a.said.head.incarnation != r.incarnation || a.said.head.sequence <= r.sequence) {
    fault(a, &peer_counts::refused_replay, fault::malformed, "older than what came before");
    return false;
  }
  if (r.who == role::node && bytes > most_bytes_node) {
    fault(a, &peer_counts::refused_malformed, fault::malformed, "too long for a node");
    return false;
  }
  return true;
}

/// Empty: this connection may be the child's.
std::string router::objection(arrival& a, hello const& h) {
  if (a.who != nullptr && h.who != a.who->who) return "the key belongs to another role";
  if (!is_peer_name(h.name)) return "not a name: letters, digits, '.', '_', '-'";
  if (a.who != nullptr && h.name != a.who->name)
    return fmt::format(
        "you say {0}, the key is {1}: start with --name {1}, or allow the key as {0}", h.name,
        a.who->name);
  if (h.who != role::node && h.who != role::relay) return "not a role of a child";
  if (!numbers_.contains(h.name) && !list_ && numbers_.size() >= most_plain_names)
    return "too many names";
  child_record const& r = record_of(h.name);
  if (r.connection == a.connection && !is_newer(a.said.head, r))
    return "older than what came before";
  return {};
}

/// Its clock went back, or two machines have one name: the one that is heard keeps it.
bool router::is_displaced(arrival const& a, child_record const& r) const {
  if (r.connection.empty() || is_newer(a.said.head, r)) return false;
  return boot_ns() - r.heard_ns <= options_.silent_ns;
}

/// It is told each time, for it must not use what the newer one lends: with keys, for without them
/// any process may be the newer one. And it is no fault of the newer one, which would else be
/// ignored with it.
void router::refuse_displaced(arrival const& a, child_record& r) {
  count(&r, &peer_counts::refused_name);
  complain(&r, fmt::format("{}: two processes have this name, and the older one is refused: is its "
                           "key on two machines? Together they may use more than one node's part",
                           r.name));
  send_to(a.connection,
          error{list_ ? fault::displaced : fault::not_allowed,
                "a newer process of this name is connected; is its key on two machines?"},
          0);
}

bool router::register_child(arrival& a) {
  auto const& h = std::get<hello>(a.said.body);
  if (std::string const why = objection(a, h); !why.empty()) {
    fault(a, &peer_counts::refused_name, fault::not_allowed, why);
    return false;
  }
  child_record& r = record_of(h.name);
  if (is_displaced(a, r)) {
    refuse_displaced(a, r);
    return false;
  }
  if (auto const before = connections_.find(a.connection); before != connections_.end())
    disconnect(records_[before->second]);
  disconnect(r);
  r.who = h.who;
  r.connection = a.connection;
  r.user = a.who == nullptr ? std::string() : hex(a.who->id);
  r.incarnation = a.said.head.incarnation;
  connections_[r.connection] = numbers_.at(r.name);
  a.child = &r;
  return true;
}

child_record& router::record_of(std::string const& name) {
  auto const [at, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(records_.size()));
  if (is_new) records_.emplace_back().name = name;
  return records_[at->second];
}

void router::disconnect(child_record& r) {
  connections_.erase(r.connection);
  r.connection.clear();
}

// ---- faults ----

void router::count(child_record* r, std::uint64_t peer_counts::*what) {
  ++(counts_.*what);
  if (r != nullptr) ++(r->counts.*what);
}

/// Before its message is read.
bool router::is_heard(child_record& r, std::size_t bytes) {
  std::int64_t const now_ns = boot_ns();
  if (now_ns < r.muted_until_ns) {
    count(&r, &peer_counts::refused_flood);
    return false;
  }
  if (r.may_say.spend(r.who, bytes, options_.terms, now_ns)) return true;
  count(&r, &peer_counts::refused_excess);
  complain(&r, fmt::format("{}: says more than a child may, what is beyond it is dropped", r.name));
  return false;
}

void router::fault(arrival const& a, std::uint64_t peer_counts::*what, wire::fault code,
                   std::string const& why) {
  count(a.child, what);
  std::int64_t const now_ns = boot_ns();
  bool tell = a.child == nullptr;
  if (a.child != nullptr) {
    child_record& r = *a.child;
    if (now_ns - r.faults_since_ns > options_.mute_ns) {
      r.faults = 0;
      r.faults_since_ns = now_ns;
    }
    tell = r.faults == 0;
    if (++r.faults > options_.most_faults) {
      r.muted_until_ns = now_ns + options_.mute_ns;
      r.faults = 0;
      complain(&r, fmt::format("{}: more than {} faults, ignored for a while (the last: {})",
                               r.name, options_.most_faults, why));
      send_to(a.connection, error{fault::too_many_faults, why}, 0);
      return;
    }
  }
  complain(a.child, fmt::format("{}: refused a message: {}",
                                a.child == nullptr ? "a stranger" : a.child->name, why));
  if (tell) send_to(a.connection, error{code, why}, 0);
}

void router::complain(child_record* r, std::string const& line) {
  std::int64_t& after_ns = r != nullptr ? r->complain_after_ns : strangers_complain_after_ns_;
  std::int64_t const now_ns = boot_ns();
  if (now_ns < after_ns || complaints_.size() >= most_complaints) return;
  after_ns = now_ns + 60'000'000'000;
  complaints_.push_back(line);
}

std::string router::complaint() {
  if (list_ && list_->refused() != told_refused_) {
    counts_.refused_unknown_key += list_->refused() - told_refused_;
    told_refused_ = list_->refused();
    complain(nullptr, fmt::format("refused {}: it is not in `allowed`", list_->last_refused()));
  }
  if (complaints_.empty()) return {};
  std::string line = std::move(complaints_.front());
  complaints_.pop_front();
  return line;
}

// ---- sending ----

bool router::send(std::uint32_t child, message const& m, std::uint64_t cycle) {
  child_record& r = records_.at(child);
  if (!r.connection.empty() && send_to(r.connection, m, cycle)) return true;
  if (zmq_errno() == EHOSTUNREACH) disconnect(r);
  count(&r, &peer_counts::send_failed);
  return false;
}

bool router::send_to(std::string const& connection, message const& m, std::uint64_t cycle) {
  encode({incarnation_, ++sequence_, cycle}, m, buffer_);
  if (buffer_.size() > most_bytes) return false;
  while (zmq_send(socket_.get(), connection.data(), connection.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT) <
         0)
    if (zmq_errno() != EINTR) return false;
  // The first frame chose a pipe with room: the second cannot be refused any more.
  while (zmq_send(socket_.get(), buffer_.data(), buffer_.size(), ZMQ_DONTWAIT) < 0)
    if (zmq_errno() != EINTR) return false;
  return true;
}

}  // namespace

std::unique_ptr<parent_socket> parent_socket::bind(context& c, std::string const& address,
                                                   security const* keys, std::uint64_t incarnation,
                                                   parent_options const& options) {
  return std::make_unique<router>(dynamic_cast<zmq_context&>(c), address, keys, incarnation,
                                  options);
}

}  // namespace sluice::wire
