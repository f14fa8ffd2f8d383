// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/acts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "commands/replay/schedule.h"

namespace sluice::replay {

namespace {

constexpr std::size_t most_names = 10'000;  // made and not yet removed, per process
constexpr std::size_t few_names = 64;
constexpr std::int64_t late_ns = 1'000'000;

int error_of(long result) { return result < 0 ? errno : 0; }

}  // namespace

work_place::work_place(names const& n, unsigned j, std::size_t fds_most)
    : where(n),
      job(j),
      leaves(n.leaves(j)),
      fds(fds_most),
      made_names(most_names),
      made_folders(most_names) {
  for (auto& due : due_ns) due.store(INT64_MAX, std::memory_order_relaxed);
}

/// What is still open is closed by the end of the process: a burst of closes, which no limit may
/// delay, would not be in the trace.
work_place::~work_place() = default;

bool work_place::has_what_it_takes(unsigned op, std::int64_t now_ns) const {
  using kind = core::op;
  auto late = [&](kind supplier) {
    for (unsigned i = 0; i < trace::op_count; ++i)
      if (trace::op_table[i].as == supplier &&
          due_ns[i].load(std::memory_order_relaxed) < now_ns - late_ns)
        return true;
    return false;
  };
  switch (trace::op_table[op].as) {
    case kind::close:
      return fds.size() != 0 || !late(kind::open);
    case kind::unlink:
      return made_names.size() != 0 ||
             !(late(kind::mknod) || late(kind::link) || (opens_create && late(kind::open)));
    case kind::rmdir:
      return made_folders.size() != 0 || !late(kind::mkdir);
    default:
      return true;
  }
}

hand::hand(work_place& place, unsigned worker, std::uint64_t seed)
    : place_(place),
      folder_(place.where.worker(place.job, worker)),
      random_(mix_seed(seed, worker)) {}

hand::~hand() {
  if (own_fd_ >= 0) close(own_fd_);
  if (data_fd_ >= 0) close(data_fd_);
}

int hand::act(unsigned op) {
  using member = int (hand::*)();
  static constexpr member acts[] = {
#define TRACE_OP(name, as, aliases, sentence) &hand::act_##name,
#include "commands/trace/ops.def"
  };
  return (this->*acts[op])();
}

int hand::prepare(unsigned op) {
  buffer_.resize(std::max(place_.read_bytes, place_.write_bytes), 's');
  switch (trace::op_table[op].as) {
    case core::op::read:
      return data();
    case core::op::write:
    case core::op::fsync:
    case core::op::lock:
    case core::op::fallocate:
      return own();
    case core::op::readdir:
      dir_.reset(opendir(place_.leaves[next_random(random_) % place_.leaves.size()].c_str()));
      return dir_ ? 0 : errno;
    default:
      return 0;
  }
}

char const* hand::any_file() {
  file_name(place_.leaves, (next_random(random_) >> 20) % place_.where.shape.files, file_);
  return file_.c_str();
}

std::string hand::new_name(char kind) { return fmt::format("{}/{}{}", folder_, kind, made_++); }

int hand::own() {
  if (own_fd_ < 0) own_fd_ = open((folder_ + "/own").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  return error_of(own_fd_);
}

int hand::data() {
  if (data_fd_ < 0) data_fd_ = open(place_.where.data(place_.job).c_str(), O_RDONLY | O_CLOEXEC);
  return error_of(data_fd_);
}

int hand::make_name(std::string const& name) {
  return error_of(mknod(name.c_str(), S_IFREG | 0600, 0));
}

/// For a later unlink; the oldest is removed when there are too many.
int hand::keep_name(std::string name) {
  if (auto const oldest = place_.made_names.put(std::move(name))) {
    ++helpers_;
    unlink(oldest->c_str());
  }
  return 0;
}

int hand::open_one(bool create) {
  std::string const name = create ? new_name('c') : std::string();
  int const fd = create ? open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600)
                        : open(any_file(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  if (create) keep_name(name);
  if (auto const oldest = place_.fds.put(fd)) {
    ++helpers_;
    close(*oldest);
  }
  return 0;
}

int hand::act_open() {
  return open_one(place_.opens_create && place_.made_names.size() < few_names);
}

int hand::act_close() {
  auto fd = place_.fds.take();
  if (!fd) {
    ++helpers_;
    int const own_fd = open(any_file(), O_RDONLY | O_CLOEXEC);
    if (own_fd < 0) return errno;
    fd = own_fd;
  }
  return error_of(close(*fd));
}

int hand::act_mknod() {
  std::string name = new_name('k');
  int const failed = make_name(name);
  return failed != 0 ? failed : keep_name(std::move(name));
}

int hand::act_link() {
  std::string name = new_name('l');
  int const failed = error_of(link(any_file(), name.c_str()));
  return failed != 0 ? failed : keep_name(std::move(name));
}

int hand::act_unlink() {
  auto name = place_.made_names.take();
  if (!name) {
    ++helpers_;
    name = new_name('u');
    if (int const failed = make_name(*name); failed != 0) return failed;
  }
  return error_of(unlink(name->c_str()));
}

int hand::act_mkdir() {
  std::string name = new_name('m');
  if (mkdir(name.c_str(), 0700) != 0) return errno;
  if (auto const oldest = place_.made_folders.put(std::move(name))) {
    ++helpers_;
    rmdir(oldest->c_str());
  }
  return 0;
}

int hand::act_rmdir() {
  auto name = place_.made_folders.take();
  if (!name) {
    ++helpers_;
    name = new_name('m');
    if (mkdir(name->c_str(), 0700) != 0) return errno;
  }
  return error_of(rmdir(name->c_str()));
}

int hand::act_rename() {
  std::string const from = fmt::format("{}/r{}", folder_, renamed_ % 2);
  std::string const to = fmt::format("{}/r{}", folder_, (renamed_ + 1) % 2);
  int const failed = error_of(rename(from.c_str(), to.c_str()));
  if (failed == 0) ++renamed_;
  return failed;
}

int hand::act_getattr() {
  struct stat is;
  return error_of(stat(any_file(), &is));
}

int hand::act_setattr() { return error_of(chmod(any_file(), ++changed_ % 2 != 0 ? 0640 : 0600)); }

/// A file without the attribute, or a file system without any, has answered too.
int hand::act_getxattr() {
  char value[64];
  int const failed = error_of(getxattr(any_file(), "user.sluice", value, sizeof value));
  return failed == ENODATA || failed == EOPNOTSUPP ? 0 : failed;
}

int hand::act_setxattr() {
  char const value = static_cast<char>('a' + ++changed_ % 26);
  return error_of(setxattr(any_file(), "user.sluice", &value, 1, 0));
}

int hand::act_statfs() {
  struct statfs is;
  return error_of(statfs(folder_.c_str(), &is));
}

int hand::act_sync() {
  if (int const failed = own(); failed != 0) return failed;
  return error_of(fsync(own_fd_));
}

/// One block of entries.
int hand::act_readdir() {
  rewinddir(dir_.get());
  errno = 0;
  return readdir(dir_.get()) != nullptr ? 0 : errno;
}

int hand::act_punch() {
  if (int const failed = own(); failed != 0) return failed;
  return error_of(fallocate(own_fd_, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0,
                            static_cast<off_t>(place_.write_bytes)));
}

int hand::act_lock() {
  if (int const failed = own(); failed != 0) return failed;
  return error_of(flock(own_fd_, ++locked_ % 2 != 0 ? LOCK_EX : LOCK_UN));
}

int hand::act_read() {
  std::uint64_t const places = std::max<std::uint64_t>(
      1, place_.where.shape.file_bytes / std::max<std::uint64_t>(1, place_.read_bytes));
  auto const at = static_cast<off_t>((next_random(random_) >> 20) % places * place_.read_bytes);
  return error_of(pread(data_fd_, buffer_.data(), place_.read_bytes, at));
}

int hand::act_write() {
  ssize_t const n =
      pwrite(own_fd_, buffer_.data(), place_.write_bytes, static_cast<off_t>(write_at_));
  write_at_ += place_.write_bytes;
  if (write_at_ + place_.write_bytes > place_.where.shape.file_bytes) write_at_ = 0;
  return error_of(n);
}

}  // namespace sluice::replay
