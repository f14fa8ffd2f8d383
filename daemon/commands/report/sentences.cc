// SPDX-License-Identifier: Apache-2.0
#include "commands/report/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "commands/report/shape.h"
#include "commands/report/words.h"

namespace sluice::report {

namespace {

constexpr double late_s = 0.1;  // a replay that is later than this says so
constexpr double worth_saying = 0.01;
constexpr std::size_t most_pauses = 4;  // of a job, each with its times

std::string of_amount(double amount, std::string const& unit) {
  return amount_text(amount, unit) + (unit == "ops" ? " operations" : "");
}

std::string capital(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string begin_of(result const& r, digest const& d) {
  double done = 0, bytes = 0;
  for (job_use const& j : d.jobs) done += j.done, bytes += j.bytes;
  std::string out = title_of(r);
  out = capital(std::move(out));
  out += fmt::format(" over {}", seconds_text(d.duration_s));
  if (d.jobs.size() > 1) out += fmt::format(", {} jobs", d.jobs.size());
  if (done > 0) out += fmt::format(", {} operations", count_text(done));
  if (bytes > 0) out += fmt::format(", {}", amount_text(bytes, "bytes"));
  if (r.exit_signal)
    out += fmt::format("; it was ended by signal {}", *r.exit_signal);
  else if (r.exit_code && *r.exit_code != 0)
    out += fmt::format("; it ended with status {}", *r.exit_code);
  return out + ".";
}

std::string waited_at(gate const& g, digest const& d) {
  std::string const what = gate_words(g.name);
  std::string out;
  if (g.blocked_s > 0) {
    out = fmt::format("{} of {} were spent waiting for {}", seconds_text(g.blocked_s),
                      seconds_text(d.duration_s), what);
    if (g.waited_s > 1.05 * g.blocked_s)
      out +=
          fmt::format(" ({} when the waiting of all threads is added)", seconds_text(g.waited_s));
  } else {
    out = fmt::format("{} were spent waiting for {}, all threads added, in a run of {}",
                      seconds_text(g.waited_s), what, seconds_text(d.duration_s));
  }
  if (g.delayed > 0 && g.calls > 0)
    out += fmt::format("; {} of {} calls were delayed", share_text(g.delayed, g.calls),
                       count_text(g.calls));
  out += ".";
  if (!g.rule.empty()) out += fmt::format(" The rule: {}.", g.rule);
  return out;
}

void say_who(std::vector<std::string>& out, digest const& d) {
  bool const by_time =
      std::any_of(d.jobs.begin(), d.jobs.end(), [](job_use const& j) { return j.blocked_s > 0; });
  auto const waited = [&](job_use const& j) { return by_time ? j.blocked_s : j.waited_s; };
  job_use const* most = nullptr;
  double sum = 0;
  for (job_use const& j : d.jobs) {
    sum += waited(j);
    if (most == nullptr || waited(j) > waited(*most)) most = &j;
  }
  if (most != nullptr && d.jobs.size() > 1 && waited(*most) > 0)
    out.push_back(fmt::format("Most of it by job {}: {}{}, {} of the waiting of all jobs.",
                              most->job, seconds_text(waited(*most)),
                              by_time ? "" : " (all threads added)",
                              share_text(waited(*most), sum)));
  op_use const* call = nullptr;
  double all = 0;
  for (op_use const& o : d.ops) {
    all += o.waited_s;
    if (call == nullptr || o.waited_s > call->waited_s) call = &o;
  }
  if (call != nullptr && call->waited_s > 0)
    out.push_back(fmt::format("By call: {} in {}, all threads added ({}).",
                              seconds_text(call->waited_s), call->op,
                              share_text(call->waited_s, all)));
}

/// In a run of `whole_s`: a short one is over within one tick of a clock.
std::string moment_text(double at_s, double whole_s) {
  constexpr double short_s = 10;
  return whole_s < short_s ? seconds_text(at_s) : clock_text(at_s);
}

void say_when(std::vector<std::string>& out, result const& r, digest const& d) {
  std::vector<double> blocked;
  for (gate const& g : d.gates) add_to(blocked, g.blocked);
  if (blocked.empty())
    for (op_use const& o : d.ops) add_to(blocked, o.waited);
  auto const span = densest(blocked, 0.8);
  if (span.end == 0) return;
  double const step = r.time.interval_s;
  double const whole_s = static_cast<double>(blocked.size()) * step;
  bool const is_all = span.end - span.begin > blocked.size() * 9 / 10;
  out.push_back(is_all ? "It was spread over the whole time."
                       : fmt::format("When: four fifths of it between {} and {}.",
                                     moment_text(static_cast<double>(span.begin) * step, whole_s),
                                     moment_text(static_cast<double>(span.end) * step, whole_s)));
}

/// Somebody held the job by hand: no limit is to blame for what waited then.
void say_pauses(std::vector<std::string>& out, result const& r, digest const& d) {
  for (job_use const& j : d.jobs) {
    if (!(j.paused_s > 0)) continue;
    double const whole_s = static_cast<double>(j.paused.size()) * r.time.interval_s;
    auto const is_paused = [&](std::size_t i) { return i < j.paused.size() && j.paused[i] > 0; };
    std::vector<std::string> when;
    for (std::size_t i = 0; i < j.paused.size();) {
      std::size_t end = i;
      while (is_paused(end)) ++end;
      if (end > i)
        when.push_back(fmt::format(
            "from {} to {}", moment_text(static_cast<double>(i) * r.time.interval_s, whole_s),
            moment_text(static_cast<double>(end) * r.time.interval_s, whole_s)));
      i = std::max(end, i + 1);
    }
    std::string const who = d.jobs.size() > 1 ? "Job " + j.job : "The job";
    std::string line = fmt::format("{} was paused by hand for {}: ", who, seconds_text(j.paused_s));
    std::size_t const told = std::min(when.size(), most_pauses);
    line += fmt::format("{}", fmt::join(when.begin(), when.begin() + std::ptrdiff_t(told), ", "));
    if (told < when.size()) line += fmt::format(" and {} times more", when.size() - told);
    out.push_back(line + ".");
  }
}

void say_capacity(std::vector<std::string>& out, digest const& d) {
  for (gate const& g : d.gates) {
    double sum = 0;
    std::vector<gate_use const*> users;
    for (gate_use const& u : d.uses)
      if (u.gate == g.name && u.served > 0) users.push_back(&u), sum += u.served;
    if (users.empty()) continue;
    bool const is_supply = g.name.find('@') != std::string::npos;
    if (users.size() < 2 && std::isnan(g.capacity_amount) && !is_supply) continue;
    std::string who;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, users.size()); ++i)
      who += fmt::format("{}{} {}", i == 0 ? "" : ", ", users[i]->job,
                         share_text(users[i]->served, sum));
    std::string line = fmt::format("{}: {} served; {}", g.name, of_amount(sum, g.unit), who);
    if (users.size() > 3) line += fmt::format(", {} more", users.size() - 3);
    if (g.capacity_amount > 0)
      line += fmt::format("; {} of the capacity", share_text(sum, g.capacity_amount));
    if (g.idle_amount > worth_saying * g.waited_capacity)
      line += fmt::format("; while something waited, {} of the capacity of that time stayed unused",
                          share_text(g.idle_amount, g.waited_capacity));
    out.push_back(line + ".");
  }
}

void say_load(std::vector<std::string>& out, digest const& d) {
  double offered = 0, done = 0, failed = 0, lag = 0;
  for (job_use const& j : d.jobs)
    offered += j.offered, done += j.done, failed += j.failed, lag = std::max(lag, j.lag_s);
  if (offered > 0)
    out.push_back(fmt::format("{} of the {} operations that were asked for were done.",
                              share_text(done, offered), count_text(offered)));
  if (lag >= late_s)
    out.push_back(fmt::format("The latest operation began {} after its time.", seconds_text(lag)));
  if (failed > 0) out.push_back(fmt::format("{} operations failed.", count_text(failed)));
}

void say_jobs(std::vector<std::string>& out, digest const& d) {
  std::size_t unfinished = 0;
  job_use const* last = nullptr;
  for (job_use const& j : d.jobs) {
    if (j.finished == false) ++unfinished;
    if (!std::isnan(j.ended_s) && (last == nullptr || j.ended_s > last->ended_s)) last = &j;
  }
  if (unfinished > 0)
    out.push_back(fmt::format("{} did not finish.",
                              unfinished == 1 ? "1 job" : fmt::format("{} jobs", unfinished)));
  if (last != nullptr && d.jobs.size() > 1)
    out.push_back(
        fmt::format("The last job to end was {}, at {}.", last->job, clock_text(last->ended_s)));
}

/// Booked and not yet let through, or told as delayed, and no time of it is known.
bool waits_now(digest const& d) {
  for (gate_use const& u : d.uses)
    if (sum_of(u.waiting) > 0) return true;
  return std::any_of(d.gates.begin(), d.gates.end(), [](gate const& g) { return g.delayed > 0; });
}

/// A limit that only counts: what it would have done.
std::string would_wait_at(gate const& g) {
  std::string const name = capital(gate_words(g.name));
  if (!(g.would_delay > 0))
    return fmt::format("{} only counted; it would have held nothing back.", name);
  std::string const calls =
      fmt::format("{} of {} calls", share_text(g.would_delay, g.calls), count_text(g.calls));
  if (!(g.would_wait_s > 0))
    return fmt::format(
        "{} only counted; it would have held back {}, for as long as it paid nothing.", name,
        calls);
  return fmt::format("{} only counted; it would have held back {}, and the job {} longer.", name,
                     calls, seconds_text(g.would_wait_s));
}

/// A policy that is not enforced, or jobs that are only watched.
std::string beyond_at(gate const& g) {
  return fmt::format(
      "Of {} at {}, {} went beyond what was granted; nothing held it back, or it would have "
      "waited.",
      of_amount(g.served, g.unit), g.name, share_text(g.beyond, g.served));
}

/// Where the rest of the time went, as far as a sample tells.
void say_times(std::vector<std::string>& out, result const& r) {
  double took_s = 0;
  time_sum const* most = nullptr;
  for (time_sum const& t : r.times) {
    took_s += t.took_s;
    if (most == nullptr || t.took_s > most->took_s) most = &t;
  }
  if (took_s > 0)
    out.push_back(fmt::format(
        "The calls themselves took {}, all threads added, by a sample; {} of it in {}{}.",
        seconds_text(took_s), share_text(most->took_s, took_s), most->op,
        most->target.empty() ? "" : " on " + most->target));
}

std::string because(std::string const& why) { return why.empty() ? "." : ": " + why + "."; }

void say_hints(std::vector<std::string>& out, result const& r) {
  if (!r.hints) return;
  hint_sum const& h = *r.hints;
  if (h.advised == 0 && !h.why_none.empty()) {
    out.push_back("The kernel was never asked to read ahead" + because(h.why_none));
    return;
  }
  std::string line = h.advised > 0
                         ? fmt::format("The kernel was asked {} times to read ahead, {} in all",
                                       count_text(h.advised), amount_text(h.advised_bytes, "bytes"))
                         : "The kernel was never asked to read ahead";
  if (h.cached > 0)
    line += fmt::format("; {} times nothing of it was to be read", count_text(h.cached));
  if (h.unpaid > 0)
    line += fmt::format("; {} times the limit had nothing to spare for it", count_text(h.unpaid));
  out.push_back(line + ".");
}

void add_ended(std::string& line, double times, char const* why) {
  if (times > 0) line += fmt::format("; it ended {} times, as {}", count_text(times), why);
}

void say_gathered(std::vector<std::string>& out, result const& r) {
  if (!r.gathered) return;
  gathered_sum const& g = *r.gathered;
  if (g.writes == 0) {
    out.push_back("No small writes were gathered, though it was asked for" + because(g.why_none));
    return;
  }
  std::string line =
      fmt::format("{} small writes were gathered, {} in all: {} large ones went to the kernel",
                  count_text(g.writes), amount_text(g.bytes, "bytes"), count_text(g.flushes));
  if (g.failures > 0)
    line += fmt::format("; {} could not be written out whole", count_text(g.failures));
  add_ended(line, g.ended_slow, "they came too slowly");
  add_ended(line, g.ended_asked, "too few came between the calls that needed them written");
  add_ended(line, g.ended_memory, "they came from memory that libc may unmap");
  out.push_back(line + ".");
}

void say_buffered(std::vector<std::string>& out, result const& r) {
  if (!r.buffered) return;
  buffered_sum const& b = *r.buffered;
  if (b.reads == 0) {
    out.push_back("No small reads were answered from memory, though it was asked for" +
                  because(b.why_none));
    return;
  }
  std::string line =
      fmt::format("{} small reads were answered from memory; {} reads brought {} there",
                  count_text(b.reads), count_text(b.fills), amount_text(b.bytes, "bytes"));
  if (b.breaks > 0)
    line += fmt::format("; {} times somebody opened the file for writing", count_text(b.breaks));
  add_ended(line, b.ended_asked, "too few came before another call on the file");
  add_ended(line, b.ended_memory, "they went to memory that libc may unmap");
  out.push_back(line + ".");
}

/// No waiting is known: what that means depends on who wrote the file.
std::string why_none(result const& r, digest const& d) {
  if (!d.is_known) return "Nothing is known yet: no interval has ended.";
  bool const is_only_counted =
      !d.gates.empty() &&
      std::all_of(d.gates.begin(), d.gates.end(), [](gate const& g) { return g.is_only_counted; });
  if (is_only_counted) return "Nothing waited: limits were only counted.";
  if (r.kind != "replay") return "Nothing waited: no limit held a call back.";
  double late = 0;
  for (op_use const& o : d.ops) late += o.delayed;
  for (job_use const& j : d.jobs)
    if (j.lag_s >= late_s || late > 0)
      return fmt::format(
          "{}perations were late: a limit or the storage held them back; a replay cannot tell "
          "which. The report of `sluice run` around it can.",
          late > 0 ? count_text(late) + " o" : "O");
  return "No operation was late.";
}

}  // namespace

