// SPDX-License-Identifier: Apache-2.0
#include "segment/held_areas.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "base/foreign_file.h"
#include "segment/run_dir.h"

namespace sluice::segment {

bool held_areas::hold(std::string const& job_dir, uid_t owner) {
  bool has_lease = false;
  auto const areas = areas_beside({});
  for (std::size_t i = 0; i < held_.size(); ++i) {
    if (held_[i]) continue;
    std::string const name = i < areas.size() ? areas[i].name : "segment";
    foreign_file file = open_foreign(own_links(job_dir) + "/" + name, O_RDWR, owner);
    has_lease = has_lease || file.error == EWOULDBLOCK;
    if (file) held_[i] = std::move(file.fd);
  }
  return !has_lease;
}

}  // namespace sluice::segment
