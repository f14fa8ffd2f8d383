// SPDX-License-Identifier: Apache-2.0
#include "cluster/override_keeper.h"

#include "base/boot_id.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "wire/message.h"

namespace sluice::cluster {

override_keeper::override_keeper(std::string path, runtime::logger& log)
    : path_(std::move(path)), log_(log), writer_(path_) {
  try {
    if (auto const text = read_kept(path_))
      book_ = verbs::override_book::from_text(*text, wire::job_key, boot_id());
  } catch (error const& e) {
    log_.error("overrides lost", {{"why", e.what()}, {"kept_as", set_aside(path_)}});
  }
}

void override_keeper::begin(std::int64_t now_ns) {
  kept_.begin();
  if (!writer_.begin(book_.to_text(boot_id()))) tried(now_ns, false);
}

void override_keeper::tried(std::int64_t now_ns, bool is_written) {
  if (!is_written) log_.error("overrides are not saved", {{"path", path_}});
  kept_.tried(now_ns, is_written);
}

void override_keeper::turn(std::int64_t now_ns) {
  if (auto const is_written = writer_.take()) tried(now_ns, *is_written);
  if (auto const due = kept_.due_ns(); due && now_ns >= *due) begin(now_ns);
}

void override_keeper::finish(std::int64_t now_ns) {
  if (writer_.is_busy()) tried(now_ns, writer_.wait());
  if (kept_.due_ns()) begin(now_ns);
  if (writer_.is_busy()) tried(now_ns, writer_.wait());
}

bool override_keeper::take_back(roster const& known, lease::time_ns now, dated_moment today) {
  bool const is_clock_set = book_.follow_clock(today);
  std::vector<std::string> ended = book_.expire(today);
  auto const is_over = [&](core::job_id job, verbs::job_overrides const&) {
    return absent_.is_over(job, known.presence_of(job), now);
  };
  for (auto& line : book_.forget_if(is_over)) ended.push_back(std::move(line));
  absent_.keep_if([&](core::job_id job) { return book_.find(job) != nullptr; });
  for (auto const& line : ended) log_.info("override ended", {{"what", line}});
  bool const is_changed = is_clock_set || !ended.empty();
  if (is_changed) kept_.changed_unasked();
  return is_changed;
}

}  // namespace sluice::cluster
