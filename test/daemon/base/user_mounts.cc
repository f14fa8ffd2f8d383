// SPDX-License-Identifier: Apache-2.0
// Which mounts a user may have chosen: by the kernel's word, by mount(8)'s notes, by /etc/fstab.
#include "base/user_mounts.h"

#include <catch2/catch.hpp>

using namespace sluice;

namespace {

std::string row(std::string const& device, std::string const& point, std::string const& rest) {
  static unsigned id = 100;
  return std::to_string(++id) + " 1 " + device + " / " + point + " rw - " + rest + "\n";
}

/// Why the last row may be a user's; "root": it is not.
std::string why(std::string const& mountinfo, std::string const& fstab = "",
                std::string const& utab = "", std::uint64_t device = 0, bool is_movable = false) {
  auto const all = parse_mounts(mountinfo);
  REQUIRE_FALSE(all.empty());
  user_mount_notes notes = {parse_fstab(fstab), parse_utab(utab)};
  for (auto& one : notes.fstab) one.device = device;
  if (is_movable) notes.movable.push_back(all.back().id);
  return why_of_user(all.back(), all, notes).value_or("root");
}

std::string disk(std::string const& point = "/mnt/stick") {
  return row("8:17", point, "ext4 /dev/sdb1 rw");
}
std::string loop() { return row("7:3", "/mnt/image", "ext4 /dev/loop3 rw"); }

using Catch::Contains;

}  // namespace

TEST_CASE("user mounts: the kernel says who serves a FUSE") {
  auto const fuse = [](std::string const& type, std::string const& options) {
    return why(row("0:60", "/mnt/f", type + " x rw," + options));
  };
  CHECK_THAT(fuse("fuse", "user_id=65011,group_id=0,allow_other"), Contains("uid 65011"));
  CHECK_THAT(fuse("fuse.sshfs", "user_id=65011,group_id=0"), Contains("uid 65011"));
  CHECK_THAT(fuse("fuseblk", "user_id=65011,group_id=0"), Contains("uid 65011"));
  CHECK_THAT(fuse("fuse", "group_id=0"), Contains("uid ?"));
  CHECK_THAT(fuse("fuse", "user_id"), Contains("uid ?"));
  CHECK(fuse("fuse", "user_id=0,group_id=0,allow_other") == "root");
  CHECK(fuse("fusectl", "relatime") == "root");
  CHECK(fuse("virtiofs", "relatime") == "root");
}

TEST_CASE("user mounts: a line of fstab fits by point, source and device") {
  CHECK(why(disk()) == "root");
  for (std::string const option : {"user", "users", "owner", "group", "user=ann"}) {
    CAPTURE(option);
    std::string const end = " ext4 noauto," + option + ",exec 0 0\n";
    CHECK_THAT(why(disk(), "# notes\n\n/dev/sdz1 /mnt/stick/" + end), Contains("line 3"));
    CHECK_THAT(why(disk(), "/dev/sdb1\t/elsewhere" + end), Contains("line 1"));
    CHECK(why(disk(), "/dev/sdb2 /elsewhere" + end) == "root");
    CHECK_THAT(why(disk(), "UUID=1-2 /elsewhere" + end, "", device_number(8, 17)),
               Contains("line 1"));
    CHECK(why(disk(), "UUID=1-2 /elsewhere" + end, "", device_number(8, 18)) == "root");
  }
  CHECK(why(disk(), "/dev/sdb1 /mnt/stick ext4 defaults,nouser,usrquota 0 0\n") == "root");
  CHECK(why(disk(), "#/dev/sdb1 /mnt/stick ext4 user 0 0\n") == "root");
  CHECK(why(disk(), "/dev/sdb1 /mnt/stick\n") == "root");
  CHECK_THAT(why(disk("/mnt/my\\040stick"), "/dev/sdz1 /mnt/my\\040stick ext4 user\n"),
             Contains("line 1"));
}

TEST_CASE("user mounts: an image of a user may be on any loop device") {
  for (std::string const line :
       {"/home/ann/image /elsewhere ext4 user,noauto", "/dev/x /elsewhere ext4 users,loop",
        "/home/ann/image /elsewhere ext4 users,loop=/dev/loop9"})
    CHECK_THAT(why(loop(), line), Contains("line 1"));
  CHECK(why(disk(), "/home/ann/image /elsewhere ext4 user") == "root");
  CHECK(why(loop(), "/home/ann/image /elsewhere ext4 noauto") == "root");
  CHECK(why(loop(), "//server/share /elsewhere cifs user") == "root");
  CHECK(why(loop(), "server:/share /elsewhere nfs user") == "root");
}

