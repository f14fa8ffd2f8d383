// SPDX-License-Identifier: Apache-2.0
// One controller and N simulated children over loopback: how long a whole control cycle takes.
// The controller is the daemon's own code (wire::parent_socket, cluster::arbiter); only the moment
// of a cycle is ours: all children report, then it allocates and answers, then all acknowledge.
//
//   control --children N --streams S --jobs J --transport curve|plain|epoll [--relays] [--cycles C]
//           [--restart]
// Prints one line of JSON. control.py makes the table. The allocator is the daemon's:
// build: -ljemalloc
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>

#include "cluster/arbiter.h"
#include "policy/policy.h"
#include "test/bench/control_fleet_impl.h"
#include "test/bench/control_links.h"
#include "wire/socket.h"

namespace sluice::bench {

namespace {

struct options {
  fleet_options fleet;
  unsigned cycles = 20;
  bool restart = false;
};

struct arrival {
  std::uint32_t child;
  std::string name;
  wire::message body;
};

/// The controller's side of a transport.
class listener : public cluster::outbox {
 public:
  virtual std::string address() const = 0;
  virtual std::optional<arrival> receive() = 0;
  virtual void wait(int ms) = 0;
};

class zmq_listener final : public listener {
 public:
  zmq_listener(wire::context& c, std::string const& address, wire::security const* keys,
               std::uint64_t incarnation)
      : socket_(wire::parent_socket::bind(c, address, keys, incarnation)) {}
  std::string address() const override { return socket_->address(); }
  std::optional<arrival> receive() override {
    auto m = socket_->receive();
    if (!m) return {};
    return arrival{m->child, *m->name, std::move(m->body)};
  }
  void wait(int ms) override {
    zmq_pollitem_t item = {socket_->zmq_handle(), 0, ZMQ_POLLIN, 0};
    zmq_poll(&item, 1, ms);
  }
  bool send(std::uint32_t child, wire::message const& m) override {
    return socket_->send(child, m, 0);
  }

 private:
  std::unique_ptr<wire::parent_socket> socket_;
};

/// The floor: epoll, TCP, the same messages.
class epoll_listener final : public listener {
 public:
  epoll_listener() {
    listen_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at = address_of(":0");
    socklen_t size = sizeof at;
    if (bind(listen_, reinterpret_cast<sockaddr*>(&at), size) != 0 || listen(listen_, 4096) != 0)
      throw sluice_error("cannot listen");
    getsockname(listen_, reinterpret_cast<sockaddr*>(&at), &size);
    address_ = fmt::format("tcp://127.0.0.1:{}", ntohs(at.sin_port));
    poll_ = epoll_create1(0);
    add(listen_, ~0u);
  }
  std::string address() const override { return address_; }
  std::optional<arrival> receive() override {
    for (;;) {
      while (at_ < ready_.size()) {
        peer& p = peers_[ready_[at_]];
        std::span<std::byte const> bytes;
        if (!p.in.next(bytes)) {
          ++at_;
          continue;
        }
        wire::decoded d = wire::decode(bytes);
        if (d.refused != nullptr) continue;
        if (auto const* h = std::get_if<wire::hello>(&d.body)) p.name = h->name;
        return arrival{ready_[at_], p.name, std::move(d.body)};
      }
      if (!poll(0)) return {};
    }
  }
  void wait(int ms) override { poll(ms); }
  bool send(std::uint32_t child, wire::message const& m) override {
    wire::encode({1, ++sequence_, 0}, m, bytes_);
    return send_frame(peers_[child].fd, bytes_);
  }

