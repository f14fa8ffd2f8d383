// SPDX-License-Identifier: Apache-2.0
// A log daemon without a log, for tests of the stage: `serve --area FILE --journal FILE --ready-fd
// N` … ORDER_FAKE says what it does with requests: native (sends them back), sync (fsyncs the
// caller's file itself and answers), eio (answers EIO), silent (takes them and answers nobody),
// hold (native, but a drain waits until the program sets the last counter), gate (sync; with
// barriers it does what the program wishes, see order_board.h).
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <string>

#include "order_board.h"

using namespace sluice;

namespace {

std::atomic<bool> ended{false};

std::uint64_t now_ns() { return static_cast<std::uint64_t>(now_s() * 1e9); }

int fetch(abi::order_slot const& s) {
  int const process = static_cast<int>(syscall(SYS_pidfd_open, s.pid.load(), 0));
  int const fd = static_cast<int>(syscall(SYS_pidfd_getfd, process, s.fd.load(), 0));
  close(process);
  return fd;
}

int sync_of(abi::order_slot const& s) {
  int const fd = fetch(s);
  int const error = fd < 0 ? errno : fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return error;
}

int answer_to(abi::order_slot const& s, std::string const& how) {
  auto const kind = static_cast<abi::order_request>(s.kind.load() & ~abi::order_barrier);
  if (kind == abi::order_request::drain || kind == abi::order_request::sync_all) return 0;
  if (how == "eio") return EIO;
  return how == "sync" || how == "gate" ? sync_of(s) : abi::go_native;
}

void wake(abi::order_slot& s) {
  syscall(SYS_futex, &s.word, 1 /* FUTEX_WAKE */, 1 << 30, nullptr, nullptr, 0);
}

void serve_barrier(abi::order_area& a, abi::order_slot& s) {
  using state = abi::order_slot_state;
  auto const as = [](std::uint32_t word, state to) {
    return (word & ~7u) | static_cast<std::uint32_t>(to);
  };
  auto const what = static_cast<wish>(wish_word(a).load());
  std::uint32_t word = s.word.load();
  if ((word & 7) == static_cast<std::uint32_t>(state::posted) && what != wish::leave) {
    if (s.word.compare_exchange_strong(word, as(word, state::held))) wake(s);
    return;
  }
  if ((word & 7) != static_cast<std::uint32_t>(state::held) || what == wish::hold) return;
  s.result = what == wish::fail ? EIO : what == wish::send_back ? abi::go_native : 0;
  state const to = what == wish::make_durable ? state::free : state::done;
  if (what != wish::leave && s.word.compare_exchange_strong(word, as(word, to))) wake(s);
}

void serve_notice(abi::order_area& a, abi::order_slot& s) {
  using state = abi::order_slot_state;
  std::uint32_t word = s.word.load();
  auto const is = static_cast<state>(word & 7);
  auto const as = [&](state to) { return (word & ~7u) | static_cast<std::uint32_t>(to); };
  static int eventfd;  // one at a time is enough here
  if (is == state::posted) {
    eventfd = fetch(s);
    if (s.word.compare_exchange_strong(word, as(state::held))) wake(s);
    return;
  }
  std::uint32_t const barrier = a.slot[s.device % abi::order_slots].word.load();
  if (is != state::held || (barrier >> 3 == s.inode && (barrier & 7) != 0 && (barrier & 7) != 4))
    return;
  std::uint64_t const one = 1;
  if (write(eventfd, &one, sizeof one) != sizeof one) perror("eventfd");
  close(eventfd);
  s.word.compare_exchange_strong(word, as(state::free));
}

void serve(abi::order_area& a, std::string const& how) {
  for (abi::order_slot& s : a.slot) {
    std::uint32_t word = s.word.load();
    auto const kind = static_cast<abi::order_request>(s.kind.load() & ~abi::order_barrier);
    if (kind == abi::order_request::notify) {
      serve_notice(a, s);
      continue;
    }
    if (how == "gate" && (s.kind.load() & abi::order_barrier) != 0) {
      serve_barrier(a, s);
      continue;
    }
    constexpr auto posted = static_cast<std::uint32_t>(abi::order_slot_state::posted);
    constexpr auto taken = static_cast<std::uint32_t>(abi::order_slot_state::taken);
    constexpr auto done = static_cast<std::uint32_t>(abi::order_slot_state::done);
    bool const is_held = (word & 7) == taken && how == "hold";
    if ((word & 7) != posted && !is_held) continue;
    if (!is_held && !s.word.compare_exchange_strong(word, (word & ~7u) | taken)) continue;
    bool const is_drain = s.kind == static_cast<std::uint32_t>(abi::order_request::drain);
    bool const waits = how == "hold" && is_drain && a.head.count[abi::order_count_slots - 1] == 0;
    if (how == "silent" || waits) continue;
    s.result = answer_to(s, how);
    std::uint32_t mine = (word & ~7u) | taken;
    s.word.compare_exchange_strong(mine, (word & ~7u) | done);
    syscall(SYS_futex, &s.word, 1 /* FUTEX_WAKE */, 1, nullptr, nullptr, 0);
  }
}

abi::order_area& map_area(char const* path) {
  int const fd = open(path, O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  void* const at =
      mmap(nullptr, sizeof(abi::order_area), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  close(fd);
  return *static_cast<abi::order_area*>(at);
}

}  // namespace

int main(int argc, char** argv) {
  bool const removes = argc == 12 && std::string(argv[6]) == "--remove";
  CHECK((removes || argc == 11) && std::string(argv[1]) == "serve");
  int const ready = atoi(argv[removes ? 8 : 7]);
  std::string const area = argv[3];
  std::string const log = argv[5];
  char const* const how = getenv("ORDER_FAKE");
  abi::order_area& a = map_area(area.c_str());
  CHECK(abi::refuse_reason(a, sizeof a) == nullptr);
  signal(SIGTERM, [](int) { ended = true; });
  int const made = open(log.c_str(), O_WRONLY | O_CREAT, 0600);
  struct stat st;
  CHECK(made >= 0 && fstat(made, &st) == 0 && log.size() < sizeof a.head.log_path);
  close(made);
  a.head.log_device = std::uint64_t{major(st.st_dev)} << 32 | minor(st.st_dev);
  a.head.log_inode = st.st_ino;
  memcpy(a.head.log_path, log.c_str(), log.size() + 1);
  a.head.voided = 0;
  a.head.log_id[0] = 'f';
  a.head.generation.fetch_add(1);
  a.head.heart_ns = now_ns();
  a.head.incarnation = static_cast<std::uint64_t>(getpid());
  CHECK(write(ready, "1", 1) == 1);
  close(ready);
  while (!ended) {
    a.head.heart_ns = now_ns();
    serve(a, how == nullptr ? "native" : how);
    timespec const nap = {0, 200'000};
    nanosleep(&nap, nullptr);
  }
  a.head.incarnation = 0;
  if (removes) unlink(log.c_str());
  return 0;
}
