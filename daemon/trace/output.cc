// SPDX-License-Identifier: Apache-2.0
// Devices, pipes and symbolic links (/dev/null, /dev/stdout) are written in place: a rename would
// replace them.
#include "trace/output.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "policy/error.h"

namespace sluice::trace {

namespace {

bool is_replaceable(std::string const& path) {
  struct stat st = {};
  if (lstat(path.c_str(), &st) != 0) return true;
  if (S_ISDIR(st.st_mode))
    throw usage_error(fmt::format("{}: is a directory; give the name of a file", path));
  return S_ISREG(st.st_mode);
}

}  // namespace

output::output(std::string const& path) : path_(path) {
  if (path == "-") {
    to_ = &std::cout;
    return;
  }
  std::string name = path;
  if (is_replaceable(path)) {
    name = path + ".XXXXXX";
    int const fd = mkostemp(name.data(), 02000000);  // O_CLOEXEC
    if (fd < 0) throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
    mode_t const mask = umask(0);
    umask(mask);
    (void)!fchmod(fd, 0666 & ~mask);
    close(fd);
    temporary_ = name;
  }
  file_.open(name, std::ios::binary | std::ios::trunc);
  if (!file_) {
    if (!temporary_.empty()) unlink(temporary_.c_str());
    throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  to_ = &file_;
}

output::~output() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void output::commit() {
  errno = 0;
  to_->flush();
  if (file_.is_open()) file_.close();
  if (!*to_ || (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0))
    throw sluice_error(fmt::format("{}: cannot be written: {}", path_,
                                   errno != 0 ? std::strerror(errno) : "no reason given"));
  temporary_.clear();
}

}  // namespace sluice::trace
