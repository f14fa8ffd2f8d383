// SPDX-License-Identifier: Apache-2.0
#include "node/run_folders.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "segment/run_dir.h"

namespace sluice::node {

namespace {

constexpr std::int64_t heed_every_ns = 500'000'000;
constexpr std::int64_t sweep_every_ns = 5'000'000'000;
// Who announces a job makes a file and then writes it.
constexpr std::int64_t heed_after_ns = 200'000'000;

}  // namespace

run_folders::run_folders(std::string run_dir) : run_dir_(std::move(run_dir)), events_(run_dir_) {}

void run_folders::listen(std::int64_t now_ns) {
  if (!events_.has_changed()) return;
  has_left_ = true;
  told_ns_ = std::min(told_ns_, now_ns + heed_after_ns);
}

bool run_folders::is_heed_due(std::int64_t now_ns) const {
  return now_ns >= told_ns_ || now_ns - heeded_ns_ >= heed_every_ns;
}

void run_folders::heeded(std::int64_t now_ns) {
  heeded_ns_ = now_ns;
  if (now_ns >= told_ns_) told_ns_ = never_ns;
}

std::int64_t run_folders::heed_ns(std::int64_t wanted_ns) const {
  std::int64_t const next_ns = heeded_ns_ + heed_every_ns;
  return fd() >= 0 ? std::min(told_ns_, std::max(wanted_ns, next_ns)) : next_ns;
}

bool run_folders::is_sweep_due(std::int64_t now_ns) const {
  return now_ns - swept_ns_ >= sweep_every_ns;
}

void run_folders::swept(std::int64_t now_ns) {
  swept_ns_ = now_ns;
  std::error_code failed;
  std::filesystem::directory_iterator const first(segment::jobs_dir(run_dir_), failed);
  has_left_ = !failed && first != std::filesystem::directory_iterator();
}

std::int64_t run_folders::sweep_ns() const {
  return has_left_ ? swept_ns_ + sweep_every_ns : never_ns;
}

}  // namespace sluice::node
