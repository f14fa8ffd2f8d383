// SPDX-License-Identifier: Apache-2.0
#include "cluster/override_keeper.h"

#include "base/boot_id.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "wire/message.h"

namespace sluice::cluster {

override_keeper::override_keeper(std::string path, runtime::logger& log)
    : path_(std::move(path)), log_(log) {
  try {
    if (auto const text = read_file(path_))
      book_ = verbs::override_book::from_text(*text, wire::job_key, boot_id());
  } catch (error const& e) {
    log_.error("overrides lost", {{"why", e.what()}});
  }
}

bool override_keeper::keep() {
  bool const is_kept = replace_file(path_, book_.to_text(boot_id()), {.is_durable = true});
  if (!is_kept) log_.error("overrides are not saved", {{"path", path_}});
  is_unsaved_ = !is_kept;
  return is_kept;
}

void override_keeper::keep_unsaved() {
  if (is_unsaved_) keep();
}

bool override_keeper::take_back(roster const& known, lease::time_ns now, dated_moment today) {
  bool const is_clock_set = book_.follow_clock(today);
  std::vector<std::string> ended = book_.expire(today);
  auto const is_live = [&](std::uint32_t child) {
    return child < known.children.size() && known.children[child].live;
  };
  auto const is_over = [&](core::job_id job, verbs::job_overrides const&) {
    std::uint32_t const row = known.job_of(job);
    std::uint32_t const child = row == roster::nobody ? absences::nobody : known.child_of(row);
    return absent_.is_over(job, child != absences::nobody, child, is_live, now);
  };
  for (auto& line : book_.forget_if(is_over)) ended.push_back(std::move(line));
  for (auto const& line : ended) log_.info("override ended", {{"what", line}});
  return is_clock_set || !ended.empty();
}

}  // namespace sluice::cluster
