// SPDX-License-Identifier: Apache-2.0
// See roles.h. What a thread knows of itself lies in thread-local words that only it writes, and
// its signal handlers, which compute the same. Who made a file is a word of the job's area, so that
// another process of the job knows it too.
#include "roles.h"

#include <errno.h>
#include <linux/prctl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "area.h"
#include "clock.h"
#include "core/glob.h"
#include "name_buffer.h"
#include "readable.h"

namespace sluice::roles {

constinit memory* mine = nullptr;
constinit abi::role_area* area = nullptr;

namespace {

using core::no_clause;
using core::no_role;

/// What is known of the calling thread. Masks are of clauses.
struct thread_roles {
  std::uint64_t clauses = 0;  // those its name lets through
  std::uint64_t read = 0;     // those of which it read the files
  std::uint32_t told = no_role;
};
thread_local constinit thread_roles me __attribute__((tls_model("initial-exec")));

constexpr unsigned role_slot(unsigned role) {
  return role < core::max_roles ? role : core::max_roles;
}

constexpr unsigned longest_title = 128;
struct title_place {
  char const* at = nullptr;
  unsigned room = 0;
};
constinit title_place title;

// The kernel lays the words of the command line, the environment and the name of the program's file
// one after the other, and all stay mapped. Programs that show what they do write over the first.
void find_title() {
  auto const* const first = program_invocation_name;
  auto const end = static_cast<std::uintptr_t>(getauxval(AT_EXECFN));
  auto const at = reinterpret_cast<std::uintptr_t>(first);
  constexpr std::uintptr_t most = 2u << 20;  // of arguments that the kernel takes, by far
  if (at == 0 || end <= at || end - at > most) return;
  title = {first, static_cast<unsigned>(end - at < longest_title ? end - at : longest_title)};
}

std::uint64_t hash_of_title(char const* text, unsigned length) {
  return core::hash_of(text, length) | 1;
}

// Nobody tells when it changes: it is compared, as many bytes as a pattern may ask for.
void look_at_title() {
  char text[longest_title];
  unsigned length = 0;
  while (length < title.room && title.at[length] != 0) {
    text[length] = title.at[length];
    ++length;
  }
  while (length > 0 && text[length - 1] == ' ') --length;
  std::uint64_t const now = hash_of_title(text, length);
  if (mine->title_seen.load(std::memory_order_relaxed) == now) return;
  mine->of_title.store(core::clauses_of_title(mine->table, {text, length}),
                       std::memory_order_relaxed);
  mine->title_seen.store(now, std::memory_order_relaxed);
}

void look_at_process() {
  char path[512];
  long const length = read_own_link("exe", path, sizeof path);
  auto const* const script = reinterpret_cast<char const*>(getauxval(AT_EXECFN));
  std::string_view const program = sys::failed(length)
                                       ? std::string_view()
                                       : std::string_view(path, static_cast<unsigned long>(length));
  mine->of_process = core::clauses_of_process(
      mine->table, {program, script == nullptr ? program : std::string_view(script), environ});
  find_title();
  mine->of_title.store(core::clauses_of_title(mine->table, ""));
}

// Most of the room for strings is empty.
bool copy_table(core::role_table const& from) {
  core::role_table& to = mine->table;
  __builtin_memcpy(&to, &from, offsetof(core::role_table, strings));
  if (to.string_bytes > sizeof to.strings) return false;
  __builtin_memcpy(to.strings, from.strings, to.string_bytes);
  return core::validate(to) == nullptr;
}

void index_table() {
  core::role_table const& t = mine->table;
  mine->with_log = core::clauses_with_log(t);
  mine->with_reads = core::clauses_with_reads(t);
  for (unsigned o = 0; o < core::op_count; ++o)
    mine->of_op[o] = core::clauses_of_op(t, static_cast<core::op>(o));
  for (unsigned r = 0; r <= core::max_roles; ++r) {
    mine->of_maker[r] = core::clauses_of_maker(t, r);
    mine->of_reader[r] = core::clauses_of_reader(t, r);
  }
  for (unsigned i = 0; i < t.clause_count; ++i) {
    core::role_clause const& c = t.clause[i];
    mine->asks_title |= c.title.length != 0;
    mine->asks_maker |= c.made_by != 0 || c.reads != 0;
    bool const asks_name = c.path.length + c.log_path.length + c.until.length != 0;
    stage.has_path_globs |= asks_name || mine->asks_maker;
    for (core::text const& at : {c.path, c.log_path, c.until})
      stage.has_whole_globs |= core::view(t, at).find('/') != std::string_view::npos;
  }
}

// A file of which nobody knows the name: clauses that ask for one do not have it.
void make_unnamed() {
  std::uint64_t clauses = 0;
  for (unsigned i = 0; i < mine->table.clause_count; ++i)
    if (mine->table.clause[i].path.length == 0) clauses |= std::uint64_t{1} << i;
  mine->file[0].clauses.store(clauses & mine->of_maker[core::max_roles]);
  mine->file[0].maker.store(no_role);
}

std::uint64_t told_mask() {
  return (std::uint64_t{1} << mine->table.role_count) - 1;  // role_count is at most 32
}

struct wanted_class {
  std::uint64_t rules, clauses, logs, ends;
  std::uint32_t maker;
};

bool is_same(file_class const& f, wanted_class const& w) {
  return f.is_ready.load(std::memory_order_acquire) &&
         f.clauses.load(std::memory_order_relaxed) == w.clauses &&
         f.logs.load(std::memory_order_relaxed) == w.logs &&
         f.ends.load(std::memory_order_relaxed) == w.ends &&
         f.maker.load(std::memory_order_relaxed) == w.maker;
}

// Who is killed in between leaves a place that nobody uses.
unsigned intern(wanted_class const& w) {
  for (unsigned i = 1; i < max_path_classes; ++i) {
    std::atomic<std::uint64_t>& rules = stage.mine->path_class[i];
    file_class& f = mine->file[i];
    std::uint64_t seen = rules.load(std::memory_order_acquire);
    if (seen == w.rules && is_same(f, w)) return i;
    if (seen != 0 || !rules.compare_exchange_strong(seen, w.rules)) continue;
    f.clauses.store(w.clauses, std::memory_order_relaxed);
    f.logs.store(w.logs, std::memory_order_relaxed);
    f.ends.store(w.ends, std::memory_order_relaxed);
    f.maker.store(w.maker, std::memory_order_relaxed);
    f.is_ready.store(true, std::memory_order_release);
    return i;
  }
  area->head.unclassed.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

unsigned with_maker(unsigned path_class, unsigned role) {
  if (path_class == 0) return 0;
  file_class const& f = mine->file[path_class];
  if (f.maker.load(std::memory_order_relaxed) == role) return path_class;
  // What its name lets through was narrowed to files that nobody made.
  std::uint64_t const before = f.clauses.load(std::memory_order_relaxed);
  std::uint64_t clauses = 0;
  for (unsigned i = 0; i < mine->table.clause_count; ++i) {
    bool const asks = mine->table.clause[i].made_by != 0;
    clauses |= (asks ? mine->of_maker[role_slot(role)] : before) & std::uint64_t{1} << i;
  }
  return intern({stage.mine->path_class[path_class].load(std::memory_order_relaxed), clauses,
                 f.logs.load(std::memory_order_relaxed), f.ends.load(std::memory_order_relaxed),
                 role});
}

logged_thread& logged(std::uint32_t tid) { return mine->logged[tid % logged_threads]; }

std::uint64_t clauses_logged() {
  logged_thread const& at = logged(self.tid);
  bool const is_ours = at.tid.load(std::memory_order_acquire) == self.tid;
  return is_ours ? at.clauses.load(std::memory_order_relaxed) : 0;
}

void keep_logged(unsigned clause, core::log_line const& said) {
  std::uint32_t const tid = said.thread != 0 ? said.thread : self.tid;
  std::uint64_t const bit = std::uint64_t{1} << clause;
  logged_thread& at = logged(tid);
  if (at.tid.load(std::memory_order_relaxed) != tid) {
    at.clauses.store(0, std::memory_order_relaxed);
    at.tid.store(tid, std::memory_order_release);
  }
  if (said.is == core::log_verdict::holds)
    at.clauses.fetch_or(bit, std::memory_order_relaxed);
  else
    at.clauses.fetch_and(~bit, std::memory_order_relaxed);
}

constexpr std::uint64_t role_bits = 0xff;

std::uint64_t key_of(sys::file_identity const& file) {
  std::uint64_t const parts[] = {file.device, file.inode, file.birth_ns};
  return core::hash_of(reinterpret_cast<char const*>(parts), sizeof parts) & ~role_bits;
}

std::atomic<std::uint64_t>& maker_word(std::uint64_t key, unsigned way) {
  constexpr unsigned sets = abi::maker_slots / abi::maker_ways;
  return area->maker[(key >> 8) % sets * abi::maker_ways + way % abi::maker_ways];
}

unsigned maker_of(std::uint64_t key) {
  for (unsigned way = 0; way < abi::maker_ways; ++way) {
    std::uint64_t const word = maker_word(key, way).load(std::memory_order_relaxed);
    if ((word & ~role_bits) == key && (word & role_bits) != 0) {
      unsigned const role = static_cast<unsigned>(word & role_bits) - 1;
      return role < mine->table.role_count ? role : no_role;
    }
  }
  return no_role;
}

void keep_maker(std::uint64_t key, unsigned role) {
  std::uint64_t const word = key | (role + 1);
  for (unsigned way = 0; way < abi::maker_ways; ++way) {
    std::uint64_t seen = maker_word(key, way).load(std::memory_order_relaxed);
    bool const is_ours = seen == 0 || (seen & ~role_bits) == key;
    if (is_ours && maker_word(key, way).compare_exchange_strong(seen, word)) return;
  }
  maker_word(key, coarse_tick()).store(word, std::memory_order_relaxed);
}

unsigned clause_of(visit const& v) { return v.clause == 0 ? no_clause : v.clause - 1u; }

abi::role_counts& counts_of(visit const& v) {
  unsigned const clause = clause_of(v);
  return area->count[self.tid % abi::role_shards][clause < no_clause ? clause : no_clause];
}

void add_shared(std::atomic<std::uint64_t>& to, std::uint64_t n) {
  to.fetch_add(n, std::memory_order_relaxed);
}

}  // namespace

void begin(char* segment_path) {
  auto* const found = map_area<abi::role_area>(
      segment_path, "roles",
      [](auto const& a, std::uint64_t bytes) { return abi::refuse_reason(a, bytes); });
  if (found == nullptr) return;
  long const at = sys::map(sizeof(memory), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(at)) return;
  mine = reinterpret_cast<memory*>(at);
  if (!copy_table(found->table)) {
    mine = nullptr;
    return;
  }
  area = found;
  index_table();
  make_unnamed();
  look_at_process();
  stage.has_roles = true;
  stage.has_callers = true;
}

bool reads_logs() { return mine != nullptr && mine->with_log != 0; }

unsigned decide(core::op what, unsigned entry) {
  file_class const& f = mine->file[entry >> entry_path_shift];
  unsigned const maker = f.maker.load(std::memory_order_relaxed);
  if (maker != no_role && what == core::op::read) me.read |= mine->of_reader[role_slot(maker)];
  if (what == core::op::write) me.read &= ~f.ends.load(std::memory_order_relaxed);
  if (mine->asks_title) look_at_title();
  std::uint64_t const held = (~mine->with_log | (mine->with_log == 0 ? 0 : clauses_logged())) &
                             (~mine->with_reads | me.read);
  std::uint64_t const told =
      me.told == no_role ? ~told_mask() : ~told_mask() | std::uint64_t{1} << me.told;
  std::uint64_t const mask = me.clauses & held & told & f.clauses.load(std::memory_order_relaxed) &
                             mine->of_op[static_cast<unsigned>(what)] &
                             mine->of_title.load(std::memory_order_relaxed);
  return mask == 0 ? no_clause : static_cast<unsigned>(__builtin_ctzll(mask));
}

std::uint64_t rules_of(unsigned clause) {
  core::role_table const& t = mine->table;
  return t.rules_of[clause < t.clause_count ? t.clause[clause].role : core::max_roles];
}

void count_call(visit const& v) { add_shared(counts_of(v).calls, 1); }

void count_moved(visit const& v, std::uint64_t moved) {
  if (v.what == core::op::read) add_shared(counts_of(v).read_bytes, moved);
  if (v.what == core::op::write) add_shared(counts_of(v).written_bytes, moved);
}

void count_wait(visit const& v, std::uint64_t waited_ns, bool is_first) {
  abi::role_counts& c = counts_of(v);
  if (is_first) add_shared(c.delayed, 1);
  add_shared(c.waited_ns, waited_ns);
}

void look_at_thread(std::string_view name) {
  me.clauses = mine->of_process & core::clauses_of_thread(mine->table, name);
}

unsigned class_of_name(std::uint64_t rules, std::string_view path) {
  core::role_file const file = core::file_named(mine->table, path);
  if (rules == 0) rules = std::uint64_t{1} << 63 & ~stage.plain_rules;  // 0 means a free place
  return intern(
      {rules, file.clauses & mine->of_maker[core::max_roles], file.logs, file.ends, no_role});
}

unsigned class_of_file(unsigned path_class, sys::file_identity const& file) {
  if (!mine->asks_maker || !S_ISREG(file.mode)) return path_class;
  unsigned const role = maker_of(key_of(file));
  return role == no_role ? path_class : with_maker(path_class, role);
}

bool asks_maker() { return mine->asks_maker; }

unsigned class_of_made(unsigned path_class, sys::file_identity const& file, visit const& v) {
  unsigned const clause = clause_of(v);
  if (clause >= mine->table.clause_count) return path_class;
  unsigned const role = mine->table.clause[clause].role;
  keep_maker(key_of(file), role);
  return with_maker(path_class, role);
}

bool is_log(unsigned path_class) {
  return mine->file[path_class % max_path_classes].logs.load(std::memory_order_relaxed) != 0;
}

void note_written(unsigned path_class, std::string_view text) {
  file_class const& f = mine->file[path_class % max_path_classes];
  if (!joined()) return;
  core::read_log(mine->table, f.logs.load(std::memory_order_relaxed), text, keep_logged);
}

}  // namespace sluice::roles

// A program says what its calling thread does from now on; null, or a name that the policy does not
// have: what the policy finds.
extern "C" __attribute__((visibility("default"))) void sluice_role_begin(char const* name);
void sluice_role_begin(char const* name) {
  using namespace sluice;
  bool const is_on = roles::mine != nullptr && !self.is_vfork_child;
  if (!is_on || stage.active.load(std::memory_order_relaxed) == nullptr) return;
  unsigned told = core::no_role;
  if (name != nullptr && can_read_text(name)) {
    constexpr unsigned longest_name = 2 * core::most_glob_bytes;
    unsigned length = 0;
    while (length < longest_name && name[length] != 0) ++length;
    told = core::role_told(roles::mine->table, roles::mine->of_process, {name, length});
    if (told == core::no_role)
      roles::area->head.unknown_told.fetch_add(1, std::memory_order_relaxed);
  }
  roles::me.told = told;
}
