// SPDX-License-Identifier: Apache-2.0
// See place.h. A directory is identified by the kernel: device, inode, mount. A target that is a
// whole file system is its device or mount; one that is a directory below is found by walking up
// `..`, which the kernel resolves physically. What is mounted below a target lies in it: the
// creator lists the devices that it saw there, for others the walk goes on above their mount. All
// of it costs system calls, so the answer for a directory name, or for a whole mount, is cached for
// about a second: a symlink that is swapped meanwhile is noticed then.
#include "place.h"

#include <alloca.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "core/path_text.h"
#include "name_buffer.h"
#include "roles.h"
#include "sys.h"

namespace sluice {

namespace {

using core::hash_factor;
using core::hash_of;
using core::max_path;
using core::scan;
using core::scanned_path;

constexpr unsigned max_depth = 64;
constexpr std::uint32_t cache_ticks = 8;  // entries live about a second
// Asking the clock costs as much as comparing the name, so a thread's last directory is taken for
// fresh this often without it.
constexpr std::int8_t uses_per_clock = 7;

// Who serves a file system waits for himself when the kernel looks up a name that leads into it. It
// may be mounted over any directory, so nothing is looked up for him but what he names himself.
bool is_server() { return stage.mine->serves_files.load(std::memory_order_relaxed); }

void note_server(sys::file_identity const& file) {
  constexpr std::uint64_t fuse = std::uint64_t{10} << 32 | 229;  // /dev/fuse
  if (S_ISCHR(file.mode) && file.is_device == fuse) stage.mine->serves_files.store(true);
}

bool is_quiet(core::ruleset const& rules, sys::file_identity const& file) {
  if (file.device == stage.proc_device) return true;
  for (unsigned i = 0; i < rules.quiet_count; ++i)
    if (rules.quiet_device[i] == file.device) return true;
  return false;
}

bool on_device_of(core::target_row const& t, sys::file_identity const& file) {
  return t.device == file.device || (t.mount_id != 0 && t.mount_id == file.mount_id);
}

// The innermost target that owns the whole device, or elsewhere; whether a smaller one lies on it;
// and whether only a walk says what its mount lies below.
struct device_answer {
  unsigned target;
  bool has_smaller;
  bool is_foreign;
};

device_answer below_a_target(core::ruleset const& rules, sys::file_identity const& file,
                             bool has_smaller) {
  for (unsigned i = 0; i < rules.below_count; ++i)
    if (rules.below[i].device == file.device) return {rules.below[i].target, has_smaller, false};
  bool is_foreign = false;
  if (file.mount_id != rules.top_mount || file.mount_id == 0)
    for (unsigned i = 1; i < rules.target_count; ++i)
      is_foreign = is_foreign || rules.target[i].one_file_system == 0;
  return {0, has_smaller, is_foreign};
}

device_answer target_of_device(core::ruleset const& rules, sys::file_identity const& file) {
  device_answer answer{0, false, false};
  for (unsigned i = 1; i < rules.target_count; ++i) {
    core::target_row const& t = rules.target[i];
    for (unsigned m = 0; m < t.inside_count; ++m)
      if (t.inside_mounts[m] == file.mount_id) return {i, false, false};
    if (!on_device_of(t, file)) continue;
    if (t.whole_device != 0)
      answer.target = i;
    else
      answer.has_smaller = true;
  }
  return answer.target != 0 ? answer : below_a_target(rules, file, answer.has_smaller);
}

unsigned target_with_root(core::ruleset const& rules, sys::file_identity const& dir) {
  for (unsigned i = 1; i < rules.target_count; ++i) {
    core::target_row const& t = rules.target[i];
    if (t.whole_device == 0 && t.inode == dir.inode && on_device_of(t, dir)) return i;
  }
  return 0;
}

bool is_same_directory(sys::file_identity const& a, sys::file_identity const& b) {
  return a.device == b.device && a.inode == b.inode;
}

// Walks up from the directory `start` (relative to `dir`) until a target's root, or the device's
// own; above that where nobody knows what the device lies below. Signal handlers and small threads
// come here too: no buffer is larger than the name it holds, and a large one is not on the stack.
[[gnu::noinline]] unsigned walk_up(core::ruleset const& rules, int dir, char const* start,
                                   unsigned length, sys::file_identity at) {
  if (is_server()) {
    unsigned const root = target_with_root(rules, at);
    return root != 0 ? root : target_of_device(rules, at).target;
  }
  unsigned const room = length + 3 * max_depth + 1;
  mapped_room const mapped(room <= short_name ? 0 : room);
  char* const name = room <= short_name ? static_cast<char*>(alloca(room)) : mapped.text();
  if (name == nullptr) return 0;
  __builtin_memcpy(name, start, length);
  bool has_left = false;  // the file system where it began
  for (unsigned depth = 0; depth < max_depth; ++depth) {
    unsigned found = target_with_root(rules, at);
    device_answer const owner = target_of_device(rules, at);
    if (found == 0 && has_left && !owner.has_smaller) found = owner.target;
    __builtin_memcpy(name + length, "/..", 4);
    length += 3;
    sys::file_identity above;
    bool const is_top =
        found != 0 || !sys::identify(dir, name, 0, above) || is_same_directory(above, at);
    bool const leaves = !is_top && above.device != at.device;
    if (is_top || (leaves && !owner.is_foreign)) {
      if (found == 0) found = owner.target;
      return has_left ? core::with_mounts_below(rules, found) : found;
    }
    has_left = has_left || leaves;
    at = above;
  }
  return 0;
}

// A cache word: 40 bits of hash, 16 bits of time, 8 bits of entry. One word, so a reader never sees
// half.
constexpr std::uint64_t tag_mask = 0xffffffffff000000ull;

struct remembered {
  unsigned entry;
  std::uint32_t tick;  // when the kernel was asked
};

// Few names lie on one page; who names many gets all of the cache.
std::atomic<std::uint64_t>& cache_word(std::uint64_t hash) {
  constexpr unsigned few = 256;
  bool const are_few = stage.names_kept.load(std::memory_order_relaxed) < few;
  return stage.mine->dir[dir_cache_size - 1 - hash % (are_few ? few : dir_cache_size)];
}

remembered cached(std::uint64_t hash, std::uint32_t now) {
  std::uint64_t const word = cache_word(hash).load(std::memory_order_relaxed);
  std::uint32_t const age = (now - static_cast<std::uint32_t>(word >> 8)) & 0xffff;
  if ((word & tag_mask) != (hash & tag_mask) || age > cache_ticks) return {entry_unknown, now};
  return {static_cast<unsigned>(word & 0xff), now - age};
}

void keep(std::uint64_t hash, unsigned entry, std::uint32_t now) {
  std::uint32_t const count = stage.names_kept.load(std::memory_order_relaxed);
  if (count < dir_cache_size) stage.names_kept.store(count + 1, std::memory_order_relaxed);
  cache_word(hash).store((hash & tag_mask) | (std::uint64_t{now} & 0xffff) << 8 | entry,
                         std::memory_order_relaxed);
}

// Where all files of a mount lie, of which nobody but a walk knows it.
struct mount_memo {
  explicit mount_memo(sys::file_identity const& file) {
    std::uint64_t const parts[] = {file.device, file.mount_id};
    hash = hash_of(reinterpret_cast<char const*>(parts), sizeof parts);
  }
  unsigned entry() const { return cached(hash, now).entry; }
  void set(unsigned entry) const { keep(hash, entry, now); }