TEST_CASE("user mounts: a bind of a user taints its own point, and no other") {
  std::string const bind = "/home/ann /mnt/ann none bind,user";
  CHECK_THAT(why(disk("/home") + disk("/mnt/ann"), bind), Contains("line 1"));
  CHECK(why(disk("/mnt/ann") + disk("/home"), bind) == "root");
  CHECK(why(loop(), bind) == "root");
}

TEST_CASE("user mounts: what is a user's at one place is so wherever it is mounted") {
  std::string const line = "/dev/sdz1 /mnt/stick ext4 user";
  CHECK_THAT(why(disk() + disk("/srv"), line), Contains("mounted at /mnt/stick too"));
  CHECK(why(disk() + row("8:1", "/srv", "ext4 /dev/sda1 rw"), line) == "root");
}

TEST_CASE("user mounts: mount's own notes") {
  std::string const to_other = "SRC=/dev/sdz1 TARGET=/mnt/other ROOT=/ OPTS=user=ann\n";
  CHECK(why(disk(), "", to_other) == "root");
  for (std::string const opts : {"user=ann", "uhelper=udisks2", "noexec,user=ann"}) {
    CHECK_THAT(why(disk(), "", "ID=7 SRC=x TARGET=/mnt/stick ROOT=/ OPTS=" + opts + "\n"),
               Contains("utab"));
    CHECK_THAT(why(disk("/x") + disk(), "", to_other + "SRC=/dev/sdb1 TARGET=/x OPTS=" + opts),
               Contains("utab"));
  }
  // Nothing is mounted there any more, and the device may be root's by now.
  CHECK(why(disk(), "", "SRC=/dev/sdb1 TARGET=/x OPTS=user=ann") == "root");
  CHECK(why(disk(), "", "SRC=/dev/sdb1 TARGET=/mnt/stick ROOT=/ OPTS=_netdev\n") == "root");
  CHECK(why(row("0:70", "/tmp", "tmpfs none rw"), "none /x tmpfs user",
            "SRC=none TARGET=/x OPTS=user=ann") == "root");
}

TEST_CASE("user mounts: who may rename a directory above hides what the notes say") {
  std::string const note = "SRC=/dev/sdb1 TARGET=/x/usb OPTS=user=ann";
  CHECK_THAT(why(disk(), "", note, 0, true), Contains("utab"));
  CHECK(why(disk(), "", "SRC=/dev/sdc1 TARGET=/x/usb OPTS=user=ann", 0, true) == "root");
  std::string const line = "LABEL=USB /x/usb ext4 user";
  CHECK(why(disk(), line) == "root");
  CHECK_THAT(why(disk(), line, "", 0, true), Contains("rename"));
  // The line is of another mount, which is where it should be.
  CHECK(why(row("8:33", "/x/usb", "ext4 /dev/sdc1 rw") + disk(), line, "", 0, true) == "root");
  CHECK(why(disk(), "", "", 0, true) == "root");
  // Of another device for sure, and of root's disk that root mounted there as well.
  CHECK(why(disk(), line, "", 4711, true) == "root");
  CHECK(why(disk(), "/dev/sr0 /media/cdrom0 udf,iso9660 user,noauto", "", 0, true) == "root");
  auto const all = parse_mounts(disk("/") + disk("/home/ann/data"));
  user_mount_notes const notes = {parse_fstab(line), {}, {all.back().id}};
  CHECK(why_of_user(all.back(), all, notes));
  CHECK_FALSE(why_of_user(all.front(), all, notes));
}

TEST_CASE("user mounts: tags of devices") {
  CHECK(tagged_device("UUID=1-2") == "/dev/disk/by-uuid/1-2");
  CHECK(tagged_device("LABEL=\"a\"") == "/dev/disk/by-label/a");
  CHECK(tagged_device("LABEL=my disk/1") == "/dev/disk/by-label/my\\x20disk\\x2f1");
  CHECK_FALSE(tagged_device("/dev/sdb1"));
}
