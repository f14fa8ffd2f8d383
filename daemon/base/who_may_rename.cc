// SPDX-License-Identifier: Apache-2.0
#include "base/who_may_rename.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/open_file.h"

namespace sluice {

namespace {

constexpr std::string_view roots_own[] = {"/",    "/dev", "/dev/shm",  "/home", "/mnt",
                                          "/run", "/tmp", "/run/user", "/var",  "/var/tmp"};

/// Of another user namespace than the machine's own: numbers of users and groups mean little here.
bool has_other_users() {
  std::uint64_t inside = 1, outside = 1, count = 0;
  std::ifstream("/proc/self/uid_map") >> inside >> outside >> count;
  return inside != 0 || outside != 0 || count != 0xffffffff;
}

/// As many systems make one for each user, so that his files may be open to his group.
bool is_private_group(gid_t gid) {
  if (has_other_users()) return false;
  passwd const* const user = getpwuid(geteuid());
  if (user == nullptr || user->pw_gid != gid) return false;
  std::string const name = user->pw_name;
  group const* const of = getgrgid(gid);
  if (of == nullptr || name != of->gr_name) return false;
  char** end = of->gr_mem;
  while (*end != nullptr) ++end;
  return std::all_of(of->gr_mem, end, [&](char const* member) { return name == member; });
}

/// Then the bits of the group stand for whoever is in the list.
bool has_list(int directory) {
  std::string const path = fmt::format("/proc/self/fd/{}", directory);
  return getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) >= 0 ||
         (errno != ENODATA && errno != EOPNOTSUPP);
}

}  // namespace

uid_t overflow_uid() {
  uid_t nobody = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> nobody;
  return nobody;
}

bool is_roots(uid_t owner, std::string const& path) {
  if (owner == 0) return true;
  return owner == overflow_uid() && has_other_users() &&
         std::find(std::begin(roots_own), std::end(roots_own), path) != std::end(roots_own);
}

std::string who_may_rename(int directory) {
  struct stat st = {};
  if (fstat(directory, &st) != 0) return "somebody unknown";
  if (st.st_uid != geteuid() && !is_roots(st.st_uid, path_of(directory)))
    return fmt::format("its owner, uid {},", st.st_uid);
  if ((st.st_mode & S_ISVTX) != 0) return {};
  if ((st.st_mode & S_IWOTH) != 0) return "everybody";
  if ((st.st_mode & S_IWGRP) == 0) return {};
  if (has_list(directory)) return "whoever is in its access list";
  return is_private_group(st.st_gid) ? std::string() : "its group";
}

}  // namespace sluice
