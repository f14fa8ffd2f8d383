// SPDX-License-Identifier: Apache-2.0
// A log with a small file system of its own, and what a crash leaves of both.
#pragma once

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "journal/file_disk.h"
#include "journal/home.h"
#include "journal/recover.h"
#include "journal/slots.h"
#include "journal/writer.h"
#include "lib/own_mounts.h"
#include "lib/scratch.h"

namespace sluice::test {

using namespace sluice::journal;

/// A small file system of its own, for not every one tells a uuid.
struct file_system {
  sluice::test::scratch holder;
  std::string dir = holder.dir + "/home";
  bool is_mounted = false;

  file_system() { is_mounted = sluice::test::mount_ext4(holder.dir + "/image", "16M", dir); }
  ~file_system() {
    if (is_mounted)
      std::system(("umount -l " + dir).c_str()) == 0 || std::printf("still mounted\n");
  }
  file_system(file_system const&) = delete;
  /// With what debugfs did to it in between.
  bool mount_again(std::string const& debugfs) const {
    std::string const image = holder.dir + "/image";
    std::string const all = "umount " + dir + " && debugfs -w -R '" + debugfs + "' " + image +
                            " && sleep 0.1 && mount -o loop " + image + " " + dir;
    return sluice::test::shell(all);
  }
};

/// A directory with a log, and files that are written through it.
struct bench {
  file_system at;
  std::string log = at.dir + "/log";
  std::optional<file_disk> disk;
  std::optional<writer> w;
  std::uint64_t lsn = 0;

  bool begin(std::uint64_t window_ns = 60'000'000'000) {
    if (!at.is_mounted) {
      WARN("skip: needs root, mkfs.ext4 and loop devices");
      return false;
    }
    make_log_file(log, 1 << 20, window_ns);
    open_writer();
    return true;
  }
  void open_writer() {
    disk.emplace(log, file_disk::use::write);
    w.emplace(*disk, read_slots(*disk).in_force,
              surroundings{realtime_ns, [] { return std::uint64_t{1}; }});
  }
  void crash() {
    w.reset();
    disk.reset();
  }
  recovered recover_it(bool keep_home = false, bool set_aside = false) {
    recover_options o;
    o.log = log;
    o.keep_home = keep_home;
    o.set_aside = set_aside;
    return recover(o);
  }

  std::string path(std::string const& name) const { return at.dir + "/" + name; }
  file_id id_of(std::string const& p) const {
    file_id id;
    int const fd = open(p.c_str(), O_RDONLY);
    REQUIRE(identify(fd, id) == 0);
    close(fd);
    return id;
  }
  void write(std::string const& name, std::string const& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  void immutable(std::string const& name, bool is_so) const {
    int const fd = open(path(name).c_str(), O_RDONLY);
    int flags = 0;
    REQUIRE(ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0);
    flags = is_so ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
    REQUIRE(ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0);
    close(fd);
  }
  std::string read(std::string const& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return in ? std::string(std::istreambuf_iterator<char>(in), {}) : "no file";
  }
  record about(kind what, std::string const& name) const {
    record r;
    r.what = what;
    r.file = id_of(path(name));
    r.directory = id_of(at.dir);
    r.name = name;
    r.mode = S_IFREG | 0640;
    return r;
  }
  void tell(record const& r) {
    REQUIRE(w->try_append(r, lsn) == 0);
    REQUIRE(w->commit(lsn) == 0);
  }
  void tell_owner(file_id const& id, unsigned uid, unsigned gid) {
    record r;
    r.what = kind::owner;
    r.file = id;
    r.uid = uid;
    r.gid = gid;
    tell(r);
  }
  void tell_data(file_id const& id, std::uint64_t offset, std::string const& text,
                 std::uint64_t changed_ns = 0) {
    record r;
    r.what = kind::data;
    r.changed_ns = changed_ns;
    r.file = id;
    r.offset = offset;
    r.bytes = std::as_bytes(std::span(text));
    tell(r);
  }
  /// Of a file that the crash lost with its name; the record that made it. `in`: another directory
  /// than the root.
  record tell_lost(std::string const& name, std::string const& text, file_id const* in = nullptr) {
    write(name, "");
    record made = about(kind::create, name);
    made.changed_ns = realtime_ns();
    if (in != nullptr) made.directory = *in;
    tell(made);
    tell_new(made.file, text);
    REQUIRE(unlink(path(name).c_str()) == 0);
    return made;
  }
  /// Behind the creation: all that a new file begins with.
  void tell_new(file_id const& id, std::string const& text, std::uint64_t changed_ns = 0) {
    tell_data(id, 0, text, changed_ns);
    record r;
    r.changed_ns = changed_ns;
    r.what = kind::truncate;
    r.file = id;
    r.offset = text.size();
    tell(r);
  }
};

}  // namespace sluice::test
