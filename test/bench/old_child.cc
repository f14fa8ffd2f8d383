// SPDX-License-Identifier: Apache-2.0
// A child of a plain controller that speaks an older minor version of the protocol: it says hello,
// its jobs and empty reports behind grants, and knows nothing of what came later. For
// test/daemon/epochs/after-old.sh.
//
//   old_child ADDRESS NAME node|relay MINOR JOB...     until SIGTERM, then it says bye
#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "wire/codec.h"
#include "wire/context.h"

namespace sluice::bench {

namespace {

volatile sig_atomic_t is_told_to_end = 0;

class old_child {
 public:
  old_child(void* context, char const* address, wire::hello hello, std::uint16_t minor)
      : socket_(context, ZMQ_DEALER), hello_(std::move(hello)), minor_(minor) {
    wire::set_common_options(socket_);
    socket_.set(ZMQ_LINGER, 500);
    if (zmq_connect(socket_.get(), address) != 0) throw sluice_error(zmq_strerror(zmq_errno()));
  }

  void send(wire::message const& m) {
    constexpr std::size_t minor_at = 12;  // of the header, see wire/README.md
    std::vector<std::byte> bytes;
    wire::encode({incarnation_, ++sequence_, 0}, m, bytes);
    std::memcpy(bytes.data() + minor_at, &minor_, sizeof minor_);
    zmq_send(socket_.get(), bytes.data(), bytes.size(), ZMQ_DONTWAIT);
  }

  void run(std::vector<std::string> const& jobs) {
    send(hello_);
    for (; is_told_to_end == 0; usleep(100'000)) {
      hear();
      wire::job_list list;
      for (std::string const& name : jobs) {
        wire::job_entry& e = list.jobs.emplace_back();
        e.uid = getuid();
        e.name = name;
        e.job = wire::job_key(e.uid, name);
      }
      if (!jobs.empty()) send(list);
      wire::report r;
      r.lease.child_incarnation = incarnation_;
      r.lease.t_child = static_cast<std::int64_t>(sequence_);
      r.lease.heard = heard_;
      send(r);
    }
    send(wire::bye{});
  }

 private:
  void hear() {
    for (wire::zmq_frame f; f.receive(socket_.get());) {
      wire::decoded const d = wire::decode(f.bytes());
      if (d.refused != nullptr) continue;
      if (std::holds_alternative<wire::restart>(d.body)) send(hello_);
      if (auto const* g = std::get_if<wire::grant>(&d.body))
        heard_ = {g->lease.parent_incarnation, g->lease.t_parent};
    }
  }

  wire::zmq_socket socket_;
  wire::hello hello_;
  std::uint16_t minor_;
  std::uint64_t incarnation_ = static_cast<std::uint64_t>(time(nullptr)), sequence_ = 0;
  lease::echo heard_;
};

}  // namespace

}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice;
  if (argc < 5) {
    fmt::print(stderr, "usage: old_child ADDRESS NAME node|relay MINOR JOB...\n");
    return 2;
  }
  signal(SIGTERM, [](int) { bench::is_told_to_end = 1; });
  bool const is_relay = std::strcmp(argv[3], "relay") == 0;
  void* const context = zmq_ctx_new();
  int status = 0;
  try {
    bench::old_child(context, argv[1],
                     {is_relay ? wire::role::relay : wire::role::node, 0, argv[2]},
                     static_cast<std::uint16_t>(std::atoi(argv[4])))
        .run({argv + 5, argv + argc});
  } catch (std::exception const& e) {
    fmt::print(stderr, "old_child: {}\n", e.what());
    status = 1;
  }
  zmq_ctx_term(context);
  return status;
}
