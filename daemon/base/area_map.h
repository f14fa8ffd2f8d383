// SPDX-License-Identifier: Apache-2.0
// Maps an area of a job, as its abi header lays it out. Its user owns the file, and may write in it
// at any moment or cut it short. So the mapping is under guard, and data is copied before it is
// looked at.
#pragma once

#include <sys/mman.h>

#include <memory>
#include <string>

#include "base/foreign.h"
#include "base/foreign_file.h"
#include "base/guard.h"

namespace sluice {

/// An area of a job's file, mapped and watched; null when there is none of ours.
template <class Area>
class area_map {
 public:
  static std::unique_ptr<area_map> open(std::string const& path, uid_t owner) {
    auto const file = open_foreign(path, O_RDWR, owner);
    if (!file || file.st.st_size != sizeof(Area)) return nullptr;
    void* const at =
        mmap(nullptr, sizeof(Area), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd.get(), 0);
    if (at == MAP_FAILED) return nullptr;
    std::unique_ptr<area_map> map(new area_map(at));
    bool const is_good =
        map->guard_.is_held() && refuse_reason(as_shared(**map), sizeof(Area)) == nullptr;
    return is_good ? std::move(map) : nullptr;
  }
  ~area_map() { munmap(at_, sizeof(Area)); }
  area_map(area_map const&) = delete;
  area_map& operator=(area_map const&) = delete;

  foreign<Area>& operator*() const { return *static_cast<foreign<Area>*>(at_); }
  foreign<Area>* operator->() const { return static_cast<foreign<Area>*>(at_); }
  bool is_broken() const { return guard_.is_broken(); }

 private:
  explicit area_map(void* at) : at_(at), guard_(at, sizeof(Area)) {}
  void* at_;
  guarded_memory guard_;
};

}  // namespace sluice
