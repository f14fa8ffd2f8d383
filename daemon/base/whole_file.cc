// SPDX-License-Identifier: Apache-2.0
#include "base/whole_file.h"

#include <endian.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/descriptor.h"
#include "base/error.h"

namespace sluice {

namespace {

bool write_all(int fd, std::string const& text) {
  for (std::size_t at = 0; at < text.size();) {
    ssize_t const n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

constexpr char const* list_name = "system.posix_acl_access";

struct access_list {
  posix_acl_xattr_header head;
  posix_acl_xattr_entry entries[5];
};

/// By an access control list, so that the file stays ours: who owns one can let it grow, and hold
/// its lock.
bool let_read(int fd, uid_t reader) {
  access_list const list = {{htole32(POSIX_ACL_XATTR_VERSION)},
                            {{htole16(ACL_USER_OBJ), htole16(ACL_READ | ACL_WRITE), 0},
                             {htole16(ACL_USER), htole16(ACL_READ), htole32(reader)},
                             {htole16(ACL_GROUP_OBJ), 0, 0},
                             {htole16(ACL_MASK), htole16(ACL_READ), 0},
                             {htole16(ACL_OTHER), 0, 0}}};
  // Where there are no such lists root alone reads it.
  return fsetxattr(fd, list_name, &list, sizeof list, 0) == 0 || errno == EOPNOTSUPP;
}

bool write_file(std::string const& path, std::string const& text, file_terms const& terms) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  descriptor const file(open(path.c_str(), flags, terms.mode));
  if (!file || !write_all(file.get(), text) || fchmod(file.get(), terms.mode) != 0) return false;
  bool const has_reader = terms.reader != static_cast<uid_t>(-1);
  if (has_reader && !let_read(file.get(), terms.reader)) return false;
  return !terms.is_durable || fdatasync(file.get()) == 0;
}

/// Hidden, so that who lists the folder does not take it for one of its files.
std::string beside(std::string const& path, std::string const& writer) {
  std::size_t const name = path.rfind('/') + 1;  // 0 without a slash
  std::string const of = writer.empty() ? "" : "." + writer;
  return path.substr(0, name) + "." + path.substr(name) + of + ".new";
}

/// The new name is to survive a power cut, too.
bool sync_folder_of(std::string const& path) {
  std::size_t const slash = path.rfind('/');
  std::string const folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  descriptor const dir(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return dir && fsync(dir.get()) == 0;
}

}  // namespace

std::optional<std::string> read_file(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

/// By system calls: a stream takes an error for the end.
std::optional<std::string> read_kept(std::string const& path) {
  auto const failed = [&] {
    return sluice_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  };
  descriptor const file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) throw failed();
  std::string text;
  for (char part[1 << 16];;) {
    ssize_t const n = ::read(file.get(), part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw failed();
    if (n == 0) return text;
    text.append(part, static_cast<std::size_t>(n));
  }
}

std::string set_aside(std::string const& path) {
  std::string const aside = path + ".unreadable";
  return rename(path.c_str(), aside.c_str()) == 0 ? aside : path;
}

std::optional<uid_t> reader_of(std::string const& path) {
  access_list list = {};
  if (lgetxattr(path.c_str(), list_name, &list, sizeof list) != ssize_t(sizeof list))
    return std::nullopt;
  posix_acl_xattr_entry const& reader = list.entries[1];
  if (le16toh(reader.e_tag) != ACL_USER) return std::nullopt;
  return le32toh(reader.e_id);
}

bool replace_file(std::string const& path, std::string const& text, file_terms const& terms) {
  std::string const fresh = beside(path, terms.writer);
  unlink(fresh.c_str());  // of a writer that was killed
  bool const is_due = write_file(fresh, text, terms) && (!terms.may_replace || terms.may_replace());
  if (is_due && std::rename(fresh.c_str(), path.c_str()) == 0)
    return !terms.is_durable || sync_folder_of(path);
  int const why = errno;
  unlink(fresh.c_str());
  errno = why;
  return false;
}

}  // namespace sluice
