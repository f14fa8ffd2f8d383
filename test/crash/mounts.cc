// SPDX-License-Identifier: Apache-2.0
#include "mounts.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "journal/opener.h"
#include "journal/recover.h"

namespace sluice::crash {

namespace {

constexpr fs_kind kinds[] = {
    {"ext4", 64ull << 20, 160ull << 20,
     "mkfs.ext4 -q -F -J size=4 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard",
     "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard", ""},
    {"xfs", 320ull << 20, 320ull << 20, "mkfs.xfs -q -f -K -d agcount=2", "mkfs.xfs -q -f -K", ""},
};
fs_kind const& log_kind = kinds[0];

void make_fs(fs_kind const& kind, std::string const& device) {
  if (std::system((std::string(kind.make) + " " + device + " >/dev/null").c_str()) != 0)
    throw std::runtime_error("mkfs");
}

void mount_fs(fs_kind const& kind, std::string const& device, std::string const& at) {
  if (mount(device.c_str(), at.c_str(), kind.name, MS_NOATIME, kind.options) != 0)
    throw std::runtime_error(std::string("mount: ") + std::strerror(errno));
}

void unmount_fs(std::string const& at) {
  for (int i = 0; umount(at.c_str()) != 0; ++i) {
    if (i == 4000) throw std::runtime_error(std::string("umount: ") + std::strerror(errno));
    usleep(5000);
  }
}

}  // namespace

fs_kind const* find_fs(char const* name) {
  for (auto const& kind : kinds)
    if (std::strcmp(kind.name, name) == 0) return &kind;
  return nullptr;
}

namespace {

std::vector<mounts::place> plan(fs_kind const& kind, std::string const& dir, std::uint64_t bytes,
                                std::uint64_t log_bytes, unsigned nodes) {
  std::vector<mounts::place> all = {{&kind, dir + "/mnt", bytes}};
  for (unsigned i = 1; i < nodes; ++i)
    all.push_back({&kind, dir + "/mnt" + std::to_string(i), bytes});
  if (log_bytes != 0) all.push_back({&log_kind, dir + "/logmnt", log_bytes});
  for (auto const& p : all) mkdir(p.at.c_str(), 0711);
  return all;
}

std::vector<std::uint64_t> sizes(std::vector<mounts::place> const& places) {
  std::vector<std::uint64_t> bytes;
  for (auto const& p : places) bytes.push_back(p.bytes);
  return bytes;
}

}  // namespace

mounts::mounts(fs_kind const& kind, std::string const& scratch, std::uint64_t bytes,
               std::uint64_t log_bytes, unsigned nodes)
    : fs(kind),
      dir(scratch),
      mount_point(scratch + "/mnt"),
      places(plan(kind, scratch, bytes, log_bytes, nodes)),
      disk(scratch + "/disk", sizes(places)) {
  for (auto const& p : places) logs.push_back(p.at + (nodes > 1 ? "/log/0/journal" : "/log"));
  if (log_bytes != 0) logs = {logs.back()};
}

void mounts::make() {
  for (unsigned i = 0; i < places.size(); ++i) {
    disk.attach(i);
    make_fs(*places[i].kind, disk.device(i));
  }
  disk.detach();
}

void mounts::mount_it(memory kept) {
  for (unsigned i = 0; i < places.size(); ++i) try {
      disk.attach(i, kept);
      mount_fs(*places[i].kind, disk.device(i), places[i].at);
    } catch (std::runtime_error const&) {
      int const why = errno;
      while (i-- > 0) unmount_fs(places[i].at);
      errno = why;
      throw;
    }
}

bool mounts::mount_cut(unsigned& unmountable, memory kept) {
  try {
    mount_it(kept);
    return true;
  } catch (std::runtime_error const&) {
    int const why = errno;
    disk.detach();
    // Its superblock was torn: EINVAL is what xfs calls that.
    if (why != EBADMSG && why != EUCLEAN && why != EINVAL) throw;
    ++unmountable;
    return false;
  }
}

void mounts::unmount() {
  for (auto p = places.rbegin(); p != places.rend(); ++p) unmount_fs(p->at);
  disk.wait_until_unused();
  disk.detach();
}

namespace {

/// Without a shell between.
bool run_on(std::string const& program, std::string const& file, std::string const& out) {
  char const* const words[] = {program.c_str(), "-q", "--replay", file.c_str(), nullptr};
  posix_spawn_file_actions_t acts;
  posix_spawn_file_actions_init(&acts);
  posix_spawn_file_actions_addopen(&acts, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&acts, 1, 2);
  pid_t pid = -1;
  int const failed =
      posix_spawn(&pid, words[0], &acts, nullptr, const_cast<char**>(words), environ);
  posix_spawn_file_actions_destroy(&acts);
  int status = -1;
  return failed == 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

}  // namespace

namespace {

/// The same without a program: of a small recovery exec and the libraries are most.
bool recover_in_child(std::string const& file, std::string const& out) {
  std::fflush(nullptr);
  pid_t const pid = fork();
  if (pid == 0) {
    int const to = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    journal::recover_options o;
    o.log = file;
    o.replay = true;
    try {
      auto const files = journal::become_owner(file);
      o.files = files.get();
      journal::recover(o);
    } catch (std::exception const& e) {
      dprintf(to, "%s\n", e.what());
      _exit(1);
    }
    _exit(0);
  }
  int status = -1;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

}  // namespace

void mounts::have_users(bool is_damaged) {
  is_damaged_ = is_damaged;
  logs = {mount_point + "/journals/64001/own/journal", mount_point + "/journals/64002/own/journal"};
}

namespace {

void damage(std::string const& file) {
  constexpr char nothing[8192] = {};  // both superblocks
  int const fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  bool const is_done = fd >= 0 && pwrite(fd, nothing, sizeof nothing, 0) == sizeof nothing;
  if (fd >= 0) close(fd);
  if (!is_done) throw std::runtime_error("cannot damage " + file);
}

}  // namespace

bool mounts::recover_one(std::string const& program, std::string const& file) {
  std::string const out = dir + "/recover.out";
  bool const is_program = recoveries_++ % recoveries_of_a_program == 0;
  return is_program ? run_on(program, file, out) : recover_in_child(file, out);
}

bool mounts::recover(std::string const& program) {
  for (auto const& file : logs) {
    bool const may_lack = logs.size() > 1 && access(file.c_str(), F_OK) != 0;
    if (may_lack) continue;
    bool const must_fail = is_damaged_ && file == logs.front();
    if (must_fail) damage(file);
    if (recover_one(program, file) == must_fail) return false;
  }
  return true;
}

}  // namespace sluice::crash
