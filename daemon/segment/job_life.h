// SPDX-License-Identifier: Apache-2.0
// When a job is over. The daemon asks next_life(), which waits a second; the command asks is_used()
// alone. Pure.
#pragma once

#include <cstdint>

namespace sluice::segment {

/// What was found out about a job at one moment.
struct life_facts {
  bool has_process = false;   // an attached process is alive
  bool has_joiner = false;    // who asked to join, or made it, is alive and may not have attached
  bool is_held = false;       // a scheduler announces it
  bool has_step = false;      // a process of the scheduler, all below which is the job, is alive
  bool is_scheduled = false;  // a scheduler announced it once, and says when it ends
  bool is_damaged = false;    // its segment was cut short: nothing can be said or done any more
};

constexpr bool is_used(life_facts const& f) {
  return f.has_process || f.has_joiner || f.is_held || f.has_step;
}

enum class life_state : std::uint8_t {
  used,   // or nobody has looked yet
  empty,  // for so short that somebody may still be starting
  over    // it goes
};

struct job_life {
  life_state state = life_state::used;
  std::int64_t empty_since_ns = 0;  // of state empty
};

/// A program that was started may be a moment without any process that shows.
inline constexpr std::int64_t empty_most_ns = 1'000'000'000;

/// The state after `f` was found at `now_ns`. A job of a scheduler does not wait: who may still
/// start in it is the scheduler's to know.
constexpr job_life next_life(job_life const& before, life_facts const& f, std::int64_t now_ns) {
  if (f.is_damaged) return {life_state::over, now_ns};
  if (is_used(f)) return {};
  if (f.is_scheduled || before.state == life_state::over) return {life_state::over, now_ns};
  if (before.state == life_state::used) return {life_state::empty, now_ns};
  bool const is_over = now_ns - before.empty_since_ns > empty_most_ns;
  return {is_over ? life_state::over : life_state::empty, before.empty_since_ns};
}

}  // namespace sluice::segment
