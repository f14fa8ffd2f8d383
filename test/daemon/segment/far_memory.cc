// SPDX-License-Identifier: Apache-2.0
// Memory that another process touches: what is looked at is what was there, what is changed is
// changed, and an owner whose memory does not come holds up nobody but himself.
#include "segment/far_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "abi/ring_area.h"
#include "abi/role_area.h"
#include "base/clock.h"
#include "base/error.h"
#include "lib/scratch.h"
#include "segment/beside.h"

using namespace sluice;
using segment::region_kind;

namespace {

constexpr uid_t ann = 1001, bob = 1002;
constexpr auto relaxed = std::memory_order_relaxed;

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> out;
  std::ifstream in("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  for (pid_t child; in >> child;) out.push_back(child);
  return out;
}

/// A file, as its owner has it mapped.
template <class Area>
struct his {
  descriptor file;
  Area* at;
  explicit his(std::string const& path)
      : file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    REQUIRE(ftruncate(file.get(), sizeof(Area)) == 0);
    void* const mapped =
        mmap(nullptr, sizeof(Area), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    REQUIRE(mapped != MAP_FAILED);
    at = static_cast<Area*>(mapped);
  }
  ~his() {
    if (at != nullptr) munmap(at, sizeof(Area));
  }
  his(his&& other) noexcept : file(std::move(other.file)), at(std::exchange(other.at, nullptr)) {}
  his& operator=(his&&) = delete;
  Area* operator->() const { return at; }
  descriptor same() const { return descriptor(fcntl(file.get(), F_DUPFD_CLOEXEC, 0)); }
};

struct far_world {
  test::scratch at;
  std::map<uid_t, std::int64_t> paid_ns;
  bool is_broke = false;  // nobody has time left
  std::vector<pid_t> const before = children_of(getpid());
  segment::far_memory memory{[] {}};

