// SPDX-License-Identifier: Apache-2.0
// The owner of a segment's file may truncate it, and the next look at it would kill the daemon with
// SIGBUS. The guard's handler puts zeros over such a mapping and marks it; the daemon then drops
// that job. Installed by whoever looks at segments of others. The handler and its table are the
// only state outside objects: a signal handler can reach nothing else.
#pragma once

#include <cstddef>

namespace sluice {

/// Installs the handler, once per process.
void install_guard();

/// A range of mapped memory under guard as long as it lives. Processes that we fork do not have it:
/// to map it waits for who holds locks of the file, and one that hangs would keep the file.
class guarded_memory {
 public:
  guarded_memory(void* at, std::size_t bytes);
  ~guarded_memory();
  guarded_memory(guarded_memory const&) = delete;
  guarded_memory& operator=(guarded_memory const&) = delete;
  /// The file behind it no longer is as long as it was: the memory is zeros now.
  bool is_broken() const;
  /// False: the table is full, the range is not guarded and must not be read.
  bool is_held() const { return slot_ >= 0; }

 private:
  int slot_;
};

}  // namespace sluice
