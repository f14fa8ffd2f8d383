// SPDX-License-Identifier: Apache-2.0
#include "attach.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "abi/ring_area.h"
#include "area.h"
#include "clock.h"
#include "extras.h"
#include "join.h"
#include "loaded.h"
#include "paths.h"
#include "plan.h"
#include "readable.h"
#include "roles.h"
#include "state.h"
#include "sys.h"

extern "C" __attribute__((weak)) char const* gnu_get_libc_version();

namespace sluice {

namespace {

constexpr unsigned longest_preload = 512;
constexpr long largest_page = 65536;
constexpr std::size_t private_bytes = largest_page + sizeof(private_map);

// One mapping: the fork page, as large as pages may be, and after it what the process remembers.
bool map_private() {
  long const at = sys::map(private_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(at)) return false;
  if (sys::failed(sys::call(SYS_madvise, at, largest_page, 18 /* MADV_WIPEONFORK */))) return false;
  stage.fork_page = reinterpret_cast<fork_words*>(at);
  stage.mine = reinterpret_cast<private_map*>(at + largest_page);
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

/// Bytes this process has mapped, and those of them that are data or stack.
struct memory_use {
  std::uint64_t all, data;
};

/// By /proc; none when it cannot tell.
memory_use mapped_memory() {
  long const fd =
      sys::call(SYS_openat, sys::at_cwd, sys::as_long("/proc/self/statm"), O_RDONLY | O_CLOEXEC, 0);
  if (sys::failed(fd)) return {};
  char text[128];
  long const length = sys::call(SYS_read, fd, sys::as_long(text), sizeof text);
  sys::call(SYS_close, fd);
  constexpr unsigned all = 0, data = 5, columns = 6;
  std::uint64_t pages[columns] = {};
  unsigned column = 0;
  for (long i = 0; i < length && column < columns; ++i) {
    bool const is_digit = text[i] >= '0' && text[i] <= '9';
    if (is_digit) pages[column] = pages[column] * 10 + static_cast<std::uint64_t>(text[i] - '0');
    if (!is_digit) ++column;
  }
  std::uint64_t const page_bytes = getauxval(AT_PAGESZ);
  return {pages[all] * page_bytes, pages[data] * page_bytes};
}

std::uint64_t limit_of(int resource) {
  rlimit limit = {};
  constexpr long self_process = 0;
  long const r = sys::call(SYS_prlimit64, self_process, resource, 0, sys::as_long(&limit));
  return sys::failed(r) ? RLIM_INFINITY : limit.rlim_cur;
}

bool is_little(std::uint64_t ours, std::uint64_t used, std::uint64_t limit) {
  return limit > used && limit - used > 4 * ours;
}

// Under `ulimit -v` and `-d` our memory is the program's loss: we take at most a quarter of what
// was left before the segment was mapped, with the areas that may come beside it. Data is what is
// private and may be written.
bool has_room(abi::segment const& s) {
  std::uint64_t const most = limit_of(RLIMIT_AS), most_data = limit_of(RLIMIT_DATA);
  if (most == RLIM_INFINITY && most_data == RLIM_INFINITY) return true;
  memory_use const now = mapped_memory();
  std::uint64_t const used = now.all > sizeof(abi::segment) ? now.all - sizeof(abi::segment) : 0;
  std::uint64_t const data = private_bytes + extra_bytes(&extra::private_pages);
  bool const has_rings = (s.head.areas.load(std::memory_order_relaxed) & abi::rings_beside) != 0;
  std::uint64_t const shared = sizeof(abi::segment) + extra_bytes(&extra::shared_pages) +
                               (has_rings ? sizeof(abi::ring_area) : 0);
  return is_little(shared + data, used, most) && is_little(data, now.data, most_data);
}

abi::segment* map_segment(char* path) {
  auto* const segment = map_area<abi::segment>(path, "segment", abi::refuse_head);
  if (segment == nullptr || has_room(*segment)) return segment;
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

// Without the area of roles nobody knows for what these hold: the job is held by its other limits.
void forget_role_rules(core::ruleset& rules) {
  std::uint64_t asks = 0;
  for (unsigned r = 0; r < rules.rule_count; ++r)
    if (rules.rule[r].role.length != 0) asks |= std::uint64_t{1} << r;
  for (unsigned o = 0; asks != 0 && o < core::op_count; ++o)
    for (std::uint64_t& mask : rules.rules_for[o]) mask &= ~asks;
}

__attribute__((destructor)) void detach() {
  each_extra(&extra::leave);
  leave_process();
}

}  // namespace

attached attach() {
  static constinit std::atomic<bool> begun{false};
  if (begun.load(std::memory_order_relaxed) || begun.exchange(true)) return attached::no;
  // stream.cc reads glibc's FILE; under another libc we are loaded by accident and stay out.
  if (gnu_get_libc_version == nullptr) return attached::no;
  char path[longest_preload + 16];
  if (!find_own_name(path, sizeof path)) return attached::no;
  abi::segment* const segment = map_segment(path);
  if (segment == nullptr || !map_private()) return attached::no;
  stage.is_in_memory = segment->head.is_in_memory != 0;
  if (!copy_rules(segment->rules)) return attached::no;
  learn_memory();
  std::uint32_t const beside = segment->head.areas.load(std::memory_order_relaxed);
  if ((beside & abi::paths_beside) != 0) paths::begin(path);
  if ((beside & abi::roles_beside) != 0) roles::begin(path);
  if (!stage.has_roles) forget_role_rules(stage.mine->rules);
  plan_calls(stage.mine->rules);
  stage.bucket = segment->bucket;
  join_process(*segment);
  stage.active.store(segment, std::memory_order_release);
  return begin_extras(beside, path) ? attached::before_libc : attached::yes;
}

namespace {

// Whether it may answer a call by the end of the program, or ask a supervisor who may never answer.
// A tracer's filter, for one, never does: what is started below that has the stage as before.
bool may_end_programs(long mode, long filter) {
  if (mode != SECCOMP_MODE_FILTER) return true;
  auto const* const program = reinterpret_cast<sock_fprog const*>(filter);
  if (!can_read(program) || !can_read(program->filter, program->len)) return true;
  for (unsigned i = 0; i < program->len; ++i) {
    sock_filter const& step = program->filter[i];
    if (BPF_CLASS(step.code) != BPF_RET) continue;
    std::uint32_t const answer = step.k & SECCOMP_RET_ACTION_FULL;
    bool const goes_on = answer == SECCOMP_RET_ALLOW || answer == SECCOMP_RET_LOG ||
                         answer == SECCOMP_RET_TRACE || answer == SECCOMP_RET_ERRNO;
    if (BPF_RVAL(step.code) != BPF_K || !goes_on) return true;
  }
  return false;
}

// Threads may try at once, and most tries are refused: a null filter asks whether there are filters
// at all. What they took out of sight is put back by the last one, if none got in.
namespace tries {
constexpr std::uint32_t puts_back = 1u << 31;
constinit std::atomic<std::uint32_t> under_way{0};
constinit std::atomic<abi::segment*> hidden{nullptr};
constinit std::atomic<bool> one_got_in{false}, one_forbids{false};  // the latter: and ends programs
constinit std::atomic<bool> one_was_left{false};                    // and never ends
}  // namespace tries

thread_local constinit unsigned own_tries __attribute__((tls_model("initial-exec"))) = 0;

// For a few instructions of another thread, but not for ever: a handler may have interrupted them.
void wait_while(std::uint32_t mask) {
  constexpr unsigned most_looks = 1u << 20;
  for (unsigned i = 0; i < most_looks; ++i)
    if ((tries::under_way.load() & mask) == 0) return;
}

// The same for a thread that is in no sandbox, and may sleep: the other one may have no processor.
// A handler may have left a try, or a fork, for ever (longjmp): that is waited for once.
void sleep_until_zero(std::atomic<std::uint32_t>& word) {
  constexpr unsigned looks_first = 1000, most_sleeps = 200;
  constexpr std::int64_t sleep_ns = 1'000'000;
  for (unsigned i = 0; i < looks_first + most_sleeps && !tries::one_was_left.load(); ++i) {
    std::uint32_t const seen = word.load();
    if (seen == 0) return;
    if (i >= looks_first) sys::futex_wait(&word, seen, now_ns() + sleep_ns, ~0u);
  }
  tries::one_was_left.store(true);
}

// Who begins while another puts back, or forks, waits.
void begin_try() {
  constexpr int most_rounds = 10;
  ++own_tries;
  for (int round = 0;; ++round) {
    bool const waits =
        stage.fork_page != nullptr && !tries::one_got_in.load() && !tries::one_was_left.load();
    if (waits) sleep_until_zero(stage.fork_page->forks);
    if ((tries::under_way.fetch_add(1) & tries::puts_back) != 0) wait_while(tries::puts_back);
    if (!waits || stage.fork_page->forks.load() == 0 || round == most_rounds) return;
    tries::under_way.fetch_sub(1);
  }
}

void put_back() {
  sys::is_forbidden.store(tries::one_forbids.load());
  abi::segment* const s = tries::one_got_in.load() ? nullptr : tries::hidden.exchange(nullptr);
  if (s == nullptr) return;
  each_extra(&extra::see_again);
  std::uint32_t const slot = stage.fork_page->slot.load();
  if (slot != 0) abi::process_of(*s, slot - 1).state.store(1);
  // A child of a handler in the try comes here as well.
  auto& sandboxed = s->head.passthrough_calls[static_cast<unsigned>(abi::passthrough::sandboxed)];
  if (sandboxed.load() != 0) sandboxed.fetch_sub(1);
  stage.active.store(s);
}

void end_try() {
  --own_tries;
  std::uint32_t now = tries::under_way.load();
  while (!tries::under_way.compare_exchange_weak(now, now == 1 ? tries::puts_back : now - 1)) {
  }
  if (now != 1) return;
  put_back();
  tries::under_way.fetch_sub(tries::puts_back);
}

}  // namespace

void await_tries() {
  if (own_tries == 0 && !tries::one_got_in.load()) wait_while(~std::uint32_t{0});
}

bool begin_fork() {
  bool const is_out = stage.fork_page == nullptr;  // for the whole life of this process
  if (is_out || own_tries != 0 || tries::one_got_in.load()) return false;
  stage.fork_page->forks.fetch_add(1);
  sleep_until_zero(tries::under_way);
  return true;
}

void end_fork() { stage.fork_page->forks.fetch_sub(1); }

bool only_asks(long mode, long filter) {
  if (mode != SECCOMP_MODE_FILTER || !may_ask()) return false;
  auto const* const program = reinterpret_cast<sock_fprog const*>(filter);
  return !can_read(program) || !can_read(program->filter, program->len);
}

outside enter_sandbox(long mode, long filter) {
  outside const before = {may_end_programs(mode, filter), self.is_vfork_child};
  if (before.is_vfork_child != 0) {
    self.is_vfork_child = vfork_child_in_sandbox;
    return before;
  }
  begin_try();
  // What they do for it takes calls of their own.
  bool const is_seeing = stage.active.load() != nullptr;
  if (is_seeing) each_extra(&extra::go_blind);
  if (before.forbids) sys::is_forbidden.store(true);
  abi::segment* const s = stage.active.exchange(nullptr);
  if (s == nullptr && is_seeing) each_extra(&extra::see_again);  // another one took it meanwhile
  if (s == nullptr) return before;
  s->head.passthrough_calls[static_cast<unsigned>(abi::passthrough::sandboxed)].fetch_add(1);
  std::uint32_t const slot = stage.fork_page->slot.load();
  if (slot != 0) abi::process_of(*s, slot - 1).state.store(2);
  tries::hidden.store(s);
  return before;
}

void after_sandbox(outside const& before, bool is_in) {
  if (before.is_vfork_child != 0) {
    if (!is_in) self.is_vfork_child = before.is_vfork_child;
    return;
  }
  if (is_in && before.forbids) tries::one_forbids.store(true);
  if (is_in) tries::one_got_in.store(true);
  end_try();
}

}  // namespace sluice
