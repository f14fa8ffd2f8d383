// SPDX-License-Identifier: Apache-2.0
#include "node/journal_watch.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "node/clock.h"
#include "node/user_places.h"
#include "segment/journal_row.h"

namespace sluice::node {

namespace {

constexpr std::int64_t silence_ns = 3'000'000'000;
constexpr std::int64_t hangs_ns = 60'000'000'000;  // longer than syncing takes

template <std::size_t room>
std::string text_of(char const (&from)[room]) {
  return {from, strnlen(from, room)};
}

std::string how_it_ended(int status) {
  return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                             : fmt::format("status {}", WEXITSTATUS(status));
}

/// Without the name that the line begins with.
std::string words_of(journal_report const& r) {
  std::string const said = text_of(r.said);
  constexpr std::string_view name = "sluice-order: ";
  return said.starts_with(name) ? said.substr(name.size()) : said;
}

/// Who is killed says nothing about it.
std::string reason_of(journal_report const& r) {
  std::string const words = words_of(r);
  bool const tells = !words.empty() && !WIFSIGNALED(r.status);
  return tells ? words : "sluice-order ended: " + how_it_ended(r.status);
}

/// The user's process says them, and he may make it say what he likes: a line of bounded length.
std::string printable_words(journal_report const& r) { return printable(words_of(r)); }

}  // namespace

journal_watch::journal_watch(int socket, std::string directory, std::string run_dir,
                             runtime::logger& log)
    : socket_(socket), directory_(std::move(directory)), run_dir_(std::move(run_dir)), log_(log) {}

std::string journal_watch::file_of(uid_t user) const {
  return place_of_journal(directory_, user) + "/journal";
}

/// False: the keeper has not taken it.
bool journal_watch::say(journal_word word) const {
  return is_there() && send(socket_, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL) ==
                           static_cast<ssize_t>(sizeof word);
}

/// What is not taken is said again at the next step.
void journal_watch::follow(std::map<uid_t, gid_t> const& users) {
  if (!is_there() || !has_begun_ || !trouble_.empty()) return;
  for (auto const& [user, group] : users)
    if (!wanted_.contains(user) && say({journal_verb::want, user, group})) wanted_.insert(user);
  std::erase_if(wanted_, [&](uid_t user) {
    return !users.contains(user) && say({journal_verb::leave, user});
  });
}

std::int64_t journal_watch::due_ns() const {
  std::int64_t due_ns = never_ns;
  for (auto const& [user, of] : all_)
    if (of.last.phase == journal_phase::recovering && !of.hangs)
      due_ns = std::min(due_ns, of.since_ns + hangs_ns);
  return due_ns;
}

void journal_watch::listen(std::int64_t now_ns) {
  for (auto& [user, of] : all_) {
    bool const hangs =
        of.last.phase == journal_phase::recovering && now_ns >= of.since_ns + hangs_ns;
    if (std::exchange(of.hangs, hangs) != hangs) ++changes_;
  }
  while (is_there()) {
    journal_report fresh;
    ssize_t const got = recv(socket_, &fresh, sizeof fresh, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got != sizeof fresh)
      gone();
    else if (fresh.uid == nobody)
      take_own(fresh);
    else
      take(fresh, now_ns);
  }
}

/// Of the keeper itself.
void journal_watch::take_own(journal_report const& fresh) {
  ++changes_;
  is_over_ = fresh.phase == journal_phase::over;
  if (is_over_) {
    log_.info("the journals have ended", {{"journals", directory_}});
    return;
  }
  if (std::string const lacks = text_of(fresh.lacks); !lacks.empty())
    log_.warning("the journals' capabilities are missing: other users have none",
                 {{"missing", lacks}});
  has_begun_ = true;
  trouble_ = fresh.phase == journal_phase::listed ? "" : text_of(fresh.said);
  if (!trouble_.empty())
    log_.error("no journals are kept: jobs with durable targets are refused until they are",
               {{"journals", directory_}, {"why", trouble_}});
}

void journal_watch::take(journal_report const& fresh, std::int64_t now_ns) {
  ++changes_;
  one& of = all_[fresh.uid];
  journal_report const was = std::exchange(of.last, fresh);
  deaths_ += fresh.deaths > was.deaths ? fresh.deaths - was.deaths : 0;
  if (fresh.phase != was.phase) of.since_ns = now_ns;
  if (fresh.phase != journal_phase::serving) of.is_silent = false;
  if (fresh.phase == journal_phase::pausing) of.has_failed = true;
  if (fresh.is_recovered != 0) of.has_failed = false;
  if (fresh.line != was.line && fresh.phase != journal_phase::pausing)
    log_.info("the journal daemon says", {{"uid", fresh.uid}, {"words", printable_words(fresh)}});
  bool const has_begun = fresh.pid != was.pid && fresh.phase != journal_phase::recovering;
  bool const is_news = was.uid == nobody || fresh.phase != was.phase || has_begun;
  if (is_news) tell(was, fresh);
  if (fresh.phase == journal_phase::none) all_.erase(fresh.uid);
}

void journal_watch::tell(journal_report const& was, journal_report const& fresh) const {
  switch (fresh.phase) {
    case journal_phase::recovering:
      log_.info("the journal is being recovered", {{"uid", fresh.uid}, {"pid", fresh.pid}});
      break;
    case journal_phase::serving:
      log_.info("the journal is served", {{"uid", fresh.uid}, {"pid", fresh.pid}});
      break;
    case journal_phase::pausing:
      log_.error("the journal is not served: fsync is native",
                 {{"uid", fresh.uid},
                  {"why", reason_of(fresh)},
                  {"again_in_s", std::max<std::int64_t>(fresh.due_ns - now().mono_ns, 0) / 1e9}});
      break;
    case journal_phase::full:
      if (!words_of(fresh).empty())
        log_.warning("there is no room for the journal: fsync is native",
                     {{"uid", fresh.uid}, {"why", words_of(fresh)}});
      break;
    case journal_phase::over:
      log_.error(fresh.is_gone != 0 ? "the journal has ended, and there is no file of it"
                                    : "the journal has ended: keep it for sluice recover",
                 {{"uid", fresh.uid}, {"journal", file_of(fresh.uid)}, {"how", reason_of(fresh)}});
      break;
    case journal_phase::none:
    case journal_phase::emptied:
      if (was.phase == journal_phase::serving)
        log_.info("the journal has ended", {{"uid", fresh.uid}, {"how", "it is empty"}});
      break;
    case journal_phase::listed:
      break;
  }
}

void journal_watch::gone() {
  is_gone_ = true;
  ++changes_;
  if (!is_over_)
    log_.error("the journals' keeper is gone: fsync is native until this daemon is started again",
               {{"journals", directory_}});
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

char const* journal_watch::state_of(one const& of) const {
  if (is_gone_) return "gone";
  switch (of.last.phase) {
    case journal_phase::recovering:
      return "recovering";
    case journal_phase::serving:
      return of.is_silent ? "silent" : "serving";
    case journal_phase::pausing:
    case journal_phase::full:
      return "not served";
    case journal_phase::emptied:
      return "none";
    default:
      return "ended";
  }
}

/// Who is killed leaves files that are ahead of the journal, as does one on a machine that runs
/// since: that one's recovery only syncs.
home_state journal_watch::home_of(uid_t user) const {
  if (socket_ < 0) return home_state::fine;
  if (!has_begun_) return home_state::coming_home;
  if (!trouble_.empty()) return home_state::unrecovered;
  auto const at = all_.find(user);
  if (at == all_.end()) return home_state::fine;
  journal_report const& r = at->second.last;
  if (r.is_recovered != 0) return home_state::fine;
  bool const is_under_way = r.phase == journal_phase::recovering && !at->second.has_failed;
  if (is_gone_ || !is_under_way) return home_state::unrecovered;
  auto const seen = look_at_status(user);
  if (seen && seen->pid == r.pid && seen->only_syncs) return home_state::fine;
  return at->second.hangs ? home_state::unrecovered : home_state::coming_home;
}

/// None too when it is of another version, for a moment.
std::optional<segment::journal_status> journal_watch::look_at_status(uid_t user) const {
  try {
    return segment::look_at_journal(segment::journal_status_path(run_dir_, user));
  } catch (error const&) {
    return std::nullopt;
  }
}

nlohmann::json journal_watch::row(uid_t user) const {
  if (socket_ < 0) return nullptr;
  auto const at = all_.find(user);
  return {{"state", at == all_.end() ? "none" : state_of(at->second)}};
}

std::vector<uid_t> journal_watch::users() const {
  std::vector<uid_t> out;
  for (auto const& [user, of] : all_)
    if (of.last.phase != journal_phase::emptied) out.push_back(user);
  return out;
}

std::map<uid_t, bool> journal_watch::known() const {
  std::map<uid_t, bool> out;
  for (auto const& [user, of] : all_) out.emplace(user, of.last.phase != journal_phase::emptied);
  for (uid_t const user : wanted_) out[user] = true;
  return out;
}

nlohmann::json journal_watch::full_row(uid_t user) const {
  one const& of = all_.at(user);
  nlohmann::json row = nlohmann::json::object();
  auto const seen = look_at_status(user);
  if (seen && seen->pid == of.last.pid) row = segment::journal_row(*seen);
  bool const has_reason =
      of.last.phase == journal_phase::pausing || of.last.phase == journal_phase::full;
  row.update({{"uid", user},
              {"file", file_of(user)},
              {"state", state_of(of)},
              {"why", has_reason ? reason_of(of.last) : ""},
              {"pid", of.last.pid},
              {"deaths", of.last.deaths}});
  return row;
}

void journal_watch::look_at_heart(uid_t user, one& of, std::int64_t heart_ns,
                                  std::int64_t now_ns) const {
  bool const was_silent = std::exchange(of.is_silent, now_ns - heart_ns > silence_ns);
  if (of.is_silent && !was_silent)
    log_.error("the journal's daemon is silent: fsync is native", {{"uid", user}});
  if (!of.is_silent && was_silent) log_.info("the journal's daemon is back", {{"uid", user}});
}

void journal_watch::publish(runtime::metric_table& m, std::int64_t now_ns) {
  if (socket_ < 0) return;
  using runtime::metric;
  segment::journal_status sum;
  bool are_served = is_there() && trouble_.empty();
  for (uid_t const user : wanted_) are_served = are_served && all_.contains(user);
  for (auto& [user, of] : all_) {
    if (of.last.phase == journal_phase::emptied && !wanted_.contains(user)) continue;
    bool const is_serving = of.last.phase == journal_phase::serving;
    auto const seen = is_serving ? look_at_status(user) : std::nullopt;
    if (seen) look_at_heart(user, of, static_cast<std::int64_t>(seen->heart_ns), now_ns);
    are_served = are_served && is_serving && !of.is_silent;
    if (!seen) continue;
    sum.room_bytes += seen->room_bytes;
    sum.used_bytes += seen->used_bytes;
    sum.batches += seen->batches;
    sum.batch_ns += seen->batch_ns;
    sum.logged += seen->logged;
    sum.synced += seen->synced;
  }
  m.set(metric::journal_served, are_served ? 1 : 0);
  m.set(metric::journal_deaths_total, static_cast<double>(deaths_));
  m.set(metric::journal_room_bytes, static_cast<double>(sum.room_bytes));
  m.set(metric::journal_used_bytes, static_cast<double>(sum.used_bytes));
  m.set(metric::journal_batches_total, static_cast<double>(sum.batches));
  m.set(metric::journal_batch_seconds_total, static_cast<double>(sum.batch_ns) / 1e9);
  m.set(metric::journal_requests_total, {"journal"}, static_cast<double>(sum.logged));
  m.set(metric::journal_requests_total, {"home"}, static_cast<double>(sum.synced));
}

}  // namespace sluice::node
