// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/descriptor.h"
#include "base/error.h"
#include "runtime/address.h"
#include "runtime/dashboard.h"
#include "runtime/fresh_look.h"
#include "runtime/http_peer.h"
#include "runtime/http_stream.h"

namespace sluice::runtime {

namespace {

constexpr char const* content_type = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::size_t threads = 64;  // a connection has one until it ends
constexpr int backlog = 1024;        // the library's own, 5, one user would keep full
constexpr std::chrono::seconds again{10};

/// Not the library's own choice, SO_REUSEPORT: two daemons would share a port without a word.
void only_reuse_address(int fd) {
  int const yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

/// The library's server, with places for connections. Who has too many is told so at once.
class bounded_server final : public httplib::Server {
 public:
  bounded_server(fresh_look* looks, owner_lookup owner_of)
      : looks_(looks), owner_of_(std::move(owner_of)) {}

  void widen_backlog() { ::listen(svr_sock_, backlog); }

 private:
  bool process_and_close_socket(int socket) override {
    descriptor const closes(socket);
    auto const who = peer_of(socket, owner_of_);
    if (!who) return false;
    if (!places_.enter(*who)) return refuse(socket);
    http_stream stream(socket);
    bool is_over = true;
    bool const done = process_request(stream, true, is_over, [this](auto& q) { begin(q); });
    shutdown(socket, SHUT_RDWR);
    places_.leave(*who);
    return done;
  }

  /// Before anything is answered. An answer is sent whole: a request may name a range thousands of
  /// times, and the library would build an answer of as many parts. Ranges may be ignored.
  void begin(httplib::Request& q) const {
    q.ranges.clear();
    if (looks_ != nullptr) looks_->ask();
  }

  static bool refuse(int socket) {
    constexpr std::string_view said =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
        "Content-Type: text/plain\r\nContent-Length: 43\r\n\r\ntoo many connections at once: try "
        "it again\n";
    (void)!send(socket, said.data(), said.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(socket, SHUT_WR);
    return false;
  }

  fresh_look* const looks_;
  owner_lookup const owner_of_;
  peer_places places_{threads};
};

class server : public metrics_server {
 public:
  server(std::string const& address, metric_table const& table, dashboard const* board,
         fresh_look* looks, owner_lookup owner_of)
      : http_(looks, std::move(owner_of)) {
    auto const [host, port] = host_and_port(address, "--metrics " + address);
    http_.new_task_queue = [] { return new httplib::ThreadPool(threads); };
    http_.set_socket_options(only_reuse_address);
    http_.set_payload_max_length(0);
    http_.Get("/metrics", [&table](auto const&, httplib::Response& r) {
      r.set_content(table.text() + process_metrics(), content_type);
    });
    http_.Get("/health", [&table](auto const&, httplib::Response& r) {
      std::string why;
      bool const healthy = table.health(why);
      r.status = healthy ? 200 : 503;
      r.set_content((healthy ? "ok" : "not healthy") + (why.empty() ? "" : ": " + why) + "\n",
                    "text/plain; charset=utf-8");
    });
    if (board != nullptr) board->serve_on(http_);
    int const bound = port == 0 ? http_.bind_to_any_port(host.c_str())
                      : http_.bind_to_port(host.c_str(), port) ? port
                                                               : -1;
    is_waiting_ = bound <= 0 && port != 0 && is_of_this_machine(host);
    if (bound <= 0 && !is_waiting_)
      throw sluice_error(
          fmt::format("--metrics {}: cannot listen there; choose another port, or "
                      "--metrics none",
                      address));
    int const at = is_waiting_ ? port : bound;
    address_ = host.find(':') == host.npos ? fmt::format("{}:{}", host, at)
                                           : fmt::format("[{}]:{}", host, at);
    runner_ = std::thread([this, host = host, port = port] {
      if (!is_waiting_ || wait_for(host, port)) {
        http_.widen_backlog();
        http_.listen_after_bind();
      }
      has_ended_ = true;
    });
  }

  ~server() override {
    {
      std::lock_guard const held(mutex_);
      is_over_ = true;
    }
    ends_.notify_all();
    // stop() before the accept loop runs would be lost.
    while (!http_.is_running() && !has_ended_) std::this_thread::yield();
    http_.stop();
    runner_.join();
  }

  std::string const& address() const override { return address_; }
  bool is_waiting() const override { return is_waiting_; }

 private:
  static bool is_of_this_machine(std::string const& host) {
    httplib::Server probe;
    return probe.bind_to_any_port(host.c_str()) > 0;
  }

  /// False: the server has ended before the port was free.
  bool wait_for(std::string const& host, int port) {
    std::unique_lock held(mutex_);
    do {
      if (ends_.wait_for(held, again, [this] { return is_over_; })) return false;
    } while (!http_.bind_to_port(host.c_str(), port));
    is_waiting_ = false;
    return true;
  }

  bounded_server http_;
  std::string address_;
  std::atomic<bool> is_waiting_ = false, has_ended_ = false;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool is_over_ = false;
  std::thread runner_;
};

/// Fields of /proc/self/stat from `state` on: the name before may hold blanks.
std::vector<std::string> stat_fields() {
  std::ifstream in("/proc/self/stat");
  std::string text;
  std::getline(in, text);
  std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::vector<std::string> out;
  for (std::string word; rest >> word;) out.push_back(word);
  return out;
}

double boot_time() {
  std::ifstream in("/proc/stat");
  for (std::string word; in >> word;)
    if (double when = 0; word == "btime" && in >> when) return when;
  return 0;
}

void put(std::string& out, char const* name, char const* kind, char const* help, double value) {
  out += fmt::format("# HELP process_{0} {2}\n# TYPE process_{0} {1}\nprocess_{0} {3:.15g}\n", name,
                     kind, help, value);
}

}  // namespace

std::unique_ptr<metrics_server> metrics_server::open(std::string const& address,
                                                     metric_table const& table,
                                                     dashboard const* board, fresh_look* looks,
                                                     owner_lookup owner_of) {
  return std::make_unique<server>(address, table, board, looks, std::move(owner_of));
}

std::string process_metrics() {
  auto const stat = stat_fields();
  if (stat.size() < 22) return {};  // no /proc: nothing to say
  auto const number = [&](std::size_t field) {
    return std::strtod(stat[field - 3].c_str(), nullptr);
  };
  double const hertz = static_cast<double>(sysconf(_SC_CLK_TCK));
  double const page = static_cast<double>(sysconf(_SC_PAGESIZE));
  std::size_t descriptors = 0;
  std::error_code failed;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", failed);
       !failed && it != std::filesystem::directory_iterator(); it.increment(failed))
    ++descriptors;
  rlimit most = {};
  getrlimit(RLIMIT_NOFILE, &most);
  std::string out;
  put(out, "cpu_seconds_total", "counter", "CPU time used.", (number(14) + number(15)) / hertz);
  put(out, "resident_memory_bytes", "gauge", "Resident memory.", number(24) * page);
  put(out, "virtual_memory_bytes", "gauge", "Virtual memory.", number(23));
  put(out, "threads", "gauge", "Threads.", number(20));
  put(out, "open_fds", "gauge", "Open file descriptors.", static_cast<double>(descriptors));
  put(out, "max_fds", "gauge", "Most file descriptors there may be.",
      static_cast<double>(most.rlim_cur));
  put(out, "start_time_seconds", "gauge", "When the process started.",
      boot_time() + number(22) / hertz);
  return out;
}

}  // namespace sluice::runtime