std::string title_of(result const& r) {
  std::string const who = !r.job.empty()                          ? r.job
                          : r.kind == "run" && !r.command.empty() ? r.command[0]
                          : r.jobs.size() == 1                    ? r.jobs[0].job
                                                                  : "";
  std::string const of = who.empty() ? "" : (r.kind == "history" ? " " : " of ") + who;
  return r.kind + of;
}

std::vector<std::string> sentences_of(result const& r, digest const& d) {
  std::vector<std::string> out = {begin_of(r, d)};
  bool waited = false;
  for (gate const& g : d.gates)
    if (g.blocked_s > 0 || g.waited_s > 0) {
      if (waited && std::max(g.blocked_s, g.waited_s) < worth_saying * d.duration_s) continue;
      out.push_back(waited_at(g, d));
      waited = true;
    }
  for (op_use const& o : d.ops) waited = waited || o.waited_s > 0;
  if (!waited && waits_now(d)) {
    out.push_back("A wait has just begun; its length is known when it has ended.");
    waited = true;
  }
  if (waited) {
    say_who(out, d);
    say_when(out, r, d);
  } else {
    out.push_back(why_none(r, d));
  }
  say_pauses(out, r, d);
  for (gate const& g : d.gates)
    if (g.is_only_counted) out.push_back(would_wait_at(g));
  for (gate const& g : d.gates)
    if (g.beyond > 0) out.push_back(beyond_at(g));
  say_times(out, r);
  say_hints(out, r);
  say_gathered(out, r);
  say_buffered(out, r);
  say_capacity(out, d);
  say_load(out, d);
  say_jobs(out, d);
  double unlimited = 0;
  for (auto const& [reason, calls] : r.passthrough) unlimited += calls;
  if (unlimited > 0)
    out.push_back(fmt::format("{} calls passed without being limited.", count_text(unlimited)));
  return out;
}

}  // namespace sluice::report