 private:
  struct peer {
    int fd;
    frame_buffer in;
    std::string name;
  };
  void add(int fd, std::uint32_t id) {
    epoll_event e = {EPOLLIN, {.u32 = id}};
    epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &e);
  }
  bool poll(int ms) {
    epoll_event events[256];
    int const n = epoll_wait(poll_, events, 256, ms);
    if (at_ >= ready_.size()) ready_.clear(), at_ = 0;
    for (int i = 0; i < n; ++i) {
      if (events[i].data.u32 != ~0u) {
        peer& p = peers_[events[i].data.u32];
        if (!p.in.read(p.fd)) epoll_ctl(poll_, EPOLL_CTL_DEL, p.fd, nullptr);
        ready_.push_back(events[i].data.u32);
        continue;
      }
      int const fd = accept(listen_, nullptr, nullptr), on = 1;
      if (fd < 0) continue;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      peers_.push_back({fd, {}, {}});
      add(fd, static_cast<std::uint32_t>(peers_.size() - 1));
    }
    return n > 0;
  }

  int listen_, poll_;
  std::string address_;
  std::vector<peer> peers_;
  std::vector<std::uint32_t> ready_;
  std::size_t at_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<std::byte> bytes_;
};

cluster::policy_table make_plan(unsigned children) {
  std::string const text = fmt::format(
      R"({{"targets": {{"t": {{"path": "/", "capacity": {{"metadata": "1M/s"}}}}}},
          "classes": {{"a": {{"t": {{"metadata": {{"weight": 1}}}}}}}},
          "control": {{"nodes": "n[0-{}]", "default_class": "a"}}}})",
      children - 1);
  return cluster::policy_table_of(policy::parse_policy(text, "bench"), text);
}

double seconds_of(timeval const& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; }

double cpu_s() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return seconds_of(u.ru_utime) + seconds_of(u.ru_stime);
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * 4096 / (1 << 20);
}

class controller {
 public:
  controller(options const& o, cluster::policy_table const& p, std::uint64_t incarnation)
      : arbiter_(
            {.who = wire::role::cluster, .name = "bench", .time = o.fleet.time, .spacing_ns = 0}, p,
            incarnation, boot_ns()) {}

  /// Takes in messages until `reports` reports have come.
  void collect(listener& l, unsigned reports) {
    unsigned seen = 0;
    std::int64_t const give_up = boot_ns() + 60'000'000'000;
    while (seen < reports) {
      auto m = l.receive();
      if (!m) {
        if (boot_ns() > give_up)
          throw sluice_error(fmt::format("{} of {} reports came", seen, reports));
        l.wait(100);
        continue;
      }
      seen += take(l, *m);
    }
  }

  /// Takes in whatever is there.
  void take_all(listener& l) {
    while (auto m = l.receive()) take(l, *m);
  }

  void answer(listener& l) {
    arbiter_.allocate_soon();
    arbiter_.settle(boot_ns(), l);
  }

 private:
  /// True for a report.
  bool take(listener& l, arrival const& m) {
    std::int64_t const now = boot_ns();
    if (auto* h = std::get_if<wire::hello>(&m.body))
      arbiter_.hello(m.child, *h, {m.name, 0}, now, l);
    auto* const r = std::get_if<wire::report>(&m.body);
    if (r != nullptr) arbiter_.report(m.child, *r, now);
    return r != nullptr;
  }

  cluster::arbiter arbiter_;
};

/// Processes of simulated children: a child takes two descriptors of its process.
constexpr unsigned most_per_crew = 5000;

struct crew {
  pid_t pid = 0;
  int orders = -1, answers = -1;
  bool is_done = true;
  double cpu_s = 0;
};

/// What a crew does: an order per byte from the pipe, an answer per order.
void be_crew(fleet_options const& o, int orders, int answers) {
  char address[128] = {};
  if (read(orders, address, sizeof address) <= 0) _exit(1);
  fleet f(o, address);
  for (char what; read(orders, &what, 1) == 1;) {
    if (what == 'h') f.say_hello();
    if (what == 'p') f.prepare();
    if (what == 'r') f.round();
    if (what == 'b') f.come_back();
    double const cpu = cpu_s();
    if (write(answers, &cpu, sizeof cpu) != sizeof cpu) break;
  }
  _exit(0);
}

