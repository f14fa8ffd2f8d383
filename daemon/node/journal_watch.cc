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
#include "node/clock.h"

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

std::string ending_of(journal_report const& r) {
  return r.status == 0 ? "it is empty" : reason_of(r) + "; keep it for sluice recover";
}

}  // namespace

journal_watch::journal_watch(int socket, std::string file, std::string status, runtime::logger& log)
    : socket_(socket), file_(std::move(file)), status_(std::move(status)), log_(log) {}

void journal_watch::say(journal_word word) const {
  if (is_there()) (void)!send(socket_, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void journal_watch::listen() {
  while (is_there()) {
    journal_report fresh;
    ssize_t const got = recv(socket_, &fresh, sizeof fresh, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got == sizeof fresh)
      take(fresh);
    else
      gone();
  }
}

void journal_watch::take(journal_report const& fresh) {
  journal_report const was = std::exchange(last_, fresh);
  if (fresh.phase != journal_phase::serving) is_silent_ = false;
  is_settled_ = is_settled_ || fresh.phase != journal_phase::recovering;
  // Who is killed leaves files that are ahead of the journal; who ends with an error has it kept.
  bool const ended_badly = fresh.phase == journal_phase::pausing && WIFEXITED(fresh.status) &&
                           WEXITSTATUS(fresh.status) != 0;
  has_recovered_ = fresh.phase == journal_phase::serving || (has_recovered_ && !ended_badly);
  if (text_of(fresh.lacks) != text_of(was.lacks))
    log_.warning(
        "the journal's capabilities are missing: files of other users are not served in full",
        {{"missing", text_of(fresh.lacks)}});
  if (fresh.line != was.line && fresh.phase != journal_phase::pausing)
    log_.info("the journal daemon says", {{"journal", file_}, {"words", words_of(fresh)}});
  if (fresh.phase == was.phase && fresh.pid == was.pid) return;
  switch (fresh.phase) {
    case journal_phase::recovering:
      log_.info("the journal is being recovered", {{"journal", file_}, {"pid", fresh.pid}});
      break;
    case journal_phase::serving:
      log_.info("the journal is served", {{"journal", file_}, {"pid", fresh.pid}});
      break;
    case journal_phase::pausing:
      log_.error("the journal is not served: fsync is native",
                 {{"journal", file_},
                  {"why", reason_of(fresh)},
                  {"again_in_s", std::max<std::int64_t>(fresh.due_ns - now().mono_ns, 0) / 1e9}});
      break;
    case journal_phase::over:
      log_.write(fresh.status == 0 ? runtime::level::info : runtime::level::error,
                 "the journal has ended", {{"journal", file_}, {"how", ending_of(fresh)}});
      break;
  }
}

void journal_watch::gone() {
  is_gone_ = true;
  bool const is_clean = last_.phase == journal_phase::over;
  if (!is_clean)
    log_.error("the journal's keeper is gone: fsync is native until this daemon is started again",
               {{"journal", file_}});
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

char const* journal_watch::state() const {
  if (is_gone_) return "gone";
  switch (last_.phase) {
    case journal_phase::recovering:
      return "recovering";
    case journal_phase::serving:
      return is_silent_ ? "silent" : "serving";
    case journal_phase::pausing:
      return "not served";
    case journal_phase::over:
      break;
  }
  return "ended";
}

bool journal_watch::is_settled(std::int64_t waited_ns) const {
  if (!is_there() || is_settled_) return true;
  auto const seen = waited_ns > hangs_ns ? look_at_status() : std::nullopt;
  return seen && seen->only_syncs;
}

/// A journal that sluice-order serves by itself tells through its status alone.
bool journal_watch::is_unrecovered() const {
  if (socket_ >= 0 && has_recovered_) return false;
  auto const seen = look_at_status();
  if (socket_ < 0) return seen && !seen->only_syncs && (seen->is_refused || seen->generation == 0);
  return !seen || !seen->only_syncs || seen->is_refused;
}

/// None too when it is of another version, for a moment.
std::optional<segment::journal_status> journal_watch::look_at_status() const {
  try {
    return segment::look_at_journal(status_);
  } catch (error const&) {
    return std::nullopt;
  }
}

nlohmann::json journal_watch::row(bool is_for_operator) const {
  if (socket_ < 0) return nullptr;
  if (!is_for_operator) return {{"state", state()}};
  bool const has_reason = is_there() && last_.phase == journal_phase::pausing;
  return {{"file", file_},
          {"state", state()},
          {"why", has_reason ? reason_of(last_) : ""},
          {"pid", last_.pid},
          {"deaths", last_.deaths}};
}

bool journal_watch::is_served() const {
  return is_there() && last_.phase == journal_phase::serving && !is_silent_;
}

void journal_watch::publish(runtime::metric_table& m, std::int64_t now_ns) {
  if (socket_ < 0) return;
  using runtime::metric;
  auto const seen = look_at_status();
  if (seen && last_.phase == journal_phase::serving) {
    bool const was_silent =
        std::exchange(is_silent_, now_ns - static_cast<std::int64_t>(seen->heart_ns) > silence_ns);
    if (is_silent_ && !was_silent)
      log_.error("the journal's daemon is silent: fsync is native", {{"journal", file_}});
    if (!is_silent_ && was_silent) log_.info("the journal's daemon is back", {{"journal", file_}});
  }
  m.set(metric::journal_served, is_served() ? 1 : 0);
  m.set(metric::journal_deaths_total, last_.deaths);
  if (!seen) return;
  m.set(metric::journal_aside, seen->is_aside ? 1 : 0);
  m.set(metric::journal_room_bytes, static_cast<double>(seen->room_bytes));
  m.set(metric::journal_used_bytes, static_cast<double>(seen->used_bytes));
  m.set(metric::journal_batches_total, static_cast<double>(seen->batches));
  m.set(metric::journal_batch_seconds_total, static_cast<double>(seen->batch_ns) / 1e9);
  m.set(metric::journal_requests_total, {"journal"}, static_cast<double>(seen->logged));
  m.set(metric::journal_requests_total, {"home"}, static_cast<double>(seen->synced));
}

}  // namespace sluice::node
