// SPDX-License-Identifier: Apache-2.0
#include "segment/job_memory.h"

#include <unistd.h>

#include <memory>

namespace sluice::segment {

job_memory job_memory::open(std::string const& path, uid_t uid, uid_t owner, far_memory* far,
                            job_age age) {
  if (far == nullptr || uid == geteuid())
    return job_memory(std::make_unique<mapping>(mapping::open(path, uid)));
  job_memory m(age == job_age::made_now
                   ? far->hold_new(open_segment(path, uid), owner)
                   : far->hold(open_segment(path, uid), region_kind::segment, owner));
  check_segment(*m, path);
  return m;
}

}  // namespace sluice::segment
