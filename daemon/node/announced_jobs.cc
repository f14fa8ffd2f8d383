// SPDX-License-Identifier: Apache-2.0
#include "node/announced_jobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/duration.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "node/pace.h"
#include "segment/run_dir.h"

namespace sluice::node {

namespace {

constexpr std::int64_t first_pause_ns = 1'000'000'000, most_pause_ns = 60'000'000'000;
constexpr std::size_t most_text = 64 << 10;

/// None: not there, or not to be had now. A pipe would stop the loop for good, and what has no end
/// would take all memory.
std::optional<std::string> text_of(std::string const& path) {
  foreign_file const file = open_foreign(path, O_RDONLY, any_owner);
  if (file.error == EPERM || file.error == ELOOP) throw sluice_error("it is no regular file");
  if (!file) return std::nullopt;
  std::string text(most_text + 1, '\0');
  ssize_t const got = pread(file.fd.get(), text.data(), text.size(), 0);
  if (got < 0) throw errno_error("it cannot be read");
  if (got > static_cast<ssize_t>(most_text))
    throw sluice_error(fmt::format("it is longer than {} bytes", most_text));
  text.resize(static_cast<std::size_t>(got));
  return text;
}

}  // namespace

announced_jobs::changes announced_jobs::look(std::int64_t now_ns) {
  changes out;
  auto const there = announced(jobs_.run_dir());
  if (!there) return out;
  tell_cut(there->is_cut);
  auto const is_gone = [&](std::string const& name) {
    return is_withdrawn(*there, jobs_.run_dir(), name);
  };
  for (auto const& j : jobs_.all())
    if (j->record.scheduler && j->record.scheduler->is_held && is_gone(j->record.name))
      out.withdrawn.push_back(j.get());
  make_due(there->names, now_ns, out.made);
  std::erase_if(unreadable_, is_gone);
  std::erase_if(waiting_, [&](auto const& entry) { return is_gone(entry.first); });
  return out;
}

/// Begins after the one that was tried last: those that find no room keep none from being tried.
void announced_jobs::make_due(std::vector<std::string> const& names, std::int64_t now_ns,
                              std::vector<job*>& made) {
  auto const first =
      static_cast<std::size_t>(std::ranges::upper_bound(names, last_) - names.begin());
  refused_ = 0;
  has_more_ = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string const& name = names[(first + i) % names.size()];
    if (!is_due(name, now_ns) || jobs_.has_scheduled(name) || is_passed_over(name)) continue;
    has_more_ = refused_ >= most_refused;
    if (has_more_) break;
    if (job* const j = take(name, now_ns)) made.push_back(j);
    last_ = name;
  }
  full_.clear();
}

/// It waits for room, and another of its owner has just found none: it counts as tried.
bool announced_jobs::is_passed_over(std::string const& name) {
  auto const at = waiting_.find(name);
  if (at == waiting_.end() || at->second.pause_ns != 0 || !full_.contains(at->second.owner))
    return false;
  at->second.tried_at = jobs_.changes_of_room();
  return true;
}

void announced_jobs::tell_cut(bool is_cut) {
  if (is_cut && !is_cut_)
    log_.warning("too many announcements: some are not looked at",
                 {{"folder", scheduler_dir(jobs_.run_dir())}});
  is_cut_ = is_cut;
}

/// Whoever found no room is tried again when something has gone.
bool announced_jobs::is_due(std::string const& name, std::int64_t now_ns) const {
  auto const at = waiting_.find(name);
  if (at == waiting_.end()) return !unreadable_.contains(name);
  waiting const& w = at->second;
  return w.pause_ns != 0 ? now_ns >= w.again_ns : w.tried_at != jobs_.changes_of_room();
}

std::int64_t announced_jobs::due_ns() const {
  std::int64_t first = has_more_ ? 0 : never_ns;
  for (auto const& [name, w] : waiting_)
    if (w.pause_ns != 0) first = std::min(first, w.again_ns);
  return first;
}

std::optional<announcement> announced_jobs::read(std::string const& name) try {
  segment::check_job_name(name);
  auto const text = text_of(scheduler_dir(jobs_.run_dir()) + "/" + name);
  if (!text) return std::nullopt;
  announcement a = read_announcement(*text, name);
  unreadable_.erase(name);
  return a;
} catch (error const& e) {
  unreadable_.insert(name);
  log_.warning("announcement cannot be read", {{"job", name}, {"why", e.what()}});
  return std::nullopt;
}

job* announced_jobs::take(std::string const& name, std::int64_t now_ns) {
  auto const a = read(name);
  if (!a) return nullptr;
  uid_t const owner = owner_by(jobs_.owners(), a->uid);
  if (auto const full = full_.find(owner);
      full != full_.end() && jobs_.find(a->uid, name) == nullptr) {
    wait_for_room(name, owner, full->second, now_ns);
    return nullptr;
  }
  try {
    job& made = jobs_.schedule(*a, site_, late_note(name, now_ns));
    waiting_.erase(name);
    return &made;
  } catch (segment::no_room const& e) {
    wait_for_room(name, owner, e.what(), now_ns);
    // Who waits for his files may have jobs that do not.
    if (e.status() != exit_later) full_[owner] = e.what();
  } catch (error const& e) {
    try_later(name, e.what(), now_ns);
  }
  ++refused_;
  return nullptr;
}

std::string announced_jobs::why_waiting(std::string const& name) const {
  auto const at = waiting_.find(name);
  if (at == waiting_.end()) return {};
  bool const is_for_room = at->second.pause_ns == 0;
  return (is_for_room ? "waits for room: " : "cannot be made yet: ") + at->second.why;
}

std::string announced_jobs::late_note(std::string const& name, std::int64_t now_ns) const {
  auto const at = waiting_.find(name);
  if (at == waiting_.end()) return {};
  return fmt::format(
      "made {} after it was announced: {} before, and programs that were started until then are "
      "not limited",
      duration_text((now_ns - at->second.since_ns) / 1'000'000'000 * 1'000'000'000),
      at->second.pause_ns == 0 ? "this node had no room" : "it could not be made");
}

announced_jobs::waiting& announced_jobs::keep_waiting(std::string const& name,
                                                      std::string const& why, std::int64_t now_ns) {
  waiting& w = waiting_.try_emplace(name, waiting{.since_ns = now_ns}).first->second;
  w.why = why;
  return w;
}

void announced_jobs::wait_for_room(std::string const& name, uid_t owner, std::string const& why,
                                   std::int64_t now_ns) {
  bool const is_told = waiting_.contains(name) && waiting_[name].pause_ns == 0;
  if (!is_told) log_.warning("announced job waits for room", {{"job", name}, {"why", why}});
  waiting& w = keep_waiting(name, why, now_ns);
  w.tried_at = jobs_.changes_of_room();
  w.pause_ns = 0;
  w.owner = owner;
}

void announced_jobs::try_later(std::string const& name, std::string const& why,
                               std::int64_t now_ns) {
  waiting& w = keep_waiting(name, why, now_ns);
  w.pause_ns = std::clamp(2 * w.pause_ns, first_pause_ns, most_pause_ns);
  w.again_ns = now_ns + w.pause_ns;
  log_.warning("announced job cannot be made",
               {{"job", name}, {"why", why}, {"again in", duration_text(w.pause_ns)}});
}

}  // namespace sluice::node
