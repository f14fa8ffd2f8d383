// SPDX-License-Identifier: Apache-2.0
// See readable.h. The kernel is asked with a call that it refuses after it has read its argument:
// rt_sigprocmask with a `how` that does not exist. It changes nothing, needs no descriptor, and may
// be made in a signal handler.
#include "readable.h"

#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include <cerrno>

#include "sys.h"

extern "C" std::uintptr_t __curbrk __attribute__((weak));

namespace sluice {

constinit known_memory known;
thread_local constinit own_stack own;

namespace {

// mmap() gives no addresses this near below the first stack, however small that may grow.
constexpr std::uintptr_t stack_reserve = std::uintptr_t{64} << 20;
constexpr std::uintptr_t most_of_own = 64 << 10;  // what a thread asks for at most

std::uintptr_t page_of(std::uintptr_t at) { return at & -page_size; }

// Whether valgrind simulates this processor: its request RUNNING_ON_VALGRIND, which is rotations
// that change nothing elsewhere (valgrind.h).
bool is_simulated() {
  constexpr std::uintptr_t running_on_valgrind = 0x1001;
  std::uintptr_t const request[6] = {running_on_valgrind};
  std::uintptr_t answer = 0;
#if defined(__x86_64__)
  __asm__ volatile(
      "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(request)
      : "cc", "memory");
#elif defined(__aarch64__)
  register std::uintptr_t x3 __asm__("x3") = answer;
  register std::uintptr_t const* x4 __asm__("x4") = request;
  __asm__ volatile(
      "ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61; "
      "orr x10, x10, x10"
      : "+r"(x3)
      : "r"(x4)
      : "cc", "memory");
  answer = x3;
#endif
  return answer != 0;
}

// Valgrind warns of the question, so there another one is put, to which a page that may not be read
// is one as well.
bool is_mapped(std::uintptr_t at) {
  unsigned char is_resident;
  if (known.is_simulated)
    return sys::call(SYS_mincore, static_cast<long>(page_of(at)), 1, sys::as_long(&is_resident)) ==
           0;
  return sys::call(SYS_rt_sigprocmask, ~0, static_cast<long>(at & -8ul), 0, 8) == -EINVAL;
}

// The first stack only grows, so all from here to its end is there. Other stacks lie elsewhere.
void learn_stack() {
  auto const here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (known.has_holes.load() || known.stack_limit - page_size - here > stack_reserve) return;
  std::uintptr_t low = known.stack.low.load();
  while (here < low && !known.stack.low.compare_exchange_weak(low, here)) {
  }
}

void widen_own(std::uintptr_t low, std::uintptr_t end) {
  std::uintptr_t was = known.own_low.load();
  while (low < was && !known.own_low.compare_exchange_weak(was, low)) {
  }
  was = known.own_end.load();
  while (end > was && !known.own_end.compare_exchange_weak(was, end)) {
  }
}

// Every libc puts what the thread pointer points to on top of the thread's stack. What is in use
// lies between here and there; each page of it is asked for once, from the top, for a coroutine's
// stack may lie below with a gap between. The shared bounds are widened first: who takes pages away
// meanwhile then changes the version, and what was learned is not believed.
void learn_own(std::uintptr_t at) {
  auto const here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  auto const top = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  if (at < here || at >= top || top - at > most_of_own) return;
  std::uintptr_t const end = page_of(top) + page_size, low = page_of(at);
  widen_own(low, end);
  std::uint32_t const version = known.version.load();
  std::uintptr_t next = own.version == version && own.end == end ? own.low : end;
  while (next > low && is_mapped(next - page_size)) next -= page_size;
  own.end = 0;  // a signal handler may come here too
  std::atomic_signal_fence(std::memory_order_seq_cst);
  own.low = next;
  own.version = version;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  own.end = end;
}

// The first part of an arena knows of none before it, and the arena itself follows its head.
bool is_arena(std::uintptr_t begin) {
  if (begin == 0 || !is_mapped(begin)) return false;
  auto const& head = *reinterpret_cast<arena_head const*>(begin);
  std::uintptr_t const distance = head.state - begin;
  return head.previous == 0 && distance > sizeof head && distance <= 128 &&
         head.size.load() % page_size == 0;
}

// The kernel has just said that there is something at `at`; `version` is of before.
void learn_page(std::uintptr_t at, std::uint32_t version) {
  // The first heap would take the place of an arena.
  if (is_known(reinterpret_cast<void const*>(at))) return;
  std::uintptr_t const begin = at & -arena_span, page = (at - begin) / page_size;
  unsigned const place = arena_place(at);
  std::uintptr_t seen = known.arena[place].load();
  if (seen == 0)
    known.arena[place].compare_exchange_strong(seen, is_arena(begin) ? begin : begin | 1);
  if (known.arena[place].load() != begin) return;
  known.has_arenas.store(true);
  auto& asked = stage.mine->arena_asked[place][page / 64];
  std::uint64_t const bit = std::uint64_t{1} << page % 64;
  asked.fetch_or(bit);
  if (known.version.load() != version) asked.fetch_and(~bit);
}

// The last run of readable pages without a gap: constants and data.
void learn_image() {
  auto const* part = reinterpret_cast<ElfW(Phdr) const*>(getauxval(AT_PHDR));
  if (part == nullptr || part->p_type != PT_PHDR) return;
  std::uintptr_t const base = reinterpret_cast<std::uintptr_t>(part) - part->p_vaddr;
  std::uintptr_t low = 0, last = 0, end = 0;
  for (auto left = getauxval(AT_PHNUM); left != 0; --left, ++part) {
    if (part->p_type != PT_LOAD) continue;
    std::uintptr_t const begin = page_of(base + part->p_vaddr);
    if (begin != end) low = begin;
    last = base + part->p_vaddr + part->p_memsz;
    end = page_of(last + page_size - 1);
    if ((part->p_flags & PF_R) == 0) low = end;
  }
  known.image_end = end;
  known.image_limit = last == end ? end : last + page_size;
  known.image.low.store(low);
}

std::uintptr_t heap_end() { return *known.heap.limit; }

// The kernel has just said that there is something at `at`.
void learn_heap(std::uintptr_t at) {
  bool const is_heap = known.image_end != 0 && at >= known.image_end && at < heap_end();
  if (is_heap && !known.has_holes.load() && at < known.heap.low.load())
    known.heap.low.store(page_of(at));
}

void forget_known() {
  known.has_holes.store(true);
  for (region* r : {&known.stack, &known.image, &known.heap}) r->low.store(~std::uintptr_t{0});
}

// At the cost of a few questions: threads learn of their stacks anew.
void forget_asked(std::uintptr_t at, std::uintptr_t end) {
  if (end > known.own_low.load() && at < known.own_end.load()) ++known.version;
  if (!known.has_arenas.load()) return;
  for (unsigned place = 0; place < arena_places; ++place) {
    std::uintptr_t const begin = known.arena[place].load(std::memory_order_relaxed);
    if (begin == 0 || (begin & 1) != 0 || end <= begin || at >= begin + arena_span) continue;
    ++known.version;
    // malloc never takes the head of one away, so this is none.
    if (at <= begin) known.arena[place].store(begin | 1);
    for (auto& pages : stage.mine->arena_asked[place]) pages.store(0);
  }
}

}  // namespace

void learn_memory() {
  known.is_simulated = is_simulated();
  known.stack_limit = getauxval(AT_EXECFN) + page_size;
  known.stack.limit = &known.stack_limit;
  known.image.limit = &known.image_limit;
  known.heap.limit = &__curbrk != nullptr ? &__curbrk : &known.nothing;
  learn_image();
  learn_stack();
}

bool ask_for_text(char const* text, std::size_t most) {
  if (!may_ask()) return false;
  learn_stack();
  auto const begin = reinterpret_cast<std::uintptr_t>(text);
  learn_own(begin);
  if (most <= core::max_path && (is_known(text) || is_asked_text(text))) return true;
  for (std::uintptr_t at = begin; at - begin < most; at = page_of(at) + page_size) {
    std::uint32_t const version = known.version.load();
    if (!is_mapped(at)) return false;
    if (at == begin) learn_heap(at);
    learn_page(at, version);
    std::size_t const here = page_of(at) + page_size - at;
    if (memchr(reinterpret_cast<void*>(at), 0, here) != nullptr) break;
  }
  return true;
}

bool ask_for_bytes(void const* p, std::size_t size) {
  if (!may_ask()) return false;
  learn_stack();
  auto const begin = reinterpret_cast<std::uintptr_t>(p);
  learn_own(begin);
  if (are_known(p, size) || asked_bytes(p) >= size) return true;
  for (std::uintptr_t at = begin; at - begin < size; at = page_of(at) + page_size) {
    std::uint32_t const version = known.version.load();
    if (!is_mapped(at)) return false;
    if (at == begin) learn_heap(at);
    learn_page(at, version);
  }
  return true;
}

bool ends_within(char const* text, std::size_t size) { return memchr(text, 0, size) != nullptr; }

region const* region_of(void const* p) {
  auto const at = reinterpret_cast<std::uintptr_t>(p);
  for (region const* r : {&known.stack, &known.image, &known.heap})
    if (is_in(*r, at)) return r;
  return &known.stack;
}

void note_taken_away(std::uintptr_t at, std::size_t size) {
  std::uintptr_t const end = at + size;
  forget_asked(at, end);
  if (known.has_holes.load(std::memory_order_relaxed)) return;
  std::uintptr_t const low = known.image.low.load();
  std::uintptr_t const top = heap_end() > known.image_end ? heap_end() : known.image_end;
  bool const of_stack = end > known.stack_limit - page_size - stack_reserve;
  if (of_stack || (end > low && at < top)) forget_known();
}

void note_detached(std::uintptr_t at) { forget_asked(at, ~std::uintptr_t{0}); }

void note_break(std::uintptr_t at) {
  if (at != 0 && at < heap_end()) note_taken_away(at, heap_end() - at);
}

void note_advice(iovec const* parts, std::size_t count, int advice) {
  if (!takes_away(advice) || count > 1024 || !can_read(parts, count)) return;
  for (std::size_t i = 0; i < count; ++i)
    note_taken_away(reinterpret_cast<std::uintptr_t>(parts[i].iov_base), parts[i].iov_len);
}

}  // namespace sluice
