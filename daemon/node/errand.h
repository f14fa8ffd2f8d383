// SPDX-License-Identifier: Apache-2.0
// Syncing what a job wrote, in a process of its own: a disk may hang, and sluiced must not. The log
// of durable fsync is emptied first, for what is synced now must not be undone by its recovery.
// What stays true: nothing between fork and the end of that process allocates or takes a lock, so
// the threads of sluiced do not matter; it holds none of our files, and dies with us.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "segment/foreign_file.h"
#include "segment/guard.h"

namespace sluice::node {

/// An area of a job's file, mapped and watched; null when there is none of ours.
template <class Area>
class area_map {
 public:
  static std::unique_ptr<area_map> open(std::string const& path, uid_t owner) {
    auto const file = segment::open_foreign(path, O_RDWR, owner);
    if (!file || file.st.st_size != sizeof(Area)) return nullptr;
    void* const at =
        mmap(nullptr, sizeof(Area), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd.get(), 0);
    if (at == MAP_FAILED) return nullptr;
    std::unique_ptr<area_map> map(new area_map(at));
    bool const is_good = map->guard_.is_held() && refuse_reason(**map, sizeof(Area)) == nullptr;
    return is_good ? std::move(map) : nullptr;
  }
  ~area_map() { munmap(at_, sizeof(Area)); }
  area_map(area_map const&) = delete;
  area_map& operator=(area_map const&) = delete;

  Area& operator*() const { return *static_cast<Area*>(at_); }
  Area* operator->() const { return static_cast<Area*>(at_); }
  bool is_broken() const { return guard_.is_broken(); }

 private:
  explicit area_map(void* at) : at_(at), guard_(at, sizeof(Area)) {}
  void* at_;
  segment::guarded guard_;
};

class errand {
 public:
  errand() = default;
  ~errand();
  errand(errand const&) = delete;
  errand& operator=(errand const&) = delete;

  /// Begins to sync the file systems of `roots`; `order`: the job's order area, which may be there
  /// or not. False: no process could be made.
  bool begin(std::string const& order, std::vector<std::string> const& roots,
             std::int64_t patience_ns, std::int64_t now_ns);
  bool is_under_way() const { return pid_ > 0; }
  /// -1: not yet; 0: all is durable; else the error number.
  int look(std::int64_t now_ns);

 private:
  void reap();

  pid_t pid_ = 0;
  std::int64_t until_ns_ = 0;
  std::atomic<int>* result_ = nullptr;  // shared with it; -1: none yet
  std::vector<pid_t> late_;             // told to end, and the kernel has not let them
};

}  // namespace sluice::node