  far_world() {
    memory.pay_by({[this](uid_t, std::int64_t debt_ns) { return !is_broke || debt_ns != 0; },
                   [this](uid_t owner, std::int64_t took_ns) { paid_ns[owner] += took_ns; }});
  }
  /// The newest of those that touch memory.
  pid_t server() const {
    for (pid_t const child : children_of(getpid()))
      if (std::ranges::find(before, child) == before.end()) return children_of(child).back();
    return 0;
  }
  his<abi::segment> segment(std::string const& name) {
    his<abi::segment> s(at.dir + "/" + name);
    s->rules.channel_count = 2;
    core::init(s->bucket[0], settings(1000), 1);
    return s;
  }
  std::unique_ptr<segment::far_region> hold(his<abi::segment> const& s, uid_t owner) {
    return memory.hold(s.same(), region_kind::segment, owner);
  }
  static core::curve_settings settings(std::uint64_t per_s) {
    std::uint64_t rate_q40 = 0;
    core::make_rate(per_s * core::op_units, 1'000'000'000, rate_q40);
    return core::default_settings(rate_q40, core::op_units);
  }
  static std::uint64_t rate_of(abi::segment const& s) {
    return core::current(s.bucket[0]).rate_q40;
  }
  void set_rate(segment::far_region& r, std::uint64_t per_s) {
    r.change({.what = segment::touch::curve, .at_ns = steady_ns(), .curve = settings(per_s)});
  }
  void wait_until_current(segment::far_region& r) {
    while (!r.is_current()) {
      memory.look(r, segment::glance);
      std::this_thread::yield();
    }
  }
};

abi::segment& copy_in(segment::far_region const& r) { return as_shared(r.copy<abi::segment>()); }

}  // namespace

TEST_CASE("far memory: a look sees what is there, in the parts it asks for", "[segment][far]") {
  far_world w;
  auto s = w.segment("s");
  s->owned[0].channel[1].calls = 7;
  s->head.shards_used = 1;
  s->far_process[5].pid = 42;
  auto const r = w.hold(s, ann);
  REQUIRE(r->is_current());
  abi::segment const& copy = copy_in(*r);
  CHECK(copy.owned[0].channel[1].calls == 7);
  CHECK(copy.far_process[5].pid == 42);
  CHECK(w.rate_of(copy) == w.rate_of(*s.at));

  s->owned[0].channel[1].calls = 8;
  s->owned[0].waiting.channel = 2;
  s->owned[0].call[3].calls = 5;
  s->common[0].channel[0].calls = 1;
  s->far_process[5].pid = 43;
  w.memory.look(*r, segment::glance);
  CHECK(copy.owned[0].channel[1].calls == 8);
  CHECK(copy.owned[0].waiting.channel == 2);
  CHECK(copy.common[0].channel[0].calls == 0);  // it says that nobody counts there
  CHECK(copy.owned[0].call[3].calls == 0);
  CHECK(copy.far_process[5].pid == 42);
  s->head.commons_used = 1;
  s->rules.target_count = 2;
  s->time[1][4].samples = s->time[1][4].took_ns = 9;
  w.memory.look(*r, segment::whole);
  CHECK(copy.common[0].channel[0].calls == 1);
  CHECK(copy.owned[0].call[3].calls == 5);
  CHECK(copy.far_process[5].pid == 43);
  CHECK(copy.time[1][4].took_ns == 9);
}

TEST_CASE("far memory: counts beyond what there is are bounded", "[segment][far]") {
  far_world w;
  auto s = w.segment("s");
  s->head.shards_used = ~0u;
  s->head.commons_used = 1;
  s->rules.channel_count = s->rules.target_count = ~0u;
  for (auto& of_target : s->time)
    for (auto& t : of_target) t.samples = 1;
  s->owned[abi::owned_shards - 1].channel[core::max_channels - 1].calls = 3;
  auto const r = w.hold(s, ann);
  CHECK(r->is_current());
  CHECK(copy_in(*r).owned[abi::owned_shards - 1].channel[core::max_channels - 1].calls == 3);
}

TEST_CASE("far memory: changes are made before the next look", "[segment][far]") {
  far_world w;
  auto s = w.segment("s");
  auto const r = w.hold(s, ann);
  w.set_rate(*r, 5000);
  r->change({.what = segment::touch::holder, .word = 77});
  r->change({.what = segment::touch::beside, .word = abi::paths_beside});
  CHECK_FALSE(r->is_current());
  w.memory.look(*r, segment::glance);
  REQUIRE(r->is_current());
  CHECK(w.rate_of(*s.at) == w.settings(5000).rate_q40);
  CHECK(s->head.holder == 77);
  CHECK(s->head.areas == abi::paths_beside);
  CHECK(w.rate_of(copy_in(*r)) == w.rate_of(*s.at));
  // Of a channel or a slot that there is not, and of what is no part of a segment: nothing.
  r->change({.what = segment::touch::curve, .index = core::max_channels});
  r->change({.what = segment::touch::answer, .index = 1});
  w.memory.look(*r, segment::glance);
  CHECK(r->is_current());
}

TEST_CASE("far memory: a new segment is there at once, as it was made", "[segment][far]") {
  far_world w;
  auto s = w.segment("s");
  auto const r = w.memory.hold_new(s.same(), ann);
  CHECK(w.rate_of(copy_in(*r)) == w.rate_of(*s.at));
  CHECK(copy_in(*r).rules.channel_count == 2);
}

TEST_CASE("far memory: a file that was cut short is broken", "[segment][far]") {
  far_world w;
  auto s = w.segment("s"), other = w.segment("o");
  auto const r = w.hold(s, ann), of_other = w.hold(other, ann);
  REQUIRE(ftruncate(s.file.get(), 4096) == 0);
  w.memory.look(*r, segment::whole);
  CHECK(r->is_broken());
  segment::far_region* const both[] = {r.get(), of_other.get()};
  w.memory.look(both, segment::whole);
  CHECK_FALSE(of_other->is_broken());
  w.set_rate(*r, 5000);
  w.memory.look(*r, segment::whole);
  CHECK(r->is_broken());
}

TEST_CASE("far memory: who does not answer holds up nobody else, and pays", "[segment][far]") {
  far_world w;
  auto s = w.segment("s"), t = w.segment("t"), late = w.segment("late");
  auto const of_bob = w.hold(t, bob), of_ann = w.hold(s, ann);
  pid_t const hung = w.server();  // ann's
  w.paid_ns.clear();
  REQUIRE(kill(hung, SIGSTOP) == 0);
  segment::far_region* const both[] = {of_ann.get(), of_bob.get()};
  s->head.attached = t->head.attached = 5;
  w.set_rate(*of_ann, 1);
  w.memory.look(both, segment::glance);
  CHECK(of_bob->is_current());
  CHECK(copy_in(*of_bob).head.attached == 5);
  CHECK_FALSE(of_ann->is_current());
  CHECK(copy_in(*of_ann).head.attached == 0);
  std::int64_t const paid_ns = w.paid_ns[ann];
  CHECK(paid_ns >= segment::far_memory::patience_ns / 2);
  CHECK(w.paid_ns[bob] < paid_ns);
  // Nobody waits for her twice.
  w.memory.look(both, segment::glance);
  CHECK(w.paid_ns[ann] == paid_ns);
  CHECK_THROWS_AS(w.hold(late, ann), error);
  CHECK(w.memory.hold_new(late.same(), ann) != nullptr);
  // More changes than its queue has room for: of each curve the last one.
  for (std::uint64_t i = 1; i <= 3000; ++i) w.set_rate(*of_ann, i);
  w.set_rate(*of_bob, 9);
  w.memory.look(both, segment::glance);
  CHECK(w.rate_of(*t.at) == w.settings(9).rate_q40);
  REQUIRE(kill(hung, SIGCONT) == 0);
  w.wait_until_current(*of_ann);
  CHECK(w.rate_of(*s.at) == w.settings(3000).rate_q40);
}

TEST_CASE("far memory: for who has no time left nobody waits", "[segment][far]") {
  far_world w;
  auto s = w.segment("s");
  auto const r = w.hold(s, ann);
  w.paid_ns.clear();
  w.is_broke = true;
  w.set_rate(*r, 2000);
  w.memory.look(*r, segment::glance);
  CHECK(w.paid_ns.empty());
  w.wait_until_current(*r);  // it is looked at all the same

  // What a look was to see that could not begin is seen later; a last look is waited for.
  pid_t const server = w.server();
  REQUIRE(kill(server, SIGSTOP) == 0);
  w.memory.look(*r, segment::glance);
  s->owned[0].call[3].calls = 5;
  s->head.shards_used = 1;
  w.memory.look(*r, segment::whole);
  REQUIRE(kill(server, SIGCONT) == 0);
  while (copy_in(*r).owned[0].call[3].calls != 5) w.memory.look(*r, segment::glance);
  s->owned[0].call[3].calls = 6;
  w.memory.look(*r, segment::glance);
  w.memory.look(*r, segment::whole, segment::far_memory::most_debt_ns);
  CHECK(r->is_current());
  CHECK(copy_in(*r).owned[0].call[3].calls == 6);
}

TEST_CASE("far memory: looks at one region keep no other from being seen", "[segment][far]") {
  far_world w;
  auto s = w.segment("s");
  his<abi::after_area> a(w.at.dir + "/after");
  auto const of_s = w.hold(s, ann);
  auto const of_a = w.memory.hold(a.same(), region_kind::after, ann);
  w.is_broke = true;
  a->slot[3].word = 5;
  // As the loop does for who has no time left: nobody waits, and the segment is first each time,
  // once to be seen and once to be settled.
  std::uint32_t last = 0;
  for (int seen = 0; of_a->copy<abi::after_area>().slot[3].word.load(relaxed) != 5;) {
    s->head.attached.fetch_add(1);
    w.memory.look(*of_s, segment::glance);
    w.memory.look(*of_s, 0);
    w.memory.look(*of_a, segment::whole);
    std::uint32_t const now = copy_in(*of_s).head.attached;
    if (std::exchange(last, now) != now) ++seen;
    REQUIRE(seen < 100);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the answer comes between turns
  }
}

TEST_CASE("far memory: a process that has ended is noticed", "[segment][far]") {
  far_world w;
  auto s = w.segment("s"), t = w.segment("t");
  auto const r = w.hold(s, ann);
  w.is_broke = true;  // nobody waits
  REQUIRE(kill(w.server(), SIGKILL) == 0);
  auto const look_until_noticed = [&] {
    while (true) w.memory.look(*r, segment::glance);
  };
  CHECK_THROWS_AS(look_until_noticed(), error);
}

TEST_CASE("far memory: a process is there as long as its owner has regions", "[segment][far]") {
  far_world w;
  auto s = w.segment("s"), t = w.segment("t");
  auto const kept = w.hold(t, bob);
  auto r = w.hold(s, ann);
  pid_t const of_ann = w.server();
  r.reset();
  while (kill(of_ann, 0) == 0) {
    w.memory.look(*kept, segment::glance);
    std::this_thread::yield();
  }
  CHECK(w.hold(s, ann)->is_current());
}

TEST_CASE("far memory: questions of an area of epochs are taken and answered", "[segment][far]") {
  using abi::after_state;
  far_world w;
  his<abi::after_area> a(w.at.dir + "/after");
  a->slot[3].word = abi::word_of(5, after_state::posted);
  auto const r = w.memory.hold(a.same(), region_kind::after, ann);
  auto const& copy = r->copy<abi::after_area>();
  REQUIRE(copy.slot[3].word.load(relaxed) == abi::word_of(5, after_state::posted));
  auto const change = [&](segment::memory_change c) {
    r->change(c);
    w.memory.look(*r, segment::whole);
    REQUIRE(r->is_current());
  };
  change({.what = segment::touch::take_slot,
          .index = 3,
          .expected = abi::word_of(4, after_state::posted)});
  CHECK(a->slot[3].word == abi::word_of(5, after_state::posted));  // another one's
  change({.what = segment::touch::take_slot,
          .index = 3,
          .expected = abi::word_of(5, after_state::posted)});
  CHECK(copy.slot[3].word.load(relaxed) == abi::word_of(5, after_state::taken));
  change({.what = segment::touch::waits_for, .index = 3, .text = "the disks"});
  CHECK(std::string(reinterpret_cast<char const*>(a->slot[3].waits_for)) == "the disks");
  change({.what = segment::touch::answer,
          .index = 3,
          .expected = abi::word_of(5, after_state::taken),
          .result = EIO,
          .text = "sync: no"});
  CHECK(a->slot[3].word == abi::word_of(5, after_state::done));
  CHECK(a->slot[3].result == EIO);
  CHECK(std::string(reinterpret_cast<char const*>(a->head.reason)) == "sync: no");
  change({.what = segment::touch::free_slot,
          .index = 3,
          .expected = abi::word_of(5, after_state::done)});
  CHECK(a->slot[3].word == abi::word_of(5, after_state::free));
  change({.what = segment::touch::known, .index = abi::after_slots, .word = 12});
  CHECK(a->head.known == 1);
  CHECK(a->head.book == 12);
  change({.what = segment::touch::free_slot, .index = abi::after_slots});
}

TEST_CASE("far memory: what is beside a segment is read by the job's process, or by us",
          "[segment][far]") {
  far_world w;
  auto const s = w.segment("segment");
  auto const r = w.hold(s, ann);
  his<abi::role_area> const roles(w.at.dir + "/roles");
  roles->head.unclassed = 7;
  segment::job_files files{w.at.dir + "/segment", geteuid(), nullptr};
  auto const read = [&](char const* name) {
    return segment::read_front(w.at.dir + "/" + name, files, region_kind::roles);
  };
  auto const own = read("roles");
  REQUIRE(own.bytes.size() == sizeof(abi::role_area));
  files.far = r.get();
  auto const far = read("roles");
  CHECK(far.bytes == own.bytes);
  CHECK(far.file_bytes == sizeof(abi::role_area));
  CHECK(std::memcmp(far.bytes.data(), roles.at, sizeof *roles.at) == 0);
  CHECK(read("nothing").bytes.empty());
  his<abi::ring_header> const small(w.at.dir + "/short");
  CHECK(read("short").bytes.empty());
  kill(w.server(), SIGSTOP);
  CHECK(read("roles").bytes.empty());
  kill(w.server(), SIGCONT);
}
