// SPDX-License-Identifier: Apache-2.0
// See paths.h. A call by fd is asked after by /proc/self/fd, once as long as the fd is the same:
// the high byte of its table entry says that `of_fd` is about it. A call by name costs no look-up:
// its text is taken as it is, below the current directory or the fd it starts at.
#include "paths.h"

#include "area.h"
#include "name_buffer.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "clock.h"
#include "core/path_head.h"
#include "sys.h"

namespace sluice::paths {

constinit abi::path_area* area = nullptr;

namespace {

constexpr unsigned hint_count = 1024;
constexpr unsigned name_room = 512;  // the rest of a longer name is too deep to be shown

/// What this process remembers. Zeros, and pages nobody touched cost nothing.
struct memory {
  std::atomic<std::uint64_t> of_fd[fd_table_size];  // key of its directory
  std::atomic<std::uint16_t> hint[hint_count];      // slot of a key; may be wrong
};
constinit memory* mine = nullptr;

std::atomic<std::uint16_t>& hint_of(std::uint64_t key) { return mine->hint[key % hint_count]; }

/// The high byte of the table entry of an fd whose directory is known. It is made from the number,
/// so that what dup copies to another one says nothing there.
unsigned mark_of(int fd) { return 1 + static_cast<unsigned>(fd) % 255; }

std::uint64_t known_directory(int fd, unsigned entry) {
  bool const is_marked = !stage.has_path_globs && entry >> entry_path_shift == mark_of(fd);
  return is_marked && in_table(fd) ? mine->of_fd[fd].load(std::memory_order_relaxed) : 0;
}

// With rules that ask for names the high byte is theirs.
void remember(int fd, unsigned entry, std::uint64_t key) {
  if (stage.has_path_globs || !in_table(fd)) return;
  mine->of_fd[fd].store(key, std::memory_order_relaxed);
  auto seen = static_cast<fd_entry>(entry);
  auto const marked = static_cast<fd_entry>((entry & 0xff) | mark_of(fd) << entry_path_shift);
  stage.mine->entry_of(fd).compare_exchange_strong(seen, marked, std::memory_order_relaxed);
}

// A link of /proc, without its last part when it was cut or `whole` is false.
bool add_link(core::path_head& head, char* text, long length, bool whole) {
  if (length <= 0 || text[0] != '/') return false;
  auto end = static_cast<unsigned>(length);
  if (!whole || end >= name_room)
    while (text[end - 1] != '/') --end;
  head.add(text, end);
  return true;
}

bool add_cwd(core::path_head& head) {
  char text[name_room];
  long const length = read_own_link("cwd", text, sizeof text);
  return add_link(head, text, length, true);
}

bool add_fd(core::path_head& head, int fd, bool is_directory) {
  char text[name_room];
  return add_link(head, text, name_of_fd(fd, text, sizeof text), is_directory);
}

bool add_directory_of_fd(core::path_head& head, int fd) {
  sys::file_identity file;
  if (!sys::identify(fd, "", sys::at_empty_path, file)) return false;
  return add_fd(head, fd, S_ISDIR(file.mode));
}

/// How much of a name is the directory that the call is about.
unsigned directory_length(visit const& v, place const& where) {
  core::scanned_path const name = core::scan(where.path);
  if (where.kind != place_kind::pattern)
    return v.what == core::op::opendir ? name.length : name.directory;
  auto length = static_cast<unsigned>(strcspn(where.path, "*?[{~\\"));
  while (length > 0 && where.path[length - 1] != '/') --length;
  return length < name.length ? length : name.directory;
}

bool add_directory_of_name(core::path_head& head, visit const& v, place const& where) {
  if (!can_read_text(where.path)) return false;
  if (where.path[0] == 0) return where.fd >= 0 && add_directory_of_fd(head, where.fd);
  if (where.path[0] != '/' &&
      !(where.fd == sys::at_cwd ? add_cwd(head) : add_fd(head, where.fd, true)))
    return false;
  head.add(where.path, directory_length(v, where));
  return true;
}

void count_at(visit& v, unsigned slot, std::uint64_t key) {
  v.path_slot = static_cast<std::uint16_t>(slot + 1);
  v.path_tag = static_cast<std::uint8_t>(key);
  v.is_noted = true;
}

/// The slot of a visit; null when it has become another path's meanwhile.
core::sketch_row* row_of(visit const& v) {
  if (area == nullptr || v.path_slot == 0 || v.path_slot > abi::path_slots) return nullptr;
  unsigned const slot = v.path_slot - 1u;
  std::uint64_t const key = area->sketch.key[slot].load(std::memory_order_relaxed);
  return static_cast<std::uint8_t>(key) == v.path_tag ? &area->sketch.row[slot] : nullptr;
}

}  // namespace

void begin(char* segment_path) {
  auto* const found = map_area<abi::path_area>(
      segment_path, "paths",
      [](auto const& a, std::uint64_t bytes) { return abi::refuse_reason(a, bytes); });
  if (found == nullptr) return;
  long const at = sys::map(sizeof(memory), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(at)) return;
  mine = reinterpret_cast<memory*>(at);
  area = found;
}

void note_call(visit& v, unsigned entry, place const& where) {
  if ((entry & entry_kind_mask) < stage.first_counted || where.kind == place_kind::nothing) return;
  bool const is_fd = where.kind == place_kind::fd || where.kind == place_kind::fd_now;
  if (is_fd && where.fd < 0) return;
  auto& sketch = area->sketch;
  if (std::uint64_t const key = is_fd ? known_directory(where.fd, entry) : 0) {
    unsigned const slot =
        core::find_slot(sketch, key, hint_of(key).load(std::memory_order_relaxed));
    if (slot < sketch.slots) {
      sketch.calls[slot].fetch_add(1, std::memory_order_relaxed);
      return count_at(v, slot, key);
    }
  }
  core::path_head head(area->head.parts);
  bool const known =
      is_fd ? add_directory_of_fd(head, where.fd) : add_directory_of_name(head, v, where);
  std::uint64_t const key = core::sketch_key(head.text(), head.length());
  unsigned const slot = !known ? sketch.slots
                               : core::note_path(sketch, key, head.text(), head.length(),
                                                 hint_of(key).load(std::memory_order_relaxed),
                                                 {coarse_tick(), self.tid});
  if (slot == sketch.slots) {
    area->head.unnamed.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  hint_of(key).store(static_cast<std::uint16_t>(slot), std::memory_order_relaxed);
  count_at(v, slot, key);
  if (is_fd) remember(where.fd, entry, key);
}

void add_bytes(visit const& v, std::uint64_t moved) {
  if (core::sketch_row* const row = moved != 0 ? row_of(v) : nullptr)
    row->bytes.fetch_add(moved, std::memory_order_relaxed);
}

void add_wait(visit const& v, std::uint64_t waited_ns) {
  if (core::sketch_row* const row = row_of(v))
    row->waited_ns.fetch_add(waited_ns, std::memory_order_relaxed);
}

void add_time(visit const& v, std::uint64_t took_ns) {
  if (core::sketch_row* const row = row_of(v))
    row->took_ns.fetch_add(took_ns, std::memory_order_relaxed);
}

}  // namespace sluice::paths
