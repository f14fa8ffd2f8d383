// SPDX-License-Identifier: Apache-2.0
#include "segment/held_areas.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/foreign_file.h"
#include "segment/run_dir.h"

namespace sluice::segment {

namespace {

constexpr std::size_t page = 4096;  // never touched: the least that a mapping can be

}  // namespace

void held_areas::unmap::operator()(void* at) const { munmap(at, page); }

bool held_areas::hold(std::string const& job_dir, uid_t owner) {
  bool has_lease = false;
  auto const areas = areas_beside({});
  for (std::size_t i = 0; i < held_.size(); ++i) {
    if (held_[i] != nullptr) continue;
    std::string const name = i < areas.size() ? areas[i].name : "segment";
    foreign_file const file = open_foreign(own_links(job_dir) + "/" + name, O_RDWR, owner);
    has_lease = has_lease || file.error == EWOULDBLOCK;
    if (!file) continue;
    // The mapping keeps the open file, which is open for writing; nobody reads here.
    void* const at = mmap(nullptr, page, PROT_NONE, MAP_SHARED, file.fd.get(), 0);
    if (at == MAP_FAILED) continue;
    madvise(at, page, MADV_DONTFORK);  // see guarded_memory
    held_[i].reset(at);
  }
  return !has_lease;
}

}  // namespace sluice::segment
