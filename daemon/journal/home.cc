// SPDX-License-Identifier: Apache-2.0
// FS_IOC_GETFSUUID is in Linux since 6.9, so headers of Debian 12 do not have it.
#include "journal/home.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>

#include "base/believed_place.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/open_file.h"
#include "base/sync.h"
#include "journal/hands.h"
#include "journal/recovery_mark.h"

namespace sluice::journal {

namespace {

struct fs_uuid {
  std::uint8_t length;
  std::uint8_t bytes[16];
};
constexpr unsigned long ask_fs_uuid = _IOR(0x15, 0, fs_uuid);

struct handle_buffer {
  file_handle head;
  unsigned char room[128];
};

bool ask_uuid(int fd, std::array<std::uint8_t, 16>& uuid) {
  fs_uuid said = {};
  if (ioctl(fd, ask_fs_uuid, &said) != 0 || said.length != sizeof said.bytes) return false;
  std::memcpy(uuid.data(), said.bytes, uuid.size());
  return std::any_of(uuid.begin(), uuid.end(), [](auto b) { return b != 0; });
}

/// File systems that may have files in a journal. Others may hang when they are asked.
bool is_local(std::string const& type) {
  static constexpr char const* types[] = {"ext4", "ext3", "xfs"};
  return std::any_of(std::begin(types), std::end(types), [&](auto t) { return type == t; });
}

bool is_writable(mount_row const& m) { return m.options.starts_with("rw"); }

bool is_same(int a, int b) {
  struct stat one = {}, other = {};
  return fstat(a, &one) == 0 && fstat(b, &other) == 0 && is_same_file(one, other);
}

/// An inode that somebody makes just now is not to be had for a moment, and ext4 says ENOMEM.
int open_exact(int mount, file_handle& handle, int flags) {
  constexpr int tries_max = 100;
  for (int tries = 1;; ++tries) {
    int const fd = open_by_handle_at(mount, &handle, flags);
    if (fd >= 0 || errno != ENOMEM || tries == tries_max) return fd;
    timespec const nap = {0, 1'000'000};
    nanosleep(&nap, nullptr);
  }
}

}  // namespace

int identify(int fd, file_id& id, std::array<std::uint8_t, 16> const* fs) {
  if (fs != nullptr) id.fs = *fs;
  if (fs == nullptr && !ask_uuid(fd, id.fs)) return EOPNOTSUPP;
  handle_buffer h = {};
  h.head.handle_bytes = sizeof h.room;
  int mount = 0;
  if (name_to_handle_at(fd, "", &h.head, &mount, AT_EMPTY_PATH) != 0) return errno;
  id.handle_type = h.head.handle_type;
  id.handle.assign(reinterpret_cast<char const*>(h.head.f_handle), h.head.handle_bytes);
  return 0;
}

void mounted_home::keep_only(std::set<std::array<std::uint8_t, 16>> const& wanted) {
  let_go();
  all_ = read_mounts();
  std::set<std::uint64_t> devices;
  auto const of_root = chosen_by_root(all_);
  for (bool const is_whole : {true, false})
    for (auto const& m : of_root)
      if ((m.root == "/") == is_whole && is_local(m.type) && is_writable(m) &&
          !devices.contains(m.device) && look_at(m))
        devices.insert(m.device);
  // Who wants to unmount the others is not to wait for us.
  for (auto const& [uuid, m] : mounted_)
    if (!wanted.contains(uuid)) close(m.fd);
  std::erase_if(mounted_, [&](auto const& one) { return !wanted.contains(one.first); });
}

/// False: it cannot be reached.
bool mounted_home::look_at(mount_row const& m) {
  descriptor const root = reach(all_, m);
  descriptor fd(root ? open_below(root.get(), ".", O_RDONLY | O_DIRECTORY) : -1);
  std::array<std::uint8_t, 16> uuid = {};
  if (!fd) return false;
  if (!ask_uuid(fd.get(), uuid)) return true;
  auto const [at, is_new] = mounted_.try_emplace(uuid, mounted{fd.get(), m, true});
  if (is_new)
    fd.release();
  else
    at->second.is_unique = false;
  return true;
}

void mounted_home::let_go() {
  for (auto const& [uuid, m] : mounted_) close(m.fd);
  mounted_.clear();
}

mounted_home::mounted const* mounted_home::of(std::array<std::uint8_t, 16> const& fs) const {
  auto const at = mounted_.find(fs);
  return at == mounted_.end() ? nullptr : &at->second;
}

int mounted_home::open(file_id const& id, int flags) const {
  mounted const* const m = of(id.fs);
  if (m == nullptr) return -ENODEV;
  if (!m->is_unique) return -ENOTUNIQ;
  handle_buffer h = {};
  if (id.handle.size() > sizeof h.room) return -ESTALE;
  h.head.handle_bytes = static_cast<unsigned>(id.handle.size());
  h.head.handle_type = id.handle_type;
  std::memcpy(h.head.f_handle, id.handle.data(), id.handle.size());
  int const fd = open_exact(m->fd, h.head, flags | O_CLOEXEC);
  if (fd >= 0) return fd;
  if (errno != ESTALE) return -errno;
  int const error = why_missing({m->fd, m->at.source, device_text(m->at.device), m->at.type}, id);
  return error != 0 ? -error : -ESTALE;
}

/// From the root of the mount; without that the thread cannot reach it.
int mounted_home::open_by_name(std::array<std::uint8_t, 16> const& fs, int directory) const {
  mounted const* const m = of(fs);
  std::string const path = path_of(directory);
  auto const below = m != nullptr ? path_below(m->at.point, path) : std::nullopt;
  descriptor const root = below ? reach(all_, m->at) : descriptor();
  if (!root || !is_same(root.get(), m->fd)) return -1;
  descriptor found(open_below(root.get(), below->c_str(), O_RDONLY | O_DIRECTORY));
  struct stat st = {};
  if (!found && errno == EXDEV && fstat(directory, &st) == 0)  // a part of it is mounted there
    found = root_above(path, st.st_dev).open_directory(path);
  return found && is_same(found.get(), directory) ? found.release() : -1;
}

int mounted_home::sync(std::array<std::uint8_t, 16> const& fs) const {
  mounted const* const m = of(fs);
  if (m == nullptr) return ENODEV;
  return sync_file_system(m->fd);
}

mount_time mounted_home::mounting(std::array<std::uint8_t, 16> const& fs) const {
  mounted const* const m = of(fs);
  if (m == nullptr || m->at.type != "ext4") return {};
  bool const is_root = std::any_of(all_.begin(), all_.end(), [&](mount_row const& row) {
    return row.point == "/" && row.device == m->at.device;
  });
  return mount_time_of(m->at.source, device_text(m->at.device), is_root);
}

/// The kernel often knows no name of what was opened by handle.
std::string mounted_home::place_of(std::array<std::uint8_t, 16> const& fs, int fd) const {
  std::string const said = path_of(fd);
  mounted const* const m = of(fs);
  auto const path = m != nullptr ? path_below(m->at.point, said) : std::nullopt;
  descriptor const there(path ? open_below(m->fd, path->c_str(), O_PATH) : -1);
  return there && is_same(there.get(), fd) ? said : nameless(fs, fd);
}

bool mounted_home::is_marked(int fd, std::string const& mark) const {
  return has_recovery_mark(fd, mark);
}

int mounted_home::set_mark(int fd, std::string const& mark, hands& by) const {
  return by.set_mark(fd, mark);
}

std::uint64_t changed_ns(struct stat const& st) {
  return static_cast<std::uint64_t>(sluice::ns_of(st.st_ctim));
}

std::uint64_t modified_ns(struct stat const& st) {
  return static_cast<std::uint64_t>(sluice::ns_of(st.st_mtim));
}

std::uint64_t ns_of(statx_timestamp const& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

std::uint64_t realtime_ns() { return static_cast<std::uint64_t>(unix_ns()); }

std::uint64_t coarse_ns() { return static_cast<std::uint64_t>(read_clock(CLOCK_REALTIME_COARSE)); }

std::string nameless(std::array<std::uint8_t, 16> const& fs, int fd) {
  struct stat st = {};
  if (fstat(fd, &st) != 0) return "a file on " + uuid_text(fs);
  return fmt::format("the {0} with inode {1} on {2} (find DIR -xdev -inum {1})",
                     S_ISDIR(st.st_mode) ? "directory" : "file", st.st_ino, uuid_text(fs));
}

std::string uuid_text(std::array<std::uint8_t, 16> const& fs) {
  std::string text;
  for (std::size_t i = 0; i < fs.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", fs[i]);
  }
  return text;
}

}  // namespace sluice::journal
