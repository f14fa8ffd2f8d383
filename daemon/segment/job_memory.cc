// SPDX-License-Identifier: Apache-2.0
#include "segment/job_memory.h"

#include <unistd.h>

namespace sluice::segment {

job_memory job_memory::open(std::string const& path, uid_t uid, uid_t owner, far_memory* far,
                            job_age age) {
  if (far == nullptr || uid == geteuid()) return job_memory(mapping::open(path, uid));
  descriptor file = open_segment(path, uid);
  job_memory m(age == job_age::made_now ? far->hold_new(std::move(file), owner)
                                        : far->hold(std::move(file), region_kind::segment, owner));
  check_segment(*m, path);
  return m;
}

}  // namespace sluice::segment
