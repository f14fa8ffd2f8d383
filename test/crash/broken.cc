// SPDX-License-Identifier: Apache-2.0
// sluice-order with a rule switched off. The installed daemon has no switch for that, so the
// controls of real programs run this one in its place.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "base/guard.h"
#include "journal/boot.h"
#include "journal/file_disk.h"
#include "journal/recover.h"
#include "journal/slots.h"
#include "journal/writer.h"
#include "programs.h"

namespace sluice::crash {

namespace {

using namespace journal;

constexpr std::uint64_t window_ns = 10'000'000'000;

volatile sig_atomic_t is_over = 0;

struct served_by_us {
  std::string area, log;
  std::uint64_t log_mib = 64;
  int ready = -1;
};

served_by_us parse(int argc, char** argv) {
  served_by_us o;
  for (int i = 0; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--area") == 0) o.area = argv[i + 1];
    if (std::strcmp(argv[i], "--journal") == 0) o.log = argv[i + 1];
    if (std::strcmp(argv[i], "--journal-mib") == 0)
      o.log_mib = std::strtoul(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--ready-fd") == 0) o.ready = std::atoi(argv[i + 1]);
  }
  return o;
}

/// A byte for each time since `told`.
void tell_rests(std::uint64_t& told, std::uint64_t rests) {
  char const* const path = std::getenv("RESTS");
  if (told == rests || path == nullptr) return;
  std::ofstream(path, std::ios::app) << std::string(rests - told, '+');
  told = rests;
}

void say_ready(int& fd) {
  if (fd >= 0 && write(fd, "1", 1) != 1) std::perror("ready");
  if (fd >= 0) close(fd);
  fd = -1;
}

}  // namespace

int serve_broken(int argc, char** argv) {
  trial const* const t = argc > 3 ? find_trial(argv[2]) : nullptr;
  if (t == nullptr || t->keep == nullptr) return 2;
  served_by_us o = parse(argc, argv);
  install_guard();
  for (int const signal : {SIGTERM, SIGINT}) ::signal(signal, [](int) { is_over = 1; });
  if (access(o.log.c_str(), F_OK) != 0) make_log_file(o.log, o.log_mib << 20, window_ns);
  recover_options before;
  before.log = o.log;
  recover(before);
  file_disk disk(o.log, file_disk::use::write);
  auto const boot = boot_id();
  while (is_over == 0) {
    superblock s = read_slots(disk).in_force;
    if (continue_log(disk, s, s.head, random_salt(), {}, boot) != 0) return 1;
    service all(disk, s, *t->keep);
    if (!o.area.empty()) all.add(std::make_unique<area>(o.area));
    say_ready(o.ready);
    std::uint64_t told = 0;
    while (is_over == 0 && !all.wants_anew()) {
      all.turn();
      tell_rests(told, all.counts().rests);
    }
    while (!all.end()) {
      all.turn();
      if (all.failed() != 0) return 1;
    }
  }
  return 0;
}

}  // namespace sluice::crash
