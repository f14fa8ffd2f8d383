// SPDX-License-Identifier: Apache-2.0
// Devices and pipes are written in place, and so is what an open descriptor names (/dev/stdout): a
// rename would replace them. Of a symbolic link the file that it leads to is replaced.
#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "base/error.h"

namespace sluice {

namespace {

constexpr int most_links = 40;

/// The name at the end of all symbolic links; of a descriptor's name the last before /proc.
std::filesystem::path behind_links(std::filesystem::path at) {
  std::error_code failed;
  for (int i = 0; i < most_links; ++i) {
    auto const folder =
        std::filesystem::canonical(at.parent_path().empty() ? "." : at.parent_path(), failed);
    if (failed || folder.string().starts_with("/proc")) return at;
    auto const target = std::filesystem::read_symlink(at, failed);
    if (failed) return at;
    at = folder / target;
  }
  return at;
}

/// The file to be replaced; empty: what is there is written in place.
std::string replaced_by(std::string const& path) {
  struct stat st = {};
  if (stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode))
      throw usage_error(fmt::format("{}: is a directory; give the name of a file", path));
    if (!S_ISREG(st.st_mode)) return {};
  }
  auto const file = behind_links(path);
  return lstat(file.c_str(), &st) == 0 && S_ISLNK(st.st_mode) ? std::string() : file.string();
}

/// An empty file beside `file`, or a usage error; its name.
std::string make_beside(std::string const& file, std::string const& called) {
  std::string name = file + ".XXXXXX";
  int const fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) throw usage_error(fmt::format("{}: {}", called, std::strerror(errno)));
  struct stat st = {};
  mode_t mode = umask(0);
  umask(mode);
  mode = stat(file.c_str(), &st) == 0 ? st.st_mode & 07777 : 0666 & ~mode;
  (void)!fchmod(fd, mode);
  close(fd);
  return name;
}

}  // namespace

void check_output_file(std::string const& path) {
  if (path == "-") return;
  if (std::string const file = replaced_by(path); !file.empty())
    unlink(make_beside(file, path).c_str());
  else if (access(path.c_str(), W_OK) != 0)
    throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
}

output_file::output_file(std::string const& path) : path_(path) {
  if (path == "-") {
    to_ = &std::cout;
    return;
  }
  std::string name = path;
  if (std::string const file = replaced_by(path); !file.empty()) {
    path_ = file;
    temporary_ = name = make_beside(file, path);
  }
  file_.open(name, std::ios::binary | std::ios::trunc);
  if (!file_) {
    if (!temporary_.empty()) unlink(temporary_.c_str());
    throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  to_ = &file_;
}

output_file::~output_file() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void output_file::commit() {
  if (*to_) errno = 0;  // else it is of the write that failed
  to_->flush();
  if (file_.is_open()) file_.close();
  if (!*to_ || (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0))
    throw sluice_error(fmt::format("{}: cannot be written: {}", path_,
                                   errno != 0 ? std::strerror(errno) : "no reason given"));
  temporary_.clear();
}

}  // namespace sluice