struct figures {
  std::vector<double> whole, collect, answer;  // ms
  double cpu = 0, fleet_cpu = 0, mib_before = 0, mib = 0, connect_s = 0, back_s = 0;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

class bench {
 public:
  explicit bench(options const& o) : o_(o) {
    if (o_.fleet.transport == "curve") {
      auto const own = wire::new_key_pair();
      keys_.name = "bench";
      keys_.public_key = own.public_key;
      keys_.secret_key = own.secret_key;
      o_.fleet.server = own.public_key;
      for (unsigned i = 0; i < o_.fleet.children; ++i) {
        o_.fleet.keys.push_back(wire::new_key_pair());
        keys_.allowed[o_.fleet.keys[i].public_key] = {
            child_name(i), o_.fleet.relays ? wire::role::relay : wire::role::node};
      }
    }
    plan_ = make_plan(o_.fleet.children);
    o_.fleet.policy_hash = plan_.hash;
    for (unsigned at = 0; at < o_.fleet.children; at += most_per_crew) hire(at);
    if (o_.fleet.transport != "epoll") context_ = wire::make_context();
  }
  ~bench() {
    for (crew const& c : crews_) close(c.orders);
    for (crew const& c : crews_) waitpid(c.pid, nullptr, 0);
  }

  void run() {
    figures f;
    f.mib_before = resident_mib();
    auto l = open("tcp://127.0.0.1:*");
    auto c = std::make_unique<controller>(o_, plan_, 1);
    char address[128] = {};
    std::snprintf(address, sizeof address, "%s", l->address().c_str());
    for (crew const& to : crews_)
      if (write(to.orders, address, sizeof address) != sizeof address) throw sluice_error("pipe");
    std::int64_t const t0 = boot_ns();
    order('h');
    serve_until_done(*l, *c);
    f.connect_s = double(boot_ns() - t0) / 1e9;
    for (unsigned i = 0; i < 3; ++i) cycle(*l, *c, f);  // first contact, first grants
    f.whole.clear();
    f.collect.clear();
    f.answer.clear();
    double const before = cpu_s(), fleet_before = fleet_cpu_s();
    for (unsigned i = 0; i < o_.cycles; ++i) cycle(*l, *c, f);
    f.cpu = (cpu_s() - before) / o_.cycles * 1e3;
    f.fleet_cpu = (fleet_cpu_s() - fleet_before) / o_.cycles * 1e3;
    f.mib = resident_mib();
    if (o_.restart) f.back_s = restart(std::move(l), std::move(c));
    print(f);
  }

