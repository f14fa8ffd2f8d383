// SPDX-License-Identifier: Apache-2.0
// A served log on a real file system of its own: the service, a program that asks it, and what a
// power cut, a dead daemon and recovery make of it. Needs root and loop devices.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "journal/boot.h"
#include "journal/file_disk.h"
#include "journal/recover.h"
#include "journal/service.h"
#include "lib/own_mounts.h"
#include "lib/scratch.h"
#include "order_guest.h"

namespace sluice::test {

/// Writes to the log fail from when it is told so.
class breaking_disk : public journal::file_disk {
 public:
  using file_disk::file_disk;
  std::atomic<bool> is_broken = false;
  int write_through(std::uint64_t offset, std::span<std::byte const> from) override {
    return is_broken ? EIO : file_disk::write_through(offset, from);
  }
};

struct served {
  // On a machine that is busy it is silent for a moment, and that is no test of ours.
  static constexpr std::uint64_t while_it_works_ns = 60'000'000'000;
  scratch holder;
  std::string dir = holder.dir + "/home", log = holder.dir + "/log", area = holder.dir + "/order";
  bool is_mounted = false;
  journal::service_rules rules;
  bool knows_boot = false;  // else every recovery is one after a restart of the machine
  std::optional<guest> program;
  std::optional<breaking_disk> disk;
  std::optional<journal::service> daemon;
  std::thread loop;
  std::atomic<bool> is_over = false, is_stopped = false;
  std::mutex asking;
  std::function<void()> question;  // for the loop, between two turns

  explicit served(journal::service_rules const& keep = {}) : rules(keep) {
    is_mounted = mount_ext4(holder.dir + "/image", "32M", dir);
    if (!is_mounted) return;
    serve_it();
  }
  /// The test makes the file system.
  struct unmounted {};
  explicit served(unmounted) {}
  void serve_it() {
    journal::make_log_file(log, 4 << 20, 60'000'000'000);
    program.emplace(area, true);
    begin();
  }
  ~served() {
    kill();
    if (is_mounted)
      std::system(("umount -l " + dir).c_str()) == 0 || std::printf("still mounted\n");
  }
  void begin() {
    disk.emplace(log, journal::file_disk::use::write);
    journal::superblock s = journal::read_slots(*disk).in_force;
    auto const boot = knows_boot ? journal::boot_id() : std::array<std::uint8_t, 16>{};
    REQUIRE(journal::continue_log(*disk, s, s.head, journal::random_salt(), {}, boot) == 0);
    daemon.emplace(*disk, s, rules);
    daemon->add(std::make_unique<journal::area>(area));
    is_over = false;
    program->silence_ns = while_it_works_ns;
    loop = std::thread([this] {
      while (!is_over) {
        answer();
        if (is_stopped)
          usleep(1000);
        else
          daemon->turn();
      }
    });
  }
  void answer() {
    std::lock_guard const held(asking);
    if (auto const q = std::exchange(question, nullptr)) q();
  }
  /// What `f` says of the daemon, which has one thread: its own.
  template <class F>
  auto ask(F f) {
    if (!loop.joinable()) return f(*daemon);
    std::packaged_task<decltype(f(*daemon))()> task([&] { return f(*daemon); });
    auto said = task.get_future();
    {
      std::lock_guard const held(asking);
      question = [&task] { task(); };
    }
    return said.get();
  }
  journal::service_counts counts() {
    return ask([](journal::service const& d) { return d.counts(); });
  }
  bool wants_anew() {
    return ask([](journal::service const& d) { return d.wants_anew(); });
  }
  int failed() {
    return ask([](journal::service const& d) { return d.failed(); });
  }
  void end_loop() {
    program->silence_ns = abi::order_silence_ns;
    is_over = true;
    loop.join();
  }
  /// As kill -9 would.
  void kill() {
    if (!loop.joinable()) return;
    end_loop();
    daemon.reset();
    disk.reset();
  }
  /// As SIGTERM would.
  bool finish() {
    end_loop();
    bool is_empty = false;
    for (int i = 0; i < 1000 && !(is_empty = daemon->end()); ++i) daemon->turn();
    daemon.reset();
    disk.reset();
    return is_empty;
  }
  void wait_between_turns() {
    ask([](journal::service const&) { return 0; });
  }
  /// It is out of its turn, and takes nothing.
  void stand_still() {
    program->silence_ns = abi::order_silence_ns;
    is_stopped = true;
    wait_between_turns();
  }
  /// It has had a turn since.
  void go_on() {
    is_stopped = false;
    wait_between_turns();
    wait_between_turns();
    program->silence_ns = while_it_works_ns;
  }
  /// It takes nothing and its heart stands still; programs see that at once.
  void stop() {
    stand_still();
    program->area().head.heart_ns = 1;
  }
  std::string path(std::string const& name) const { return dir + "/" + name; }
  int make(std::string const& name) {
    int const fd = open(path(name).c_str(), O_RDWR | O_CREAT | O_EXCL, 0640);
    REQUIRE(fd >= 0);
    program->created(fd);
    return fd;
  }
  void write(int fd, std::uint64_t at, std::string const& text) {
    REQUIRE(pwrite(fd, text.data(), text.size(), static_cast<off_t>(at)) ==
            static_cast<ssize_t>(text.size()));
    program->wrote(fd, at, at + text.size());
  }
  /// The directory is known afterwards: new files go to the log.
  void know() {
    int const fd = make("first");
    write(fd, 0, "x");
    REQUIRE(program->sync(fd) == 0);
    close(fd);
  }
  std::string read(std::string const& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return in ? std::string(std::istreambuf_iterator<char>(in), {}) : "no file";
  }
  journal::recovered recover_it() {
    journal::recover_options o;
    o.log = log;
    return journal::recover(o);
  }
};

inline bool lacks_root(served const& s) {
  if (!s.is_mounted) WARN("skip: needs root, mkfs.ext4 and loop devices");
  return !s.is_mounted;
}

}  // namespace sluice::test
