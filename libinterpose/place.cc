// SPDX-License-Identifier: Apache-2.0
// See place.h. A directory is identified by the kernel: device, inode, mount. A target that is a
// whole file system is its device or mount; one that is a directory below is found by walking up
// `..`, which the kernel resolves physically. Both cost system calls, so the answer for a directory
// name is cached for about a second: a symlink that is swapped meanwhile is noticed then.
#include "place.h"

#include <alloca.h>
#include <string.h>
#include <sys/stat.h>

#include "sys.h"

namespace sluice {

namespace {

constexpr unsigned max_path = 4096;
constexpr unsigned max_depth = 64;
constexpr std::int64_t cache_tick_ns = 1 << 27;  // 134 ms
constexpr std::uint64_t cache_ticks = 8;         // entries live about a second

bool is_quiet(core::ruleset const& rules, sys::file_identity const& file) {
  if (file.device == stage.proc_device) return true;
  for (unsigned i = 0; i < rules.quiet_count; ++i)
    if (rules.quiet_device[i] == file.device) return true;
  return false;
}

bool on_device_of(core::target_row const& t, sys::file_identity const& file) {
  return t.device == file.device || (t.mount_id != 0 && t.mount_id == file.mount_id);
}

// The innermost target that owns the whole device, or elsewhere; and whether a smaller one lies on
// it.
struct device_answer {
  unsigned target;
  bool has_smaller;
};

device_answer target_of_device(core::ruleset const& rules, sys::file_identity const& file) {
  device_answer answer{0, false};
  for (unsigned i = 1; i < rules.target_count; ++i) {
    core::target_row const& t = rules.target[i];
    for (unsigned m = 0; m < t.inside_count; ++m)
      if (t.inside_mounts[m] == file.mount_id) return {i, false};
    if (!on_device_of(t, file)) continue;
    if (t.whole_device != 0)
      answer.target = i;
    else
      answer.has_smaller = true;
  }
  return answer;
}

unsigned target_with_root(core::ruleset const& rules, sys::file_identity const& dir) {
  for (unsigned i = 1; i < rules.target_count; ++i) {
    core::target_row const& t = rules.target[i];
    if (t.whole_device == 0 && t.inode == dir.inode && on_device_of(t, dir)) return i;
  }
  return 0;
}

// Walks up from the directory `start` (relative to `dir`) until a target's root, or the device's
// own. Signal handlers and small threads come here too: no buffer is larger than the name it holds.
[[gnu::noinline]] unsigned walk_up(core::ruleset const& rules, int dir, char const* start,
                                   unsigned length, sys::file_identity at) {
  auto* const name = static_cast<char*>(alloca(length + 3 * max_depth + 1));
  __builtin_memcpy(name, start, length);
  for (unsigned depth = 0; depth < max_depth; ++depth) {
    if (unsigned const found = target_with_root(rules, at)) return found;
    __builtin_memcpy(name + length, "/..", 4);
    length += 3;
    sys::file_identity above;
    if (!sys::identify(dir, name, 0, above)) break;
    if (above.device != at.device || above.inode == at.inode) break;
    at = above;
  }
  return target_of_device(rules, at).target;
}

// `name` is a directory, `length` long.
unsigned entry_of_directory(int dir, char const* name, unsigned length) {
  core::ruleset const& rules = stage.mine->rules;
  sys::file_identity file;
  if (!sys::identify(dir, name, 0, file)) return entry_unknown;
  if (is_quiet(rules, file)) return entry_outside;
  device_answer const answer = target_of_device(rules, file);
  if (!answer.has_smaller || !S_ISDIR(file.mode)) return entry_first_target + answer.target;
  return entry_first_target + walk_up(rules, dir, name, length, file);
}

// A cache word: 40 bits of hash, 16 bits of time, 8 bits of entry. One word, so a reader never sees
// half.
struct cache_key {
  std::atomic<std::uint64_t>* word;
  std::uint64_t tag;
  std::uint64_t tick;
};

constexpr std::uint64_t tag_mask = 0xffffffffff000000ull;

cache_key key_of(std::uint64_t hash) {
  auto const tick = static_cast<std::uint64_t>(coarse_now_ns() / cache_tick_ns) & 0xffff;
  return {&stage.mine->dir[hash % dir_cache_size], hash & tag_mask, tick};
}

unsigned cached(cache_key const& key) {
  std::uint64_t const word = key.word->load(std::memory_order_relaxed);
  if ((word & tag_mask) != key.tag) return entry_unknown;
  if (((key.tick - (word >> 8)) & 0xffff) > cache_ticks) return entry_unknown;
  return word & 0xff;
}

// A path in parts: its length, the length of the directory part (0: the name lies in the directory
// the path starts at), and a hash of that part. Every call by path pays for this, hence libc's
// vector functions and whole words.
struct scanned_path {
  unsigned length;
  unsigned directory;
  std::uint64_t hash;
};

constexpr std::uint64_t hash_factor = 0xd6e8feb86659fd93ull;

std::uint64_t hash_of(char const* text, unsigned length) {
  std::uint64_t h = 0x9e3779b97f4a7c15ull ^ length;
  for (; length >= 8; text += 8, length -= 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, text, 8);
    h = (h ^ word) * hash_factor;
    h ^= h >> 29;
  }
  std::uint64_t rest = 0;
  for (unsigned i = 0; i < length; ++i) rest = rest << 8 | static_cast<unsigned char>(text[i]);
  h = (h ^ rest) * hash_factor;
  return h ^ h >> 32;
}

bool is_dots(char const* part, unsigned length) {
  return part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.'));
}

scanned_path scan(char const* path) {
  auto const length = static_cast<unsigned>(strnlen(path, max_path));
  unsigned end = length;  // of the last part
  while (end > 1 && path[end - 1] == '/') --end;
  auto const* const slash = static_cast<char const*>(memrchr(path, '/', end));
  unsigned const last = slash == nullptr ? 0 : static_cast<unsigned>(slash - path) + 1;
  unsigned directory = last;
  if (last < end && is_dots(path + last, end - last)) directory = end;  // a directory itself
  while (directory > 1 && path[directory - 1] == '/') --directory;
  return {length, directory, hash_of(path, directory)};
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

unsigned entry_of_cwd() {
  unsigned entry = stage.cwd_entry.load(std::memory_order_relaxed);
  if (entry != entry_unknown) return entry;
  entry = entry_of_directory(sys::at_cwd, ".", 1);
  if (entry == entry_unknown) return entry_outside;
  stage.cwd_entry.store(entry, std::memory_order_relaxed);
  return entry;
}

// Where a directory does not exist, the look-up ends in the nearest one above it that does.
[[gnu::noinline]] unsigned ask_directory(int dir, char const* path, unsigned length) {
  auto* const name = static_cast<char*>(alloca(length + 1));
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

void append_number(char* to, unsigned& at, unsigned value) {
  char digits[10];
  unsigned count = 0;
  do digits[count++] = static_cast<char>('0' + value % 10);
  while ((value /= 10) != 0);
  while (count > 0) to[at++] = digits[--count];
  to[at] = 0;
}

// The path the kernel knows an fd by; 0 when it has none.
unsigned name_of_fd(int fd, char* to) {
  char link[40] = "/proc/self/fd/";
  unsigned at = 14;
  append_number(link, at, static_cast<unsigned>(fd));
  long const length = sys::call(SYS_readlink, sys::as_long(link), sys::as_long(to), max_path - 256);
  return length <= 0 || to[0] != '/' ? 0 : static_cast<unsigned>(length);
}

// Only where a target is a directory on the file's device: the file's name says whether it lies in
// it.
[[gnu::noinline]] unsigned entry_by_name(int fd) {
  char name[max_path];
  unsigned const length = name_of_fd(fd, name);
  if (length == 0) return entry_unknown;
  name[length] = 0;
  unsigned const directory = scan(name).directory;
  name[directory] = 0;
  return entry_of_directory(sys::at_cwd, name, directory);
}

unsigned entry_of_open_file(int fd, sys::file_identity const& file) {
  core::ruleset const& rules = stage.mine->rules;
  device_answer const answer = target_of_device(rules, file);
  if (!answer.has_smaller) return entry_first_target + answer.target;
  if (S_ISDIR(file.mode)) return entry_first_target + walk_up(rules, fd, ".", 1, file);
  unsigned const entry = entry_by_name(fd);
  return entry == entry_unknown ? entry_first_target + answer.target : entry;
}

[[gnu::noinline]] unsigned path_class_of_fd(int fd) {
  char name[max_path];
  unsigned const length = name_of_fd(fd, name);
  return length == 0 ? 0 : intern(core::path_rules(stage.mine->rules, {name, length}));
}

// A relative path under patterns that speak of whole paths.
[[gnu::noinline]] unsigned path_class_of_whole(int dir, char const* path, unsigned length) {
  char whole[max_path];
  unsigned at = 0;
  if (dir == sys::at_cwd) {
    long const got = sys::call(SYS_getcwd, sys::as_long(whole), max_path / 2);
    at = got > 1 ? static_cast<unsigned>(got) - 1 : 0;
  } else {
    at = name_of_fd(dir, whole);
  }
  if (at == 0 || at + length + 2 >= max_path) return 0;
  whole[at++] = '/';
  for (unsigned i = 0; i < length; ++i) whole[at++] = path[i];
  return intern(core::path_rules(stage.mine->rules, {whole, at}));
}

}  // namespace

unsigned verify_fd(int fd, unsigned path_class) {
  sys::file_identity file;
  if (!sys::identify(fd, "", sys::at_empty_path, file)) return entry_outside;
  unsigned entry = entry_outside;
  bool const is_file = S_ISREG(file.mode) || S_ISDIR(file.mode);
  if (is_file && !is_quiet(stage.mine->rules, file)) entry = entry_of_open_file(fd, file);
  if (stage.has_path_globs && entry != entry_outside && path_class == 0)
    path_class = path_class_of_fd(fd);
  entry |= path_class << entry_path_shift;
  set_fd(fd, entry);
  return entry;
}

unsigned look_up_path(int dir, char const* path) {
  if (!is_readable(path)) return entry_outside;
  if (path[0] == 0) return dir >= 0 ? entry_of_fd(dir) & entry_kind_mask : entry_outside;
  scanned_path const name = scan(path);
  if (name.length >= max_path) return entry_outside;
  bool const absolute = path[0] == '/';
  if (absolute && stage.mine->rules.target_count > 1)
    if (unsigned const root = root_entry(path, name.length)) return root;
  unsigned const directory = name.directory;
  if (directory == 0)
    return dir == sys::at_cwd ? entry_of_cwd() : entry_of_fd(dir) & entry_kind_mask;
  if (!absolute && dir != sys::at_cwd) {
    unsigned const entry = ask_directory(dir, path, directory);
    return entry == entry_unknown ? entry_of_fd(dir) & entry_kind_mask : entry;
  }
  std::uint64_t const seed = std::uint64_t{stage.name_serial.load(std::memory_order_relaxed)}
                                 << 32 |
                             (absolute ? 0 : stage.cwd_serial.load(std::memory_order_relaxed));
  std::uint64_t const hash = (name.hash ^ seed) * hash_factor;
  cache_key const key = key_of(hash ^ hash >> 31);
  unsigned entry = cached(key);
  if (entry != entry_unknown) return entry;
  entry = ask_directory(dir, path, directory);
  if (entry == entry_unknown) return absolute ? entry_outside : entry_of_cwd();
  key.word->store(key.tag | key.tick << 8 | entry, std::memory_order_relaxed);
  return entry;
}

unsigned path_class_of(int dir, char const* path) {
  if (!stage.has_path_globs || !is_readable(path)) return 0;
  auto const length = static_cast<unsigned>(strnlen(path, max_path));
  if (stage.has_whole_globs && path[0] != '/') return path_class_of_whole(dir, path, length);
  return intern(core::path_rules(stage.mine->rules, {path, length}));
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
    if (i % page == 0 && last - i >= page) {
      unsigned const pages = (last - i + 1) / page;
      auto const at = reinterpret_cast<long>(&stage.mine->fd[i]);
      if (!sys::failed(sys::call(SYS_madvise, at, pages * 4096L, 4 /* MADV_DONTNEED */))) {
        i += pages * page - 1;
        continue;
      }
    }
    stage.mine->fd[i].store(entry_unknown, std::memory_order_relaxed);
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
  if (!is_readable(pattern)) return entry_outside;
  auto const whole = static_cast<unsigned>(strnlen(pattern, max_path));
  auto length = static_cast<unsigned>(strcspn(pattern, "*?[{~\\"));
  if (whole >= max_path) return entry_outside;
  if (length < whole)
    while (length > 0 && pattern[length - 1] != '/') --length;
  if (length == 0) return look_up_path(sys::at_cwd, ".");
  auto* const name = static_cast<char*>(alloca(length + 1));
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
      if (where.kind == place_kind::new_link)
        stage.name_serial.fetch_add(1, std::memory_order_relaxed);
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
