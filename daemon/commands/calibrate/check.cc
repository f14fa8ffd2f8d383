// SPDX-License-Identifier: Apache-2.0
// Does a cost file belong to a mount, and does the device still do what it did? A few seconds of
// load on three points answer the second; what is charged everywhere hangs on them.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/quantity.h"
#include "commands/calibrate/fit.h"
#include "commands/calibrate/options.h"
#include "commands/calibrate/run.h"

namespace sluice::calibrate {

namespace {

/// More than calibrations of one device differ, less than what makes a promise wrong.
constexpr double most_drift = 0.25;
constexpr std::uint64_t file_bytes = 64 << 20;
constexpr unsigned check_rounds = 3;

struct drift {
  std::string what;
  double was_per_s = 0, is_per_s = 0;

  double part() const { return is_per_s / was_per_s - 1; }
  bool is_drift() const { return std::fabs(part()) > most_drift; }
};

policy::measured const* measured_point(policy::cost_file const& c, work const& w) {
  for (auto const& p : (w.op == "read" ? c.read : c.write)[1])
    if (p.bytes == w.bytes && p.how.per_s > 0) return &p.how;
  return nullptr;
}

/// The median of short rounds with the threads that the file tells of.
double rate_now(ground const& where, step const& s, unsigned threads, timing const& t) {
  std::vector<sample> samples;
  for (unsigned round = 0; round < check_rounds; ++round) {
    auto const got = run_load(where, {{s.works[0], threads}}, 2, t, t.window_ns, is_asked_to_end);
    samples.push_back({s.id, round, threads, got.groups, got.is_thin, got.missing});
  }
  return seen_of(s, samples).how.per_s;
}

std::vector<drift> compared(policy::cost_file const& c, std::string const& path) {
  ground where(path, file_bytes, true);
  where.fill([](std::uint64_t) {
    if (is_asked_to_end()) throw interrupted();
    return true;
  });
  timing const t = timing_of(where.can());
  std::vector<drift> out;
  for (step const& s : drift_plan(where.can())) {
    auto const* was = measured_point(c, s.works[0]);
    if (was == nullptr) continue;
    unsigned const threads = std::clamp(was->threads, 1u, most_threads(t, s.works[0]));
    out.push_back({s.say, was->per_s, rate_now(where, s, threads, t)});
  }
  return out;
}

void tell(std::vector<drift> const& all, bool json) {
  auto rows = nlohmann::ordered_json::array();
  for (drift const& d : all) {
    if (json)
      rows.push_back({{"what", d.what},
                      {"was_per_s", d.was_per_s},
                      {"is_per_s", d.is_per_s},
                      {"drifted", d.is_drift()}});
    else
      fmt::print("{:<14} {:>8}/s, was {:>8}/s: {:+.0f} %{}\n", d.what,
                 short_number(d.is_per_s, core::unit_kind::ops),
                 short_number(d.was_per_s, core::unit_kind::ops), d.part() * 100,
                 d.is_drift() ? ", DRIFTED" : "");
  }
  if (json) fmt::print("{}\n", rows.dump(2));
}

}  // namespace

int check(check_options const& o) {
  policy::cost_file const c = policy::read_cost_file(o.file);
  policy::place const where = policy::find_place(o.path);
  auto const mounts = read_mounts();
  policy::mount const* m = policy::mount_of(mounts, where);
  if (m == nullptr) throw usage_error(o.path + ": no mount of this process shows it");
  if (auto const why = policy::why_other_mount(c.from, *m, where); !why.empty())
    throw usage_error(fmt::format("{} is not for {}: {}", o.file, o.path, why));
  if (!c.from.is_known()) {
    if (!o.json) fmt::print("{} does not say where it was measured: nothing to compare\n", o.file);
    tell({}, o.json);
    return 0;
  }
  take_signals();
  std::vector<drift> found;
  try {
    found = compared(c, o.path);
  } catch (interrupted const&) {
    end_by_signal();
  }
  tell(found, o.json);
  bool drifted = false;
  for (drift const& d : found) drifted = drifted || d.is_drift();
  if (!o.json)
    fmt::print("{}\n",
               drifted ? "the device is not what it was: calibrate anew" : "the costs still hold");
  return drifted ? 1 : 0;
}

}  // namespace sluice::calibrate
