// SPDX-License-Identifier: Apache-2.0
// What a descriptor leads to, whatever has its name by now.
#pragma once

#include <sys/stat.h>

#include <string>

namespace sluice {

inline bool is_same_file(struct stat const& a, struct stat const& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Where the kernel says it is; empty: it is told nowhere, or has no name that fits.
std::string path_of(int fd);

}  // namespace sluice
