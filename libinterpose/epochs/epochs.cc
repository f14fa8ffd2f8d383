// SPDX-License-Identifier: Apache-2.0
// Cluster epochs in the stage: where a job has a file `after` (abi/after_area.h), bodies of its own
// stand before libc and before those of order/calls.cc. A call that is about to make, open to be
// written, or give a name like `write` asks the node's daemon first, and fails with EIO unless all
// that the job wrote is durable. A job without that file runs the instructions it always ran.
// Must stay true: such a call goes on only by an answer. The gate stands before the call, not at
// the fsync: what is written may be durable at any moment from then on, without one.

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/after_area.h"
#include "area.h"
#include "clock.h"
#include "core/durations.h"
#include "core/glob.h"
#include "extras.h"
#include "join.h"
#include "name_buffer.h"
#include "order/bodies.h"
#include "rows.h"
#include "sys.h"

namespace sluice::epochs {

using abi::after_state;
using order::refused;

namespace {

constexpr std::int64_t slice_ns = 50'000'000, margin_ns = 2'000'000'000;

constinit abi::after_area* area = nullptr;
// A gate stayed shut, and the program may have gone on: see closed_for_sync.
constinit std::atomic<bool> has_failed{false};

void count(abi::after_count what) {
  area->head.count[static_cast<unsigned>(what)].fetch_add(1, std::memory_order_relaxed);
}

std::string_view text_in(char const* at, std::size_t most) { return {at, strnlen(at, most)}; }

// ---- names

long open_path(int dir, char const* path, int flags) {
  return sys::call(SYS_openat, dir, sys::as_long(path), O_PATH | O_CLOEXEC | flags, 0);
}

/// The kernel says the same to the call itself, and nothing is changed.
bool is_refused_as_well(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP ||
         error == ENAMETOOLONG || error == EBADF;
}
int why_no_name(long opened) {
  return is_refused_as_well(static_cast<int>(-opened)) ? 0 : static_cast<int>(opened);
}

// The length of a name; 0: nothing can have it; a negative error number: nobody can tell.

/// What the kernel calls what is there by that name. `path` may be the text of `to`.
int name_of(int dir, char const* path, int flags, name_buffer& to) {
  long const fd = open_path(dir, path, flags);
  if (sys::failed(fd)) return why_no_name(fd);
  int const length = to.ask(static_cast<int>(fd));
  sys::call(SYS_close, fd);
  return length;
}

/// The name that `path` would give to a new file: its directory as the kernel knows it, and the
/// last part.
[[gnu::noinline]] int name_in(int dir, char const* path, name_buffer& to) {
  std::size_t length = strnlen(path, core::max_path);
  if (length == core::max_path) return 0;
  while (length > 1 && path[length - 1] == '/') --length;
  std::size_t last = length;
  while (last > 0 && path[last - 1] != '/') --last;
  std::string_view const part(path + last, length - last);
  if (part.empty() || part == "." || part == "..") return name_of(dir, path, 0, to);
  if (!to.holds(last + 1)) return -ENOMEM;
  __builtin_memcpy(to.text(), path, last);
  to.text()[last] = 0;
  int const parent = name_of(dir, last == 0 ? "." : to.text(), O_DIRECTORY, to);
  if (parent <= 0) return parent;
  auto at = static_cast<std::size_t>(parent);
  if (!to.holds(at + part.size() + 2)) return -ENOMEM;
  if (to.text()[at - 1] != '/') to.text()[at++] = '/';
  __builtin_memcpy(to.text() + at, part.data(), part.size());
  to.text()[at + part.size()] = 0;
  return static_cast<int>(at + part.size());
}

/// Where the link of that name leads, which lies in `to` and is a whole path.
int name_after(name_buffer& to, name_buffer const& link, int own) {
  if (link.text()[0] == '/') return name_in(sys::at_cwd, link.text(), to);
  while (own > 0 && to.text()[own - 1] != '/') --own;
  to.text()[own] = 0;
  long const parent = open_path(sys::at_cwd, to.text(), O_DIRECTORY);
  if (sys::failed(parent)) return why_no_name(parent);
  int const found = name_in(static_cast<int>(parent), link.text(), to);
  sys::call(SYS_close, parent);
  return found;
}

/// Links that lead to nothing, one after the other, to the name that an open would make.
[[gnu::noinline]] int name_at_the_end(int dir, char const* path, name_buffer& to) {
  constexpr unsigned most_links = 40;  // the kernel's own limit
  name_buffer link;
  int own = name_in(dir, path, to);
  for (unsigned i = 0; i < most_links && own > 0; ++i) {
    int const length = link.ask_link(sys::at_cwd, to.text());
    if (length == -ENOENT || length == -EINVAL) return own;
    if (length <= 0) return length;
    own = name_after(to, link, own);
  }
  return own;
}

bool is_link(int dir, char const* path) {
  char first;
  return sys::call(SYS_readlinkat, dir, sys::as_long(path), sys::as_long(&first), 1) > 0;
}

/// The same for a call that follows a link in the last part, to a file that may not be there yet.
int name_behind(int dir, char const* path, name_buffer& to) {
  if (!is_link(dir, path)) return name_in(dir, path, to);
  int const there = name_of(dir, path, 0, to);
  return there != 0 ? there : name_at_the_end(dir, path, to);
}

/// With a '/' a pattern is of the whole name below the target, else of its last part.
bool is_like(std::string_view glob, std::string_view name) {
  if (glob.find('/') == std::string_view::npos) {
    std::size_t const slash = name.rfind('/');
    name.remove_prefix(slash == std::string_view::npos ? 0 : slash + 1);
  }
  return core::glob_match(glob, name);
}

struct found_rule {
  unsigned rule;  // + 1; 0: none
  std::string_view name;
};

/// The innermost rule whose tree the name lies in.
found_rule rule_of(std::string_view name) {
  found_rule best = {0, {}};
  std::size_t deepest = 0;
  for (unsigned i = 0; i < abi::after_rules && i < area->head.rules; ++i) {
    std::string_view root = text_in(area->rule[i].root, sizeof area->rule[i].root);
    if (!root.empty() && root.back() == '/') root.remove_suffix(1);
    bool const is_in = name.size() > root.size() && name.substr(0, root.size()) == root &&
                       name[root.size()] == '/';
    if (!is_in || (best.rule != 0 && root.size() <= deepest)) continue;
    best = {i + 1, name.substr(root.size())};
    deepest = root.size();
  }
  return best;
}

/// Seen from elsewhere, by another mount, the tree has another name: then its target says.
found_rule rule_by_target(unsigned entry, std::string_view name) {
  unsigned const target = (entry & entry_kind_mask) - entry_first_target;
  if ((entry & entry_kind_mask) < entry_first_target || target >= core::max_targets) return {0, {}};
  return {area->head.rule_of[target], name};
}

// ---- asking

bool swap(abi::after_slot& s, std::uint32_t user, after_state from, after_state to) {
  std::uint32_t seen = word_of(user, from);
  return s.word.compare_exchange_strong(seen, word_of(user, to));
}

abi::after_slot* claim_slot(std::uint32_t& user) {
  for (abi::after_slot& s : area->slot) {
    std::uint32_t seen = s.word.load();
    if ((seen & 7) != static_cast<std::uint32_t>(after_state::free)) continue;
    user = ((seen >> 3) + 1) & 0x1fffffff;
    s.since_ns.store(static_cast<std::uint64_t>(now_ns()));
    if (s.word.compare_exchange_strong(seen, word_of(user, after_state::claimed))) return &s;
  }
  return nullptr;
}

constexpr int no_answer = -1, no_slot = -2;

/// 0, an error number, or one of these.
int ask_daemon(unsigned rule, std::int64_t until_ns) {
  std::uint32_t user = 0;
  abi::after_slot* s = claim_slot(user);
  for (; s == nullptr; s = claim_slot(user)) {
    std::int64_t const at_ns = now_ns();
    if (at_ns >= until_ns) return no_slot;
    std::uint32_t const word = area->slot[0].word.load();
    sys::futex_wait(&area->slot[0].word, word, at_ns + slice_ns, ~0u);
  }
  s->pid.store(static_cast<std::uint32_t>(sys::call(SYS_getpid)));
  s->pid_space.store(own_pid_space());  // a child of fork may be in another one
  s->rule.store(rule);
  s->result.store(EIO);
  if (!swap(*s, user, after_state::claimed, after_state::posted)) return no_answer;
  for (;;) {
    std::uint32_t const seen = s->word.load();
    if (seen == word_of(user, after_state::done)) {
      int const result = s->result.load();
      return swap(*s, user, after_state::done, after_state::free) ? result : no_answer;
    }
    if (seen >> 3 != user || seen == word_of(user, after_state::free)) return no_answer;
    std::int64_t const at_ns = now_ns();
    if (at_ns < until_ns) {
      std::int64_t const end_ns = at_ns + slice_ns;
      sys::futex_wait(&s->word, seen, end_ns < until_ns ? end_ns : until_ns, ~0u);
    } else if (swap(*s, user, after_state::posted, after_state::free) ||
               swap(*s, user, after_state::taken, after_state::abandoned)) {
      return no_answer;
    }
  }
}

/// This node is all the job has, and nobody is there who would do it for us.
int sync_ourselves(abi::after_rule const& r) {
  bool const is_void = order::durable.area != nullptr && order::before_sync();
  long const fd = sys::call(SYS_openat, sys::at_cwd, sys::as_long(r.root),
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  long const done = sys::failed(fd) ? fd : order::sync_file_system(static_cast<int>(fd));
  if (!sys::failed(fd)) sys::call(SYS_close, fd);
  if (order::durable.area != nullptr) order::after_sync(is_void, false);
  return sys::failed(done) ? static_cast<int>(-done) : 0;
}

std::int64_t patience_of(unsigned rule) {
  constexpr std::int64_t most_ns = 3600 * second_ns;
  std::int64_t const ns = area->rule[rule].patience_ns;
  return ns < second_ns ? second_ns : ns > most_ns ? most_ns : ns;
}

/// 0 when all is durable that the job wrote, else EIO; ETIMEDOUT when nobody has answered.
int pass_epoch(unsigned rule) {
  std::int64_t const began_ns = now_ns();
  auto const server = static_cast<abi::after_server>(area->head.server.load());
  int result = no_answer;
  if (server == abi::after_server::itself) result = sync_ourselves(area->rule[rule]);
  if (server == abi::after_server::daemon)
    result = ask_daemon(rule, began_ns + patience_of(rule) + margin_ns);
  area->head.waited_ns.fetch_add(static_cast<std::uint64_t>(now_ns() - began_ns));
  if (result == no_slot)
    area->head.no_slot.fetch_add(1, std::memory_order_relaxed);
  else
    count(result == 0  ? abi::after_count::opened
          : result < 0 ? abi::after_count::silent
                       : abi::after_count::refused);
  if (result != 0) has_failed.store(true);
  return result == 0 ? 0 : result < 0 ? ETIMEDOUT : EIO;
}

/// What is written before the cluster knows of this node would be asked of by nobody.
int wait_until_known(unsigned rule) {
  if (area->head.known.load() != 0) return 0;
  std::int64_t const until_ns = now_ns() + patience_of(rule);
  while (area->head.known.load() == 0) {
    std::int64_t const at_ns = now_ns();
    if (at_ns >= until_ns) {
      count(abi::after_count::unknown);
      return EIO;
    }
    sys::futex_wait(&area->head.known, 0, at_ns + slice_ns, ~0u);
  }
  return 0;
}

/// What a call has to pass before it is made: of the rules [first, end).
struct gates {
  unsigned first = 0, end = 0;
  bool known = false;  // the cluster has to know of this node
  bool epoch = false;  // all that the job wrote has to be durable
  int untold = 0;      // the error for which nobody knows the name
};

gates gates_of(found_rule const& found) {
  if (found.rule == 0 || found.rule > abi::after_rules) return {};
  abi::after_rule const& r = area->rule[found.rule - 1];
  return {found.rule - 1, found.rule, is_like(text_in(r.durable, sizeof r.durable), found.name),
          is_like(text_in(r.write, sizeof r.write), found.name)};
}

/// A name that nobody can tell may be any name of the tree that its directory lies in. A link may
/// lead to any tree.
gates gates_of_untold(unsigned entry, bool leads_away, int error) {
  unsigned const rule = rule_by_target(entry, {}).rule;
  if (leads_away) return {0, area->head.rules, true, true, error};
  if (rule == 0 || rule > abi::after_rules) return {};
  return {rule - 1, rule, true, true, error};
}

/// Holds a name, and so returns before anything waits.
[[gnu::noinline]] gates gates_of(int dir, char const* path, bool follows) {
  name_buffer name;
  int const length = follows ? name_behind(dir, path, name) : name_in(dir, path, name);
  if (length == 0) return {};
  if (length < 0)
    return gates_of_untold(look_up_path(dir, path), follows && is_link(dir, path), -length);
  std::string_view const whole(name.text(), static_cast<unsigned>(length));
  found_rule found = rule_of(whole);
  if (found.rule == 0) found = rule_by_target(look_up_path(dir, path), whole);
  return gates_of(found);
}

gates gates_before(int dir, char const* path, bool follows) {
  if (!may_ask() || !can_read_text(path) || path[0] == 0) return {};
  return gates_of(dir, path, follows);
}

int pass(gates const& g) {
  int error = 0;
  for (unsigned r = g.first; r < g.end && r < abi::after_rules && error == 0; ++r) {
    if (g.known) error = wait_until_known(r);
    if (error == 0 && g.epoch) error = pass_epoch(r);
  }
  return error == 0 ? 0 : EIO;
}

/// 0, or the error of a call that is not to be made: it changes what has that name.
int closed_for(int dir, char const* path, bool follows) {
  return pass(gates_before(dir, path, follows));
}

int closed_for_open(int dir, char const* path, int flags) {
  bool const is_nameless = (flags & O_TMPFILE) == O_TMPFILE || (flags & O_PATH) != 0;
  bool const changes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  if (is_nameless || !changes) return 0;
  bool const follows =
      (flags & O_NOFOLLOW) == 0 && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
  gates const g = gates_before(dir, path, follows);
  bool const has_no_descriptor = g.untold == EMFILE || g.untold == ENFILE;
  return has_no_descriptor ? g.untold : pass(g);  // the open itself would find none either
}

/// Of a file, or a directory, the tree's own among them.
[[gnu::noinline]] gates gates_of_fd(int fd) {
  name_buffer name;
  int length = name.ask(fd);
  if (length > 0 && !name.holds(static_cast<std::size_t>(length) + 1)) length = -ENOMEM;
  if (length == 0) return {};
  if (length < 0) return gates_of_untold(entry_of_fd(fd), false, -length);
  auto const size = static_cast<std::size_t>(length);
  name.text()[size] = '/';
  found_rule found = rule_of({name.text(), size + 1});
  if (found.rule == 0) found = rule_by_target(entry_of_fd(fd), {name.text(), size});
  if (found.name.ends_with('/')) found.name.remove_suffix(1);
  return gates_of(found);
}

/// Whoever went on after a shut gate, with a file of such a name that he had open before, hears of
/// it here, until the gate is passed.
[[gnu::noinline]] int closed_for_sync(int fd) {
  if (fd < 0 || !may_ask()) return 0;
  gates const g = gates_of_fd(fd);
  if (g.first == g.end || !g.epoch) return 0;
  if (pass_epoch(g.first) != 0) return EIO;
  has_failed.store(false);
  return 0;
}

int flags_of_mode(char const* mode) {
  if (!can_read_text(mode)) return 0;
  int flags = mode[0] == 'w'   ? O_CREAT | O_TRUNC | O_WRONLY
              : mode[0] == 'a' ? O_CREAT | O_WRONLY
                               : 0;
  for (unsigned i = 1; i < 8 && mode[i] != 0 && mode[i] != ','; ++i)
    if (mode[i] == '+') flags |= O_RDWR;
  return flags;
}

int flags_of_how(void const* how, std::size_t size) {
  auto const* const first = static_cast<std::uint64_t const*>(how);
  return size >= sizeof *first && can_read(first) ? static_cast<int>(*first) : 0;
}

constexpr int makes_new = O_CREAT | O_EXCL | O_RDWR;
constexpr int cwd = sys::at_cwd;

}  // namespace

namespace {

int closed_for_exchange(int from_dir, char const* from, int to_dir, char const* to,
                        unsigned flags) {
  int const error = closed_for(to_dir, to, false);
  if (error != 0 || (flags & RENAME_EXCHANGE) == 0) return error;
  return closed_for(from_dir, from, false);
}

using sys::path_at;

/// The same calls through syscall(2).
int closed_for_number(long number, long a, long b, long c, long d, long e) {
  auto const dir = static_cast<int>(a);
  switch (number) {
#if defined(SYS_open)
    case SYS_open:
      return closed_for_open(cwd, path_at(a), static_cast<int>(b));
    case SYS_creat:
      return closed_for_open(cwd, path_at(a), O_CREAT | O_TRUNC | O_WRONLY);
    case SYS_rename:
    case SYS_link:
    case SYS_symlink:
      return closed_for(cwd, path_at(b), false);
    case SYS_mkdir:
    case SYS_mknod:
      return closed_for(cwd, path_at(a), false);
#endif
#if defined(SYS_renameat)
    case SYS_renameat:
      return closed_for(static_cast<int>(c), path_at(d), false);
#endif
    case SYS_openat:
      return closed_for_open(dir, path_at(b), static_cast<int>(c));
    case SYS_openat2:
      return closed_for_open(dir, path_at(b),
                             flags_of_how(path_at(c), static_cast<std::size_t>(d)));
    case SYS_truncate:
      return closed_for(cwd, path_at(a), true);
    case SYS_renameat2:
      return closed_for_exchange(dir, path_at(b), static_cast<int>(c), path_at(d),
                                 static_cast<unsigned>(e));
    case SYS_linkat:
      return closed_for(static_cast<int>(c), path_at(d), false);
    case SYS_symlinkat:
      return closed_for(static_cast<int>(b), path_at(c), false);
    case SYS_mkdirat:
    case SYS_mknodat:
      return closed_for(dir, path_at(b), false);
    case SYS_fsync:
    case SYS_fdatasync:
      return has_failed.load() ? closed_for_sync(dir) : 0;
    default:
      return 0;
  }
}

}  // namespace

namespace next {
#define BODY(sym, ...) static constinit decltype(real::sym) sym = nullptr;
#include "epochs/epochs.def"
}  // namespace next

namespace body {
#define BODY(sym, ret, params, args, closed)                              \
  static ret sym params {                                                 \
    if (has_foreign_memory()) return next::sym args;                      \
    int const kept = errno;                                               \
    if (int const error = closed; error != 0) return refused<ret>(error); \
    errno = kept;                                                         \
    return next::sym args;                                                \
  }
#include "epochs/epochs.def"
}  // namespace body

static bool begin(char* segment_path) {
  area = map_area<abi::after_area>(segment_path, "after", [](auto const& a, std::uint64_t bytes) {
    return abi::refuse_reason(a, bytes);
  });
  return area != nullptr;
}

static void stand_between() {
#define BODY(sym, ...) STAND_BEFORE_REAL(sym)
#include "epochs/epochs.def"
}

alignas(extra) constinit extra const hooks = {.beside = abi::after_beside,
                                              .shared_pages = extra_pages(sizeof(abi::after_area)),
                                              .begin = begin,
                                              .stand_before_libc = stand_between};

}  // namespace sluice::epochs

// --- sluice_order.h

extern "C" __attribute__((visibility("default"))) int sluice_order_epoch(int fd);
int sluice_order_epoch(int fd) {
  using namespace sluice;
  int error = ENOTSUP;
  if (epochs::area != nullptr && may_ask()) {
    epochs::gates const g = epochs::gates_of_fd(fd);
    if (g.first != g.end) error = epochs::pass_epoch(g.first);
  }
  if (error == 0) return 0;
  errno = error;
  return -1;
}