 private:
  /// Starts the process of the children from `first` on.
  void hire(unsigned first) {
    fleet_options part = o_.fleet;
    part.first = first;
    part.children = std::min(most_per_crew, o_.fleet.children - first);
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0) throw sluice_error("pipe");
    pid_t const pid = fork();
    if (pid == 0) {
      close(down[1]);
      close(up[0]);
      for (crew const& other : crews_) close(other.orders);
      be_crew(part, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    fcntl(up[0], F_SETFL, O_NONBLOCK);
    crews_.push_back({pid, down[1], up[0]});
  }
  std::unique_ptr<listener> open(std::string const& address) {
    if (o_.fleet.transport == "epoll") return std::make_unique<epoll_listener>();
    auto const* keys = o_.fleet.transport == "curve" ? &keys_ : nullptr;
    return std::make_unique<zmq_listener>(*context_, address, keys, ++incarnation_);
  }
  void order(char what) {
    for (crew& c : crews_) {
      if (write(c.orders, &what, 1) != 1) throw sluice_error("the fleet is gone");
      c.is_done = false;
    }
  }
  bool fleet_is_done() {
    for (crew& c : crews_) c.is_done |= read(c.answers, &c.cpu_s, sizeof c.cpu_s) > 0;
    return std::all_of(crews_.begin(), crews_.end(), [](crew const& c) { return c.is_done; });
  }
  double fleet_cpu_s() const {
    double sum = 0;
    for (crew const& c : crews_) sum += c.cpu_s;
    return sum;
  }
  /// Serves whatever comes until the fleet says that its order is carried out.
  void serve_until_done(listener& l, controller& c) {
    while (!fleet_is_done()) {
      c.take_all(l);
      c.answer(l);
      l.wait(1);
    }
  }
  void cycle(listener& l, controller& c, figures& f) {
    order('p');
    while (!fleet_is_done()) usleep(100);
    std::int64_t const t0 = boot_ns();
    order('r');
    c.collect(l, o_.fleet.children);
    std::int64_t const t1 = boot_ns();
    c.answer(l);
    std::int64_t const t2 = boot_ns();
    c.collect(l, o_.fleet.children);
    std::int64_t const t3 = boot_ns();
    f.whole.push_back(double(t3 - t0) / 1e6);
    f.collect.push_back(double(t1 - t0) / 1e6);
    f.answer.push_back(double(t2 - t1) / 1e6);
    while (!fleet_is_done()) usleep(100);
  }
  /// The controller goes, and comes back after a second at the same address; seconds until all
  /// children are registered again, from its coming back.
  double restart(std::unique_ptr<listener> l, std::unique_ptr<controller> c) {
    std::string const address = l->address();
    l.reset();
    c.reset();
    order('b');
    usleep(1'000'000);
    std::int64_t const t0 = boot_ns();
    l = open(address);
    c = std::make_unique<controller>(o_, plan_, 2);
    serve_until_done(*l, *c);
    return double(boot_ns() - t0) / 1e9;
  }
  void print(figures const& f) {
    auto const worst = *std::max_element(f.whole.begin(), f.whole.end());
    fmt::print(
        R"({{"children": {}, "streams": {}, "jobs": {}, "transport": "{}", "relays": {}, )"
        R"("cycle_ms": {:.2f}, "worst_ms": {:.2f}, "collect_ms": {:.2f}, "answer_ms": {:.2f}, )"
        R"("cpu_ms": {:.2f}, "fleet_cpu_ms": {:.2f}, "kib_per_child": {:.1f}, )"
        R"("resident_mib": {:.0f}, "connect_s": {:.2f}, "back_s": {:.2f}}})"
        "\n",
        o_.fleet.children, o_.fleet.streams, o_.fleet.jobs, o_.fleet.transport, o_.fleet.relays,
        median(f.whole), worst, median(f.collect), median(f.answer), f.cpu, f.fleet_cpu,
        (f.mib - f.mib_before) * 1024 / o_.fleet.children, f.mib, f.connect_s, f.back_s);
  }

  options o_;
  wire::security keys_;
  cluster::policy_table plan_;
  std::unique_ptr<wire::context> context_;
  std::uint64_t incarnation_ = 0;
  std::vector<crew> crews_;
};

/// The controller has one for each child, a crew two.
void raise_descriptors(unsigned children) {
  rlimit r;
  getrlimit(RLIMIT_NOFILE, &r);
  rlim_t const wanted = std::max(children, 2 * std::min(children, most_per_crew)) + 1024;
  if (r.rlim_cur >= wanted) return;
  r.rlim_cur = wanted;
  r.rlim_max = std::max(r.rlim_max, wanted);
  if (setrlimit(RLIMIT_NOFILE, &r) != 0)
    throw sluice_error(fmt::format("{} children need {} descriptors", children, wanted));
}

}  // namespace

}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::bench::options o;
  CLI::App app("the control cycle of N simulated children");
  app.add_option("--children", o.fleet.children);
  app.add_option("--streams", o.fleet.streams, "per child");
  app.add_option("--jobs", o.fleet.jobs, "in all");
  app.add_option("--transport", o.fleet.transport)
      ->check(CLI::IsMember({"curve", "plain", "epoll"}));
  app.add_option("--cycles", o.cycles);
  app.add_flag("--relays", o.fleet.relays);
  app.add_flag("--restart", o.restart);
  CLI11_PARSE(app, argc, argv);
  try {
    sluice::bench::raise_descriptors(o.fleet.children);
    sluice::bench::bench(o).run();
    return 0;
  } catch (std::exception const& e) {
    fmt::print(stderr, "control: {}\n", e.what());
    return 1;
  }
}