  std::uint64_t hash;
  std::uint32_t now = coarse_tick();
};

// `name` is a directory, `length` long.
unsigned entry_of_directory(int dir, char const* name, unsigned length) {
  core::ruleset const& rules = stage.mine->rules;
  sys::file_identity file;
  if (!sys::identify(dir, name, 0, file)) return entry_unknown;
  if (is_quiet(rules, file)) return entry_outside;
  device_answer const answer = target_of_device(rules, file);
  bool const is_settled = !answer.has_smaller && !answer.is_foreign;
  if (is_settled || !S_ISDIR(file.mode)) return entry_first_target + answer.target;
  if (answer.has_smaller) return entry_first_target + walk_up(rules, dir, name, length, file);
  mount_memo const memo(file);
  unsigned entry = memo.entry();
  if (entry != entry_unknown) return entry;
  entry = entry_first_target + walk_up(rules, dir, name, length, file);
  memo.set(entry);
  return entry;
}

// Some target's root stands in the directory that text[0, length) names: such names are looked up
// one by one.
bool holds_root(char const* text, unsigned length) {
  core::ruleset const& rules = stage.mine->rules;
  for (unsigned i = 1; i < rules.target_count; ++i) {
    std::string_view const root = core::view(rules, rules.target[i].path);
    if (root.size() > length && root.substr(0, length) == std::string_view(text, length) &&
        root.find('/', length) == std::string_view::npos)
      return true;
  }
  return false;
}

void remember(path_memo& m, char const* path, scanned_path const& name, std::uint64_t serials,
              remembered const& found) {
  bool const one_slash = name.last == name.directory + 1 || name.last == 1;
  if (!one_slash || name.last > longest_memo || holds_root(path, name.last)) return;
  std::uint32_t const version = m.version.load(std::memory_order_relaxed);
  if ((version & 1) != 0) return;  // we are a signal handler in the middle of another write
  m.version.store(version + 1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_release);
  m.serials = 0;
  std::atomic_signal_fence(std::memory_order_release);
  m.where = region_of(path);
  m.tick = found.tick;
  m.length = static_cast<std::uint16_t>(name.last);
  m.entry = static_cast<std::uint8_t>(found.entry);
  m.uses_left = uses_per_clock;
  __builtin_memcpy(m.text, path, name.last);
  std::atomic_signal_fence(std::memory_order_release);
  m.serials = serials;
  m.version.store(version + 2, std::memory_order_relaxed);
}

// A name that is exactly a target's root belongs to the target, not to the directory it stands in.
unsigned root_entry(char const* path, unsigned length) {
  core::ruleset const& rules = stage.mine->rules;
  while (length > 1 && path[length - 1] == '/') --length;
  for (unsigned i = 1; i < rules.target_count; ++i) {
    std::string_view const root = core::view(rules, rules.target[i].path);
    if (root == std::string_view(path, length)) return entry_first_target + i;
  }
  return entry_unknown;
}

bool are_names_apart() { return (stage.apart.load(std::memory_order_relaxed) & apart_names) != 0; }

// Another thread may change the directory while we ask: it forgets before and after it counts the
// change, we look at the count after we have stored, so one of the two takes the old answer away.
unsigned entry_of_cwd() {
  unsigned entry = stage.cwd_entry.load(std::memory_order_relaxed);
  if (entry != entry_unknown) return entry;
  std::uint64_t const before = stage.serials.load();
  entry = entry_of_directory(sys::at_cwd, ".", 1);
  if (entry == entry_unknown) return entry_outside;
  if (are_names_apart()) return entry;
  stage.cwd_entry.store(entry);
  if (stage.serials.load() != before) stage.cwd_entry.store(entry_unknown);
  return entry;
}

// Where a directory does not exist, the look-up ends in the nearest one above it that does.
[[gnu::noinline]] unsigned ask_directory(int dir, char const* path, unsigned length) {
  mapped_room const mapped(length < short_name ? 0 : length + 1);
  char* const name = length < short_name ? static_cast<char*>(alloca(length + 1)) : mapped.text();
  if (name == nullptr) return entry_unknown;
  __builtin_memcpy(name, path, length);
  for (;;) {
    name[length] = 0;
    unsigned const entry = entry_of_directory(dir, name, length);
    if (entry != entry_unknown || length <= 1) return entry;
    while (length > 0 && path[length - 1] != '/') --length;
    while (length > 1 && path[length - 1] == '/') --length;
    if (length == 0) return entry_unknown;
  }
}

unsigned intern(std::uint64_t mask) {
  if (mask == ~std::uint64_t{0}) return 0;
  if (mask == 0) mask = std::uint64_t{1} << 63 & ~stage.plain_rules;  // 0 means a free place
  for (unsigned i = 1; i < max_path_classes; ++i) {
    std::uint64_t seen = stage.mine->path_class[i].load(std::memory_order_relaxed);
    if (seen == mask) return i;
    if (seen == 0 && stage.mine->path_class[i].compare_exchange_strong(seen, mask)) return i;
    if (seen == mask) return i;
  }
  return 0;
}

unsigned class_of_name(std::string_view path) {
  std::uint64_t const rules = core::path_rules(stage.mine->rules, path);
  return stage.has_roles ? roles::class_of_name(rules, path) : intern(rules);
}

// What a directory is was found within a second, or the kernel says it. `serials`: of the stage.
remembered ask_or_remember(char const* path, unsigned length, std::uint64_t serials,
                           std::uint32_t now) {
  // What an absolute name means does not depend on the current directory.
  std::uint64_t const salt = path[0] == '/' ? serials / name_step : serials;
  std::uint64_t hash = (hash_of(path, length) ^ salt) * hash_factor;
  hash ^= hash >> 31;
  remembered found = cached(hash, now);
  if (found.entry != entry_unknown) return found;
  found.entry = ask_directory(sys::at_cwd, path, length);
  if (found.entry != entry_unknown && !are_names_apart()) keep(hash, found.entry, now);
  return found;
}

// Only where a target is a directory on the file's device: the file's name says whether it lies in
// it.
[[gnu::noinline]] unsigned entry_by_name(int fd, bool is_directory) {
  if (is_server()) return entry_unknown;
  name_buffer name;
  int const length = name.ask(fd);
  if (length <= 0) return entry_unknown;
  std::uint64_t const serials = stage.serials.load(std::memory_order_relaxed);
  unsigned const directory =
      is_directory ? static_cast<unsigned>(length) : scan(name.text()).directory;
  return ask_or_remember(name.text(), directory, serials, coarse_tick()).entry;
}

// Where the file lies that `fd` is, by its name. Where there is no /proc that tells it, a file that
// was just opened lies where its name was looked up.
unsigned ask_name(int fd, sys::file_identity const& file, unsigned target_of_all, unsigned said) {
  unsigned const entry = entry_by_name(fd, S_ISDIR(file.mode));
  if (entry != entry_unknown) return entry;
  if (S_ISDIR(file.mode)) return entry_first_target + walk_up(stage.mine->rules, fd, ".", 1, file);
  bool const is_said =
      (said & entry_unverified) != 0 && (said & entry_kind_mask) >= entry_first_target;
  return is_said ? said & entry_kind_mask : entry_first_target + target_of_all;
}

// A file that has no other name is where it was within the last second, if it is the same (its
// birth tells that from another one with its inode number) and the name by which it was opened says
// so too.
unsigned entry_of_open_file(int fd, sys::file_identity const& file, unsigned said) {
  device_answer const answer = target_of_device(stage.mine->rules, file);
  if (answer.is_foreign && !answer.has_smaller) {
    unsigned const entry = mount_memo(file).entry();
    return entry != entry_unknown ? entry : ask_name(fd, file, 0, said);
  }
  if (!answer.has_smaller) return entry_first_target + answer.target;
  bool const has_one_name = file.birth_ns != 0 && (S_ISDIR(file.mode) || file.links == 1);
  if (!has_one_name || (said & entry_unverified) == 0)
    return ask_name(fd, file, answer.target, said);
  std::uint64_t const parts[] = {file.device, file.inode, file.mount_id, file.birth_ns};
  std::uint64_t const hash = hash_of(reinterpret_cast<char const*>(parts), sizeof parts);
  std::uint32_t const now = coarse_tick();
  if (cached(hash, now).entry == (said & entry_kind_mask)) return said & entry_kind_mask;
  unsigned const entry = ask_name(fd, file, answer.target, said);
  keep(hash, entry, now);
  return entry;
}

[[gnu::noinline]] unsigned path_class_of_fd(int fd) {
  name_buffer name;
  int const length = name.ask(fd);
  return length <= 0 ? 0 : class_of_name({name.text(), static_cast<unsigned>(length)});
}

// A relative path under patterns that speak of whole paths.
[[gnu::noinline]] unsigned path_class_of_whole(int dir, char const* path, unsigned length) {
  name_buffer whole;
  int const at = dir == sys::at_cwd ? whole.ask_cwd() : whole.ask(dir);
  if (at <= 0) return 0;
  auto end = static_cast<unsigned>(at);
  if (!whole.holds(end + length + 1)) return 0;
  char* const text = whole.text();
  text[end++] = '/';
  __builtin_memcpy(text + end, path, length);
  return class_of_name({text, end + length});
}

}  // namespace

constinit verifier verify_and_remember = nullptr;

unsigned ask_fd(int fd, unsigned path_class, unsigned said, sys::file_identity& file) {
  if (!sys::identify(fd, "", sys::at_empty_path, file)) return entry_outside;
  unsigned entry = entry_outside;
  note_server(file);
  bool const is_file = S_ISREG(file.mode) || S_ISDIR(file.mode);
  if (is_file && !is_quiet(stage.mine->rules, file)) entry = entry_of_open_file(fd, file, said);
  if (stage.has_path_globs && entry != entry_outside && path_class == 0)
    path_class = path_class_of_fd(fd);
  if (stage.has_roles && entry != entry_outside)
    path_class = roles::class_of_file(path_class, file);
  return entry | path_class << entry_path_shift;
}

// Never inline: the paths that lead here would have to keep its arguments.
[[gnu::noinline]] unsigned verify_fd(int fd, unsigned path_class, unsigned said) {
  if (verify_and_remember != nullptr) return verify_and_remember(fd, path_class, said);
  sys::file_identity unused;
  unsigned const entry = ask_fd(fd, path_class, said, unused);
  set_fd(fd, entry);
  return entry;
}

namespace {

// The path starts at the root or in the current directory, and its directory part is not empty.
unsigned look_up_directory(char const* path, scanned_path const& name, std::uint64_t serials,
                           std::uint32_t now) {
  remembered const found = ask_or_remember(path, name.directory, serials, now);
  if (found.entry == entry_unknown) return path[0] == '/' ? entry_outside : entry_of_cwd();
  if (!are_names_apart()) remember(self.memo, path, name, serials, found);
  return found.entry;
}

// The descriptor that a name such as /proc/self/fd/7 means; -1: it means none. What stands below
// one, and a name with a process's number, is the kernel's to look up.
int own_descriptor(std::string_view path) {
  constexpr std::string_view self = "/proc/self/fd/", thread = "/proc/thread-self/fd/",
                             dev = "/dev/fd/";
  if (path[1] != 'p' && path[1] != 'd') return -1;
  std::size_t const folder = path.starts_with(self)     ? self.size()
                             : path.starts_with(dev)    ? dev.size()
                             : path.starts_with(thread) ? thread.size()
                                                        : 0;
  if (folder == 0 || path.size() == folder || path.size() > folder + 9) return -1;
  int fd = 0;
  path.remove_prefix(folder);
  for (char const c : path) {
    if (c < '0' || c > '9') return -1;
    fd = fd * 10 + (c - '0');
  }
  return fd;
}

// What the memo did not know.
[[gnu::noinline]] unsigned look_up_slowly(int dir, char const* path) {
  // Most names of a build are bare. No clock is asked for those, nor a function of libc, whose
  // pages a child of fork may not have.
  if (path[0] != '/' && core::is_name_in(path, self.memo.text, 0))
    return dir == sys::at_cwd ? entry_of_cwd() : entry_of_fd(dir) & entry_kind_mask;
  std::uint64_t const serials = stage.serials.load(std::memory_order_relaxed);
  std::uint32_t const now = coarse_tick();
  scanned_path const name = scan(path);
  if (name.length >= max_path) return entry_outside;
  bool const absolute = path[0] == '/';
  if (absolute && stage.mine->rules.target_count > 1)
    if (unsigned const root = root_entry(path, name.length)) return root;
  int const own = absolute ? own_descriptor({path, name.length}) : -1;
  if (own >= 0) return entry_of_fd(own) & entry_kind_mask;
  unsigned const directory = name.directory;
  if (directory == 0)
    return dir == sys::at_cwd ? entry_of_cwd() : entry_of_fd(dir) & entry_kind_mask;
  if (absolute || dir == sys::at_cwd) return look_up_directory(path, name, serials, now);
  unsigned const entry = ask_directory(dir, path, directory);
  return entry == entry_unknown ? entry_of_fd(dir) & entry_kind_mask : entry;
}

}  // namespace

void ask_clock(path_memo& m) {
  m.uses_left = uses_per_clock;
  if (coarse_tick() - m.tick > cache_ticks) m.serials = 0;
}

unsigned look_up_path(int dir, char const* path) {
  if (!can_read_text(path)) return entry_outside;
  if (path[0] == 0) return dir >= 0 ? entry_of_fd(dir) & entry_kind_mask : entry_outside;
  if (is_due(self.memo)) ask_clock(self.memo);
  if (unsigned const entry = recall(self.memo, dir, path)) return entry;
  return look_up_slowly(dir, path);
}

unsigned path_class_of(int dir, char const* path) {
  if (!stage.has_path_globs || !can_read_text(path)) return 0;
  auto const length = static_cast<unsigned>(strnlen(path, max_path));
  if (stage.has_whole_globs && path[0] != '/') return path_class_of_whole(dir, path, length);
  return class_of_name({path, length});
}

std::uint64_t bytes_there(int fd, std::int64_t at, std::uint64_t size) {
  std::uint64_t const end = sys::size_of(fd);
  auto const from = static_cast<std::uint64_t>(at);
  if (at < 0 || from >= end) return 0;
  return size < end - from ? size : end - from;
}

void forget_fds(unsigned first, unsigned last) {
  if (last >= fd_table_size) last = fd_table_size - 1;
  constexpr unsigned page = 4096 / sizeof(fd_entry);
  for (unsigned i = first; i <= last; ++i) {
    // Whole untouched pages need not become real: the kernel gives them back as zeros.
    auto const at = reinterpret_cast<long>(&stage.mine->fd[i]);
    if (at % 4096 == 0 && last - i >= page) {
      unsigned const pages = (last - i + 1) / page;
      if (!sys::failed(sys::call(SYS_madvise, at, pages * 4096L, 4 /* MADV_DONTNEED */))) {
        i += pages * page - 1;
        continue;
      }
    }
    stage.mine->entry_of(i).store(entry_unknown, std::memory_order_relaxed);
  }
}

void forget_mapping(void const* address, std::size_t size) {
  auto const start = reinterpret_cast<std::uintptr_t>(address);
  for (mapping& m : stage.mine->mapped) {
    std::uintptr_t const low = m.start.load(std::memory_order_acquire);
    if (low != 0 && low < start + size && start < m.end.load(std::memory_order_relaxed))
      m.start.store(0, std::memory_order_relaxed);
  }
}

void note_mapping(void const* address, std::size_t size, unsigned entry) {
  auto const start = reinterpret_cast<std::uintptr_t>(address);
  forget_mapping(address, size);
  unsigned const next = stage.mine->next_mapping.fetch_add(1, std::memory_order_relaxed);
  mapping& m = stage.mine->mapped[next % max_mappings];
  m.start.store(0, std::memory_order_relaxed);
  m.end.store(start + size, std::memory_order_relaxed);
  m.entry.store(entry, std::memory_order_relaxed);
  m.start.store(start, std::memory_order_release);
}

unsigned mapping_entry(void const* address) {
  auto const at = reinterpret_cast<std::uintptr_t>(address);
  for (mapping const& m : stage.mine->mapped) {
    std::uintptr_t const start = m.start.load(std::memory_order_acquire);
    if (start != 0 && start <= at && at < m.end.load(std::memory_order_relaxed))
      return m.entry.load(std::memory_order_relaxed);
  }
  return entry_outside;
}

// A walk begins in the directory before the first wildcard.
[[gnu::noinline]] static unsigned look_up_pattern(char const* pattern) {
  if (!can_read_text(pattern)) return entry_outside;
  auto const whole = static_cast<unsigned>(strnlen(pattern, max_path));
  auto length = static_cast<unsigned>(strcspn(pattern, "*?[{~\\"));
  if (whole >= max_path) return entry_outside;
  if (length < whole)
    while (length > 0 && pattern[length - 1] != '/') --length;
  if (length == 0) return look_up_path(sys::at_cwd, ".");
  mapped_room const mapped(length < short_name ? 0 : length + 1);
  char* const name = length < short_name ? static_cast<char*>(alloca(length + 1)) : mapped.text();
  if (name == nullptr) return entry_outside;
  __builtin_memcpy(name, pattern, length);
  name[length] = 0;
  return look_up_path(sys::at_cwd, name);
}

unsigned resolve(place const& where) {
  switch (where.kind) {
    case place_kind::fd:
    case place_kind::fd_now:
      return entry_of_fd(where.fd);
    case place_kind::path:
    case place_kind::new_link: {
      unsigned const entry = look_up_path(where.fd, where.path);
      if (where.kind == place_kind::new_link) forget_names();
      if (entry == entry_outside || !stage.has_path_globs) return entry;
      return entry | path_class_of(where.fd, where.path) << entry_path_shift;
    }
    case place_kind::pattern:
      return look_up_pattern(where.path);
    case place_kind::nothing:
      break;
  }
  return entry_outside;
}

}  // namespace sluice
