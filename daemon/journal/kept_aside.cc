// SPDX-License-Identifier: Apache-2.0
#include "journal/kept_aside.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "journal/file_disk.h"
#include "journal/slots.h"
#include "journal/writer.h"

namespace sluice::journal {

namespace {

namespace files = std::filesystem;

constexpr std::uint64_t batch_bytes = 1 << 20;  // appended before it is written
constexpr char const* kept_word = ".kept-";

[[noreturn]] void fail(std::string const& path, int error) {
  throw sluice_error(fmt::format("{}: cannot be written: {}", path, std::strerror(error)));
}

std::uint64_t bytes_of(record const& r) {
  std::vector<std::byte> payload;
  encode(r, payload);
  return record_bytes(payload.size());
}

/// As the journal that it is kept of was: who recovers it asks the same of files as here.
superblock super_of(superblock made, superblock const& of) {
  std::copy(std::begin(of.id), std::end(of.id), std::begin(made.id));
  std::copy(std::begin(of.boot), std::end(of.boot), std::begin(made.boot));
  made.generation = of.generation;
  made.ours = of.ours;
  made.window_ns = of.window_ns;
  made.home_error = of.home_error;
  return made;
}

void write_all(file_disk& disk, std::string const& path, kept_log const& of,
               std::function<void(take_record const&)> const& each) {
  superblock super = super_of(read_slots(disk).in_force, of.super);
  for (int slot = 0; slot < 2; ++slot)
    if (int const error = write_slot(disk, super); error != 0) fail(path, error);
  writer to(disk, super, {[&] { return of.written_ns; }, [] { return std::uint64_t{1}; }});
  std::uint64_t lsn = 0, open_bytes = 0;
  auto const commit = [&] {
    open_bytes = 0;
    if (int const error = to.commit(lsn); error != 0) fail(path, error);
  };
  each([&](record const& r) {
    if (int const error = to.try_append(r, lsn); error != 0) fail(path, error);
    if ((open_bytes += bytes_of(r)) >= batch_bytes) commit();
  });
  if (open_bytes != 0) commit();
  if (fchown(disk.descriptor(), of.owner, static_cast<gid_t>(-1)) != 0) fail(path, errno);
  if (fsync(disk.descriptor()) != 0) fail(path, errno);
}

/// Of an attempt of the same recovery that was cut off: it had the same records.
bool is_of_attempt(std::string const& path, superblock const& of) {
  try {
    file_disk disk(path, file_disk::use::look);
    slots_found const found = read_slots(disk);
    return found.what == slots_found::good && found.in_force.generation == of.generation &&
           std::memcmp(found.in_force.id, of.id, sizeof of.id) == 0;
  } catch (error const&) {
    return false;
  }
}

/// A name that nobody has, or that attempt.
std::string name_for(kept_log const& of) {
  std::string const first = fmt::format("{}{}{}", of.log, kept_word, of.super.generation);
  std::string name = first;
  struct stat st = {};  // a link that leads nowhere is in the way as well
  auto const is_free = [&] { return lstat(name.c_str(), &st) != 0 && errno == ENOENT; };
  for (int i = 2; !is_free() && !is_of_attempt(name, of.super); ++i)
    name = fmt::format("{}-{}", first, i);
  return name;
}

}  // namespace

std::uint64_t room_for_records(std::uint64_t bytes) {
  std::uint64_t const batches = bytes / batch_bytes + 2;
  return area_begin + area_bytes_min + round_up(bytes, block_bytes) + 2 * batches * block_bytes;
}

std::string keep_aside(kept_log const& of, std::function<void(take_record const&)> const& each) {
  std::string const name = name_for(of);
  std::uint64_t bytes = 0;
  each([&](record const& r) { bytes += bytes_of(r); });
  auto const kept = begin_log_file(name, room_for_records(bytes), of.super.window_ns);
  write_all(*kept, name, of, each);
  unlink(name.c_str());  // of that attempt, whose records the journal still has
  if (int const error = kept->link_as(name); error != 0) fail(name, error);
  sync_directory_of(name);
  return name;
}

void remove_kept_of_attempt(kept_log const& of) {
  std::string const name = name_for(of);
  if (is_of_attempt(name, of.super)) unlink(name.c_str());
}

std::uint64_t kept_beside(std::string const& log) {
  files::path const path = files::absolute(log);
  std::string const begins = path.filename().string() + kept_word;
  std::error_code failed;
  std::uint64_t count = 0;
  for (auto at = files::directory_iterator(path.parent_path(), failed);
       !failed && at != files::directory_iterator(); at.increment(failed)) {
    count += at->path().filename().string().starts_with(begins);
  }
  return count;
}

}  // namespace sluice::journal
