// SPDX-License-Identifier: Apache-2.0
// The replay's own files: in its own directory (base/own_directory.h) a tree of files per job and a
// directory per thread. Nothing outside of it is ever written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/own_directory.h"

namespace sluice::replay {

struct tree_shape {
  unsigned files = 1000;  // per job
  unsigned depth = 2;
  unsigned fanout = 8;
  std::uint64_t file_bytes = 4 << 20;  // of the files that are read and written
};

/// Names only, in the own directory: the same in every process.
struct names {
  tree_shape shape;

  std::string job(unsigned j) const;
  std::string data(unsigned j) const;  // the file that is read
  std::string worker(unsigned j, unsigned w) const;
  std::vector<std::string> folders(unsigned j) const;  // inner ones before their children
  std::vector<std::string> leaves(unsigned j) const;
};

/// The i-th file of a job; names are not kept, a job may have millions of files.
void file_name(std::vector<std::string> const& leaves, std::size_t i, std::string& into);

/// A usage error when there are too many directories.
void check_shape(tree_shape const& s);

/// What a job needs prepared.
struct wanted_files {
  unsigned job = 0;
  std::vector<unsigned> workers;
  bool reads = false;   // the data file has content
  bool xattrs = false;  // files carry an attribute, where the file system can
};

/// Makes them, in the working directory; `go_on` false ends it early. Throws a sluice error that
/// names the file.
void populate(names const& n, wanted_files const& w, std::function<bool()> const& go_on);

}  // namespace sluice::replay
