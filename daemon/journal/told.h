// SPDX-License-Identifier: Apache-2.0
// The daemon's figures for people (`sluice order`): of each job in the header of its area, of the
// journal in a file of its own. All of it belongs to the loop; none of it decides anything.
#pragma once

#include <map>
#include <string>

#include "abi/order_status.h"
#include "journal/area.h"

namespace sluice::journal {

/// The file, which the daemon's user alone may read. It goes with the daemon; of one that was
/// killed it stays, and its heart says since when.
class status_file {
 public:
  /// Takes the place of one of before. Throws.
  status_file(std::string const& path, std::string const& log);
  ~status_file();
  status_file(status_file const&) = delete;
  status_file& operator=(status_file const&) = delete;

  abi::order_status& memory() const { return *at_; }
  /// It outlives us: the next one takes its place.
  void stay() { stays_ = true; }

 private:
  std::string path_;
  abi::order_status* at_ = nullptr;
  bool stays_ = false;
};

class told {
 public:
  struct counts {
    std::uint64_t logged = 0, synced = 0, last_lsn = 0;
  };

  void add(area& a);
  void remove(area& a) { areas_.erase(&a); }

  void logged(area& a, std::uint64_t lsn);
  void synced(area& a);
  /// Into the areas. All below `head` is safe at home.
  void publish(std::uint64_t head) const;

 private:
  /// Null: it was removed, and requests of it are still under way.
  counts* of(area& a);

  std::map<area*, counts> areas_;
};

}  // namespace sluice::journal
