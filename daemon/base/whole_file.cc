// SPDX-License-Identifier: Apache-2.0
#include "base/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/descriptor.h"
#include "base/rights.h"

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

bool write_file(std::string const& path, std::string const& text, file_terms const& terms) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  descriptor const file(open(path.c_str(), flags, terms.mode));
  bool const has_owner = terms.uid != static_cast<uid_t>(-1) || terms.gid != static_cast<gid_t>(-1);
  if (!file || !write_all(file.get(), text) || fchmod(file.get(), terms.mode) != 0) return false;
  bool is_given = true;
  if (has_owner)
    with_rights([&] { is_given = fchown(file.get(), terms.uid, terms.gid) == 0; });
  if (!is_given) return false;
  return !terms.is_durable || fdatasync(file.get()) == 0;
}

/// Hidden, so that who lists the folder does not take it for one of its files.
std::string beside(std::string const& path) {
  std::size_t const name = path.rfind('/') + 1;  // 0 without a slash
  return path.substr(0, name) + "." + path.substr(name) + ".new";
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

bool replace_file(std::string const& path, std::string const& text, file_terms const& terms) {
  std::string const fresh = beside(path);
  unlink(fresh.c_str());  // of a writer that was killed
  if (write_file(fresh, text, terms) && std::rename(fresh.c_str(), path.c_str()) == 0)
    return !terms.is_durable || sync_folder_of(path);
  int const why = errno;
  unlink(fresh.c_str());
  errno = why;
  return false;
}

}  // namespace sluice
