// SPDX-License-Identifier: Apache-2.0
#include "journal/told.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"

namespace sluice::journal {

// ---- the file ----

status_file::status_file(std::string const& path, std::string const& log) : path_(path) {
  std::string const fresh = path + ".new";
  auto const fail = [&] {
    throw sluice_error(fmt::format("{}: cannot be made: {}", fresh, std::strerror(errno)));
  };
  unlink(fresh.c_str());
  descriptor const fd(
      open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) fail();
  // Room is taken now: later there would be none for a store.
  if (errno = posix_fallocate(fd.get(), 0, sizeof(abi::order_status)); errno != 0) fail();
  void* const at =
      mmap(nullptr, sizeof(abi::order_status), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) fail();
  at_ = static_cast<abi::order_status*>(at);
  at_->layout = abi::order_status_layout;
  at_->pid = static_cast<std::uint32_t>(getpid());
  at_->total_bytes = sizeof(abi::order_status);
  std::memcpy(at_->log_path, log.c_str(), std::min(log.size(), sizeof at_->log_path - 1));
  at_->magic_word.store(abi::order_status_magic, std::memory_order_release);
  if (rename(fresh.c_str(), path.c_str()) == 0) return;
  munmap(at, sizeof(abi::order_status));
  fail();
}

status_file::~status_file() {
  if (!stays_) unlink(path_.c_str());
  munmap(at_, sizeof(abi::order_status));
}

// ---- what is counted ----

told::counts* told::of(area& a) {
  auto const at = areas_.find(&a);
  return at == areas_.end() ? nullptr : &at->second;
}

/// What a daemon of before had in its journal is at home by now.
void told::add(area& a) {
  abi::order_said const& said = a.memory().head.said;
  counts c;
  c.logged = said.logged.load();
  c.synced = said.synced.load();
  areas_.insert_or_assign(&a, c);
}

void told::logged(area& a, std::uint64_t lsn) {
  counts* const c = of(a);
  if (c == nullptr) return;
  ++c->logged;
  c->last_lsn = lsn;
}

void told::synced(area& a) {
  if (counts* const c = of(a)) ++c->synced;
}

void told::publish(std::uint64_t head) const {
  for (auto const& [a, c] : areas_) {
    abi::order_said& to = a->memory().head.said;
    to.logged = c.logged;
    to.synced = c.synced;
    to.is_in_journal = c.last_lsn > head ? 1 : 0;
  }
}

}  // namespace sluice::journal
