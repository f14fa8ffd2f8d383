// SPDX-License-Identifier: Apache-2.0
#include "epochs/after_memory.h"

#include <unistd.h>

#include <utility>

#include "base/foreign_file.h"

namespace sluice::epochs {

std::unique_ptr<after_memory> after_memory::open(std::string const& path, uid_t uid, uid_t owner,
                                                 segment::far_memory* far) {
  if (far == nullptr || uid == geteuid()) {
    auto own = area_map<abi::after_area>::open(path, uid);
    return own ? std::make_unique<after_memory>(std::move(own)) : nullptr;
  }
  foreign_file file = open_foreign(path, O_RDWR, uid);
  if (!file || file.st.st_size != sizeof(abi::after_area)) return nullptr;
  auto out = std::make_unique<after_memory>(
      far->hold(std::move(file.fd), segment::region_kind::after, owner));
  bool const is_good = refuse_reason(as_shared(**out), sizeof(abi::after_area)) == nullptr;
  return is_good ? std::move(out) : nullptr;
}

}  // namespace sluice::epochs
