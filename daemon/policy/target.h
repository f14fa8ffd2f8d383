// SPDX-License-Identifier: Apache-2.0
// A file tree that limits and shares are about, as people named it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sluice::policy {

struct cost_file;

/// Which changes wait for a barrier: those of its process, of the job, of threads of that name, in
/// that tree.
enum class order_stream { process, job, thread, path };

/// A change of a name like `write` waits until what is named like `durable` is durable, on all
/// nodes of the job.
struct after_spec {
  std::string write, durable;
  std::int64_t patience_ns = 60'000'000'000;
};

/// A named file tree. For a --limit the name is the path as written.
struct target_spec {
  std::string name;
  std::string path;
  std::string origin;
  bool durable = false;  // fsync in it goes through the journal
  bool ordered = false;  // and is a barrier
  order_stream stream = order_stream::process;
  std::optional<after_spec> after = {};
  bool hints = false;            // the kernel is told what small reads and writes need
  bool one_file_system = false;  // what is mounted below is not in it
  std::shared_ptr<cost_file const> costs = {};  // what its VOPs are; null: not known
  bool gathers = false;                         // small writes are gathered: "close-to-open"
  bool buffers = false;                         // small reads are answered from memory: "reads"
  bool is_strict = false;                       // small writes wait, and nobody sees it: "strict"

  /// Something but limits is done for its files.
  bool says_more() const { return durable || after || hints || gathers || buffers || is_strict; }
};

}  // namespace sluice::policy
