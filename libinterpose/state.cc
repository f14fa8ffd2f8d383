// SPDX-License-Identifier: Apache-2.0
// Attach and detach. Attaching happens once in the constructor, when the library was loaded under
// the name <job directory>/libinterpose.so with a file `segment` beside it; whatever is wrong with
// that file, the program runs as if we were not there. A thread joins at its first call, a fork
// child at its first call too.
#include "state.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "area.h"
#include "calls.h"
#include "extras.h"
#include "loaded.h"
#include "paths.h"
#include "readable.h"
#include "roles.h"
#include "sys.h"

extern "C" __attribute__((weak)) char const* gnu_get_libc_version();

namespace sluice {

constinit stage_state stage;
thread_local constinit thread_state self;

gate_plan plan_gate(unsigned gate) {
  unsigned const channel = gate & gate_channel;
  std::size_t const counters =
      offsetof(abi::shard, channel) + channel * sizeof(abi::channel_counters);
  std::size_t const curve = channel * sizeof(core::bucket) + offsetof(core::bucket, gen);
  static_assert(sizeof(abi::shard) <= 1 << 16 && sizeof(abi::segment::bucket) <= 1 << 16);
  return {static_cast<std::uint16_t>(counters), static_cast<std::uint16_t>(curve)};
}

namespace {

constexpr std::uint64_t generation_busy = std::uint64_t{1} << 63;  // with the address of who joins
constexpr unsigned slot_probes = 64;
constexpr unsigned longest_preload = 512;

std::uint32_t own_pid() { return static_cast<std::uint32_t>(sys::call(SYS_getpid)); }

bool is_dead(std::uint32_t pid) { return sys::call(SYS_kill, pid, 0) == -ESRCH; }

// The number that /proc has for us is ours: it shows our pid namespace.
bool proc_shows(std::uint32_t pid) {
  char text[16];
  long const length = sys::call(SYS_readlink, sys::as_long("/proc/self"), sys::as_long(text),
                                static_cast<long>(sizeof text));
  std::uint32_t number = 0;
  for (long i = 0; i < length; ++i) number = number * 10 + static_cast<unsigned>(text[i] - '0');
  return number == pid;
}

// A child of fork sees the number of its parent only in the pid namespace of both.
bool is_in_space_of_parent() {
  return stage.pid != 0 && static_cast<std::uint32_t>(sys::call(SYS_getppid)) == stage.pid;
}

// The first process of the job asks for all that see the same /proc.
std::uint64_t pid_space(abi::segment& s, std::uint32_t pid) {
  sys::file_identity proc = {}, self_space;
  bool const is_there = sys::identify(sys::at_cwd, "/proc", 0, proc);
  if (is_there) stage.proc_device = proc.device;
  bool const is_ours = is_there && proc_shows(pid);
  std::uint64_t shows = s.head.proc_shows.load(std::memory_order_relaxed);
  if (is_ours && abi::shown_by(proc.device, shows & 0xffffffff) == shows && shows != 0)
    return shows & 0xffffffff;
  if (!sys::identify(sys::at_cwd, "/proc/self/ns/pid", 0, self_space)) return 0;
  if (is_ours && shows == 0)
    s.head.proc_shows.compare_exchange_strong(shows, abi::shown_by(proc.device, self_space.inode));
  return self_space.inode;
}

// By a system call: the other way touches three pages, which is dearer when it is the first time.
std::uint64_t ticks_now() {
  constexpr std::int64_t ns_per_tick = 10'000'000;  // USER_HZ is 100 wherever we run
  timespec t = {};
  sys::call(SYS_clock_gettime, CLOCK_BOOTTIME, sys::as_long(&t));
  return sys::ns_of(t.tv_sec, t.tv_nsec) / ns_per_tick;
}

void release_shards(abi::segment& s, std::uint32_t slot) {
  std::uint32_t const used = s.head.shards_used.load();
  for (unsigned i = 0; i < used && i < abi::owned_shards; ++i) {
    std::uint64_t seen = s.shard_owner[i].load(std::memory_order_relaxed);
    if (seen >> 32 != slot) continue;
    if (s.shard_owner[i].compare_exchange_strong(seen, 0)) s.head.threads.fetch_sub(1);
  }
}

void describe_slot(abi::segment& s, std::uint32_t slot, std::uint64_t space) {
  abi::process_slot& row = s.process[slot - 1];
  row.uid.store(static_cast<std::uint32_t>(sys::call(SYS_getuid)));
  row.pid_space.store(space);
  row.start_ticks.store(abi::not_after | ticks_now());
  char name[16] = {};
  sys::call(SYS_prctl, PR_GET_NAME, sys::as_long(name));
  for (unsigned i = 0; i < sizeof name; ++i) row.name[i] = name[i];
  row.state.store(1);
}

// A free slot near the pid's place. One with our own pid is ours: exec keeps the pid, and the image
// before left it behind. One whose process is dead is free. Pids of another pid namespace say
// nothing.
std::uint32_t claim_slot(abi::segment& s) {
  std::uint32_t const pid = own_pid();
  if (!is_in_space_of_parent()) stage.pid_space = pid_space(s, pid);
  std::uint64_t const space = stage.pid_space;
  stage.pid = pid;
  for (unsigned i = 0; i < slot_probes; ++i) {
    unsigned const among = i < slot_probes / 4 ? abi::near_slots : abi::process_slots;
    std::uint32_t const index = (pid + i * 67) % among;
    abi::process_slot& row = s.process[index];
    std::uint32_t seen = 0;  // written without a look before: that may be a page fault more
    bool const is_free = row.pid.compare_exchange_strong(seen, pid);
    bool const comparable = !is_free && space != 0 && row.pid_space.load() == space;
    bool const reusable = comparable && (seen == pid || is_dead(seen));
    if (!is_free && !reusable) continue;
    if (reusable && !row.pid.compare_exchange_strong(seen, pid)) continue;
    if (reusable) release_shards(s, index + 1);  // after it: the slot is ours alone now
    describe_slot(s, index + 1, space);
    if (!reusable) s.head.attached.fetch_add(1);
    s.head.attached_total.fetch_add(1);
    return index + 1;
  }
  return 0;
}

// After fork the page reads 0. The first thread to see it makes the child a process of its own;
// others that come meanwhile pass through. The same thread may come again: its first try was cut
// short by a signal handler, which may never return to it.
bool join_process(abi::segment& s) {
  std::uint64_t const busy = generation_busy | static_cast<std::uint64_t>(sys::as_long(&self));
  std::uint64_t seen = 0;
  if (!stage.fork_page->compare_exchange_strong(seen, busy) && seen != busy)
    return (seen & generation_busy) == 0;
  stage.slot.store(0);
  touch_around(&s);
  std::uint32_t const slot = claim_slot(s);
  stage.slot.store(slot);
  if (slot == 0) pass_through(abi::passthrough::no_slot);
  std::uint32_t const generation = stage.last_generation.load() + 1;
  stage.last_generation.store(generation);
  stage.fork_page->store(generation, std::memory_order_release);
  return true;
}

// The thread that holds a shard has ended: in our own process, or with a process that died without
// giving back.
bool owner_is_gone(abi::segment& s, std::uint64_t owner, std::uint64_t space) {
  std::uint64_t const slot = owner >> 32;
  if (slot == 0 || slot > abi::process_slots) return true;
  abi::process_slot& row = s.process[slot - 1];
  std::uint32_t const pid = row.pid.load();
  if (pid == 0) return true;
  if (space == 0 || row.pid_space.load() != space) return false;
  if (slot == stage.slot.load())
    return sys::call(SYS_tgkill, pid, static_cast<long>(owner & 0xffffffff), 0) == -ESRCH;
  return is_dead(pid);
}

abi::shard* take_shard(abi::segment& s, unsigned index, std::uint64_t seen, std::uint64_t mark) {
  if (!s.shard_owner[index].compare_exchange_strong(seen, mark)) return nullptr;
  if (seen == 0) s.head.threads.fetch_add(1);
  touch_around(&s.owned[index]);
  s.owned[index].waiting.channel.store(0);
  std::uint32_t used = s.head.shards_used.load();
  while (used < index + 1 && !s.head.shards_used.compare_exchange_weak(used, index + 1)) {
  }
  return &s.owned[index];
}

abi::shard* claim_shard(abi::segment& s) {
  std::uint32_t const slot = stage.slot.load();
  std::uint64_t const mark = std::uint64_t{slot} << 32 | self.tid;
  for (unsigned i = 0; slot != 0 && i < abi::owned_shards; ++i) {
    if (s.shard_owner[i].load(std::memory_order_relaxed) != 0) continue;
    if (abi::shard* const taken = take_shard(s, i, 0, mark)) return taken;
  }
  // All taken: threads that ended leave theirs behind. Look at a few, starting at a different place
  // each.
  std::uint64_t const space = slot != 0 ? stage.pid_space : 0;
  for (unsigned i = 0; slot != 0 && i < 16; ++i) {
    unsigned const index = (self.tid * 16 + i) % abi::owned_shards;
    std::uint64_t const seen = s.shard_owner[index].load(std::memory_order_relaxed);
    if (seen == 0 || !owner_is_gone(s, seen, space)) continue;
    if (abi::shard* const taken = take_shard(s, index, seen, mark)) return taken;
  }
  return nullptr;
}

// One mapping: the fork page, as large as pages may be, and behind it what the process remembers.
bool map_private() {
  constexpr long page = 65536;
  long const at = sys::map(page + sizeof(private_map), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(at)) return false;
  if (sys::failed(sys::call(SYS_madvise, at, page, 18 /* MADV_WIPEONFORK */))) return false;
  stage.fork_page = reinterpret_cast<std::atomic<std::uint64_t>*>(at);
  stage.mine = reinterpret_cast<private_map*>(at + page);
  stage.mine->fd[0].store(entry_unknown);  // a page that is read before it is written costs twice
  return true;
}

// Most of the room for strings and tables is empty, and each page of it would be made twice.
bool copy_rules(core::ruleset const& from) {
  core::ruleset& to = stage.mine->rules;
  __builtin_memcpy(&to, &from, offsetof(core::ruleset, strings));
  if (to.string_bytes > sizeof to.strings || to.cost_count > core::max_cost_tables) return false;
  __builtin_memcpy(to.strings, from.strings, to.string_bytes);
  __builtin_memcpy(to.cost, from.cost, to.cost_count * sizeof(core::cost_table));
  return core::validate(to) == nullptr;
}

/// Pages this process has mapped, by /proc; none when it cannot tell.
std::uint64_t mapped_pages() {
  long const fd =
      sys::call(SYS_openat, sys::at_cwd, sys::as_long("/proc/self/statm"), O_RDONLY | O_CLOEXEC, 0);
  if (sys::failed(fd)) return 0;
  char text[32];
  long const length = sys::call(SYS_read, fd, sys::as_long(text), sizeof text);
  sys::call(SYS_close, fd);
  std::uint64_t pages = 0;
  for (long i = 0; i < length && text[i] >= '0' && text[i] <= '9'; ++i)
    pages = pages * 10 + static_cast<std::uint64_t>(text[i] - '0');
  return pages;
}

// Under `ulimit -v` our memory is the program's loss: we take at most a quarter of what was left
// before the segment was mapped, with the areas that may come beside it.
bool has_room() {
  rlimit limit = {};
  constexpr long self_process = 0;
  if (sys::failed(sys::call(SYS_prlimit64, self_process, RLIMIT_AS, 0, sys::as_long(&limit))))
    return true;
  if (limit.rlim_cur == RLIM_INFINITY) return true;
  std::uint64_t const mapped = mapped_pages() * getauxval(AT_PAGESZ);
  std::uint64_t const used = mapped > sizeof(abi::segment) ? mapped - sizeof(abi::segment) : 0;
  std::uint64_t const ours = sizeof(abi::segment) + sizeof(private_map) + extra_bytes();
  return limit.rlim_cur > used && limit.rlim_cur - used > 4 * ours;
}

abi::segment* map_segment(char* path) {
  auto* const segment = map_area<abi::segment>(path, "segment", abi::refuse_head);
  if (segment == nullptr || has_room()) return segment;
  sys::call(SYS_munmap, sys::as_long(segment), sizeof(abi::segment));
  return nullptr;
}

// Our path as ld.so was given it: the job directory is where that name lies, not where the link
// leads.
bool find_own_name(char* segment_path, unsigned room) {
  char const* const name = loaded::own_name();
  if (name == nullptr) return false;
  unsigned length = 0, slash = 0;
  for (; name[length] != 0; ++length) {
    if (length + 1 >= longest_preload) return false;
    if (name[length] == '/') slash = length + 1;
  }
  stage.preload = name;
  stage.preload_length = length;
  constexpr char leaf[] = "segment";
  if (slash == 0 || slash + sizeof leaf > room) return false;
  for (unsigned i = 0; i < slash; ++i) segment_path[i] = name[i];
  for (unsigned i = 0; i < sizeof leaf; ++i) segment_path[slash + i] = leaf[i];
  return true;
}

// What every call asks is copied out of the segment: it is nearer, and nobody else can change it.
void note_rule_kinds(core::ruleset const& rules) {
  stage.counts_elsewhere = rules.counts_elsewhere != 0;
  stage.first_counted = entry_first_target + (stage.counts_elsewhere ? 0 : 1);
  for (unsigned r = 0; r < rules.rule_count; ++r) {
    core::rule_row const& row = rules.rule[r];
    core::channel_row const& channel = rules.channel[row.channel];
    bool const is_bytes = channel.unit == static_cast<std::uint8_t>(core::unit_kind::bytes);
    bool const is_priced = channel.unit == static_cast<std::uint8_t>(core::unit_kind::vops);
    unsigned const gate = row.channel | (is_bytes ? gate_bytes : 0) | (is_priced ? gate_vops : 0) |
                          (channel.count_only != 0 ? gate_counts : 0);
    stage.gate_of_rule[r] = static_cast<std::uint16_t>(gate);
    stage.has_prices |= is_priced;
    if (row.path_glob.length == 0) {
      stage.plain_rules |= std::uint64_t{1} << r;
    } else {
      stage.has_path_globs = true;
      if (core::view(rules, row.path_glob).find('/') != std::string_view::npos)
        stage.has_whole_globs = true;
    }
    if (row.thread_glob.length != 0 || row.user != core::any_user) stage.has_callers = true;
  }
  if (rules.rule_count < 64) stage.plain_rules |= ~std::uint64_t{0} << rules.rule_count;
}

// Without the area of roles nobody knows for what these hold: the job is held by its other limits.
void forget_role_rules(core::ruleset& rules) {
  std::uint64_t asks = 0;
  for (unsigned r = 0; r < rules.rule_count; ++r)
    if (rules.rule[r].role.length != 0) asks |= std::uint64_t{1} << r;
  for (unsigned o = 0; asks != 0 && o < core::op_count; ++o)
    for (std::uint64_t& mask : rules.rules_for[o]) mask &= ~asks;
}

// Where the table of a gate lies, plus one: 0 says that it counts no VOPs.
std::uint16_t plan_cost(core::ruleset const& rules, unsigned gate) {
  if ((gate & gate_vops) == 0) return 0;
  unsigned const table = rules.channel[gate & gate_channel].cost;
  static_assert(core::max_cost_tables * sizeof(core::cost_table) < 1 << 16);
  return static_cast<std::uint16_t>(table * sizeof(core::cost_table));
}

// What most calls meet is known before any is made.
op_plan plan_of(core::ruleset const& rules, unsigned op, unsigned entry) {
  op_plan row;
  unsigned const target = entry - entry_first_target;
  if (entry < stage.first_counted || target >= rules.target_count) return row;
  std::uint64_t const mask = rules.rules_for[op][target];
  std::uint64_t const after_first = mask & (mask - 1),
                      after_second = after_first & (after_first - 1);
  // The class of a new file's name stays with its fd, whatever `open` itself meets.
  bool const needs_name = stage.has_path_globs && op == static_cast<unsigned>(core::op::open);
  bool const is_noted = paths::area != nullptr || stage.has_roles;
  row.what = mask == 0 && !needs_name && !is_noted ? planned::count : planned::rules;
  bool const is_plain = !is_noted && !stage.has_path_globs && !stage.has_callers;
  if (mask == 0 || after_second != 0 || !is_plain) return row;
  unsigned const first = stage.gate_of_rule[__builtin_ctzll(mask)];
  unsigned const second = after_first == 0 ? 0 : stage.gate_of_rule[__builtin_ctzll(after_first)];
  if (((first | second) & gate_counts) != 0) return row;
  row.what = ((first | second) & gate_vops) != 0 ? planned::priced : planned::gate;
  row.first_cost = plan_cost(rules, first);
  row.first = plan_gate(first);
  row.first_bytes = (first & gate_bytes) != 0;
  if (after_first != 0) row.second = plan_gate(second);
  if (after_first != 0) row.second_cost = plan_cost(rules, second);
  row.second_bytes = (second & gate_bytes) != 0;
  return row;
}

void plan_gates(core::ruleset const& rules) {
  unsigned const rows = entry_first_target + rules.target_count;  // the rest says not_ours
  for (unsigned entry = 0; entry < rows; ++entry)
    for (unsigned op = 0; op < core::op_count; ++op)
      stage.mine->plan[entry][op] = plan_of(rules, op, entry);
}

__attribute__((constructor)) void attach_at_start() { attach(); }

__attribute__((destructor)) void detach() {
  each_extra(&extra::leave);
  leave_process();
}

}  // namespace

void attach() {
  static constinit std::atomic<bool> begun{false};
  if (begun.exchange(true)) return;
  // stream.cc reads glibc's FILE; under another libc we are loaded by accident and stay out.
  if (gnu_get_libc_version == nullptr) return;
  char path[longest_preload + 16];
  if (!find_own_name(path, sizeof path)) return;
  abi::segment* const segment = map_segment(path);
  if (segment == nullptr || !map_private()) return;
  stage.is_in_memory = segment->head.is_in_memory != 0;
  if (!copy_rules(segment->rules)) return;
  note_rule_kinds(stage.mine->rules);
  learn_memory();
  std::uint32_t const beside = segment->head.areas.load(std::memory_order_relaxed);
  if ((beside & abi::paths_beside) != 0) paths::begin(path);
  if ((beside & abi::roles_beside) != 0) roles::begin(path);
  if (!stage.has_roles) forget_role_rules(stage.mine->rules);
  plan_gates(stage.mine->rules);
  stage.bucket = segment->bucket;
  join_process(*segment);
  stage.active.store(segment, std::memory_order_release);
  bind_what_children_call();
  if (begin_extras(beside, path)) stand_before_libc();
}

void pass_through(abi::passthrough reason) {
  if (abi::segment* const s = stage.active.load(std::memory_order_relaxed))
    s->head.passthrough_calls[static_cast<unsigned>(reason)].fetch_add(1,
                                                                       std::memory_order_relaxed);
}

bool join_thread() {
  abi::segment* const s = stage.active.load(std::memory_order_acquire);
  if (s == nullptr) return false;
  if (self.is_vfork_child) {
    pass_through(abi::passthrough::vfork_child);
    return false;
  }
  if (!join_process(*s)) {
    pass_through(abi::passthrough::nested);
    return false;
  }
  self.tid = static_cast<std::uint32_t>(sys::call(SYS_gettid));
  self.counters = claim_shard(*s);
  self.owned = self.counters != nullptr;
  if (self.counters == nullptr) {
    self.counters = &s->common[self.tid % abi::common_shards];
    s->head.commons_used.store(1, std::memory_order_relaxed);
  }
  refresh_caller_rules();
  self.generation = static_cast<std::uint32_t>(stage.fork_page->load(std::memory_order_acquire));
  self.settled = self.owned ? self.generation : ~0u;
  return true;
}

void refresh_caller_rules() {
  abi::segment* const s = stage.active.load(std::memory_order_relaxed);
  self.caller_rules = ~std::uint64_t{0};
  self.caller_serial = stage.threads_named.load(std::memory_order_relaxed);
  if (s == nullptr || !stage.has_callers) return;
  char name[17] = {};
  sys::call(SYS_prctl, PR_GET_NAME, sys::as_long(name));
  unsigned length = 0;
  while (length < 16 && name[length] != 0) ++length;
  self.caller_rules = core::caller_rules(stage.mine->rules, {name, length},
                                         static_cast<std::uint32_t>(sys::call(SYS_geteuid)));
  if (stage.has_roles) roles::look_at_thread({name, length});
}

void leave_process() {
  abi::segment* const s = stage.active.load(std::memory_order_acquire);
  std::uint32_t const slot = stage.slot.load();
  if (s == nullptr || slot == 0 || slot > abi::process_slots || self.is_vfork_child) return;
  // A fork child that made no call yet must not give away its parent's slot.
  if (stage.fork_page->load() == 0) return;
  auto pid = static_cast<std::uint32_t>(sys::call(SYS_getpid));
  if (s->process[slot - 1].pid.load() != pid) return;  // a child of clone, in its parent's memory
  stage.slot.store(0);
  // Whoever still makes calls (other destructors, threads that go on) joins anew, to the shared
  // counters.
  std::uint32_t const generation = stage.last_generation.load() + 1;
  stage.last_generation.store(generation);
  stage.fork_page->store(generation);
  release_shards(*s, slot);
  if (s->process[slot - 1].pid.compare_exchange_strong(pid, 0)) s->head.attached.fetch_sub(1);
}

bool still_a_segment(abi::segment const& s) {
  bool const intact = s.head.magic_word.load(std::memory_order_relaxed) == abi::magic &&
                      s.head.state.load(std::memory_order_relaxed) ==
                          static_cast<std::uint32_t>(abi::segment_state::ready);
  if (intact) return true;
  pass_through(abi::passthrough::damaged);
  stage.active.store(nullptr);
  return false;
}

abi::segment* enter_sandbox() {
  each_extra(&extra::go_blind);
  pass_through(abi::passthrough::sandboxed);
  std::uint32_t const slot = stage.slot.load();
  abi::segment* const s = stage.active.exchange(nullptr);
  if (s != nullptr && slot != 0) s->process[slot - 1].state.store(2);
  return s;
}

void leave_sandbox(abi::segment* s) {
  if (s == nullptr) return;
  each_extra(&extra::see_again);
  std::uint32_t const slot = stage.slot.load();
  if (slot != 0) s->process[slot - 1].state.store(1);
  s->head.passthrough_calls[static_cast<unsigned>(abi::passthrough::sandboxed)].fetch_sub(1);
  stage.active.store(s);
}

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::uint32_t coarse_tick() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return static_cast<std::uint32_t>(t.tv_sec) * 8 + static_cast<std::uint32_t>(t.tv_nsec >> 27);
}

}  // namespace sluice
