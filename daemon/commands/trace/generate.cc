// SPDX-License-Identifier: Apache-2.0
#include "commands/trace/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/duration.h"
#include "base/error.h"
#include "base/suggest.h"
#include "commands/trace/lines.h"
#include "commands/trace/random.h"
#include "core/units.h"

namespace sluice::trace {

namespace {

struct value_row {
  std::string_view preset, parameter, value, origin;
};
constexpr value_row value_table[] = {
#define VALUE(preset, parameter, value, origin) {#preset, #parameter, value, origin},
#include "commands/trace/presets.def"
};

constexpr double day_s = 86400;
constexpr double memory_of_noise_s = 300;  // how long a deviation lasts

using amounts = std::vector<std::pair<unsigned, double>>;  // op, share or bytes

/// The parameters, read.
struct shape {
  amounts mix, bytes;
  double mean_per_s = 0, peak_per_s = 0, burst_s = 0, every_s = 0;
  bool regular = false;
  double diurnal = 0, busiest_h = 0, noise = 0;
  std::vector<double> shares;  // of the jobs, sum 1
  double interval_s = 0;
  std::size_t intervals = 0;
  std::uint64_t seed = 0;
};

class reader {
 public:
  explicit reader(given const& values) : values_(values) {}

  std::string const& text(char const* name) const { return values_.at(name); }

  [[noreturn]] static void fail(std::string_view name, std::string_view value,
                                std::string const& what) {
    throw usage_error(fmt::format("--{}: {} {}", name, shown(value), what));
  }

  double number(char const* name, double least, double most) const {
    double value = 0;
    if (!to_number(text(name), value) || value < least || value > most)
      fail(name, text(name), fmt::format("is no number from {} to {}", least, most));
    return value;
  }

  double seconds(char const* name) const {
    auto const ns = parse_duration(text(name), fmt::format("--{}", name));
    if (ns <= 0) fail(name, text(name), "is no time above 0");
    return static_cast<double>(ns) / 1e9;
  }

  double per_second(char const* name) const {
    auto const rate = core::parse_rate(text(name));
    if (!rate.ok()) fail(name, text(name), fmt::format("({}); write it like 200k/s", rate.reason));
    if (rate.value.is_bytes || rate.value.units == 0)
      fail(name, text(name), "is no rate of operations above 0");
    return static_cast<double>(rate.value.units) * 1e9 / static_cast<double>(rate.value.period_ns);
  }

  /// OP=AMOUNT,…; `bytes`: of read and write only, else of any other op.
  amounts per_op(char const* name, bool bytes) const {
    amounts out;
    std::vector<std::string_view> items;
    if (text(name).empty()) return out;
    split_cells(text(name), items);
    for (auto const item : items) {
      auto const equals = item.find('=');
      if (equals == item.npos) fail(name, item, "is not OP=AMOUNT");
      auto const op = find_op(item.substr(0, equals));
      if (!op) fail(name, item, "names no operation" + op_advice(item.substr(0, equals)));
      if (op_table[*op].counts_bytes() != bytes)
        fail(name, item, bytes ? "counts no bytes" : "counts bytes; give it with --bytes");
      auto const amount = core::parse_decimal(item.substr(equals + 1));
      if (!amount.ok() || amount.error_at != item.size() - equals - 1)
        fail(name, item, "has no amount like 25, 2.5 or 64KiB");
      for (auto const& other : out)
        if (other.first == *op) fail(name, item, "is there twice");
      out.emplace_back(*op, static_cast<double>(amount.value.units) /
                                static_cast<double>(core::power_of_ten(amount.value.decimals)));
    }
    return out;
  }

  std::vector<double> shares() const {
    auto const jobs = static_cast<std::size_t>(number("jobs", 1, 1000));
    std::vector<double> out(jobs, 1);
    std::vector<std::string_view> items;
    split_cells(text("shares"), items);
    if (!text("shares").empty()) {
      if (items.size() != jobs)
        fail("shares", text("shares"),
             fmt::format("has {} shares for {} jobs", items.size(), jobs));
      for (std::size_t i = 0; i < jobs; ++i)
        if (!to_number(items[i], out[i]) || out[i] <= 0 || out[i] > 1e9)
          fail("shares", items[i], "is no share above 0");
    }
    double sum = 0;
    for (double share : out) sum += share;
    for (double& share : out) share /= sum;
    return out;
  }

 private:
  given const& values_;
};

void scale_to_one(amounts& mix) {
  double sum = 0;
  for (auto const& [op, share] : mix) sum += share;
  if (!(sum > 0)) throw usage_error("--mix: the shares are all 0");
  for (auto& entry : mix) entry.second /= sum;
}

shape read_shape(given const& values) {
  reader const from(values);
  shape s;
  s.mix = from.per_op("mix", false);
  scale_to_one(s.mix);
  s.bytes = from.per_op("bytes", true);
  s.mean_per_s = from.per_second("mean");
  s.peak_per_s = from.per_second("peak");
  if (s.peak_per_s < s.mean_per_s)
    reader::fail("peak", from.text("peak"), "is below the mean of " + from.text("mean"));
  s.burst_s = from.seconds("burst");
  s.every_s = from.seconds("every");
  if (s.every_s <= s.burst_s)
    reader::fail("every", from.text("every"),
                 "is not longer than a burst of " + from.text("burst"));
  if (from.text("regular") != "yes" && from.text("regular") != "no")
    reader::fail("regular", from.text("regular"), "is neither yes nor no");
  s.regular = from.text("regular") == "yes";
  s.diurnal = from.number("diurnal", 0, 1);
  s.busiest_h = from.number("busiest", 0, 24);
  s.noise = from.number("noise", 0, 2);
  s.shares = from.shares();
  s.interval_s = from.seconds("interval");
  double const length_s = from.seconds("length");
  double const intervals = std::round(length_s / s.interval_s);
  if (intervals < 2 || intervals > most_intervals)
    reader::fail(
        "length", from.text("length"),
        fmt::format("makes {} intervals; 2 to {} are possible", intervals, most_intervals));
  s.intervals = static_cast<std::size_t>(intervals);
  if (intervals * static_cast<double>(s.shares.size() * (s.mix.size() + s.bytes.size())) >
      most_cells)
    reader::fail("length", from.text("length"),
                 "makes too many counts; take fewer jobs or longer intervals");
  s.seed = static_cast<std::uint64_t>(from.number("seed", 0, 1e15));
  return s;
}

/// The wave of the day with noise that lasts: around 1, never negative.
std::vector<double> base_of(shape const& s, random_numbers& random) {
  std::vector<double> base(s.intervals);
  double const keep = std::exp(-s.interval_s / memory_of_noise_s);
  double const fresh = std::sqrt(1 - keep * keep);
  double level = random.normal();
  for (std::size_t i = 0; i < s.intervals; ++i) {
    double const hour = std::fmod(static_cast<double>(i) * s.interval_s, day_s) / 3600;
    double const wave = 1 + s.diurnal * std::cos((hour - s.busiest_h) / 24 * 2 * std::numbers::pi);
    level = keep * level + fresh * random.normal();
    base[i] = wave * std::exp(s.noise * (0.8 * level + 0.6 * random.normal()));
  }
  return base;
}

/// How much of each interval is burst, times how high this burst is (up to 1).
std::vector<double> bursts_of(shape const& s, random_numbers& random) {
  std::vector<double> burst(s.intervals);
  double const end_s = static_cast<double>(s.intervals) * s.interval_s;
  double const pause_s = s.every_s - s.burst_s;
  double begin = s.regular ? random.uniform() * pause_s : random.exponential(pause_s);
  while (begin < end_s) {
    double const length = s.regular ? s.burst_s : random.exponential(s.burst_s);
    double const height = s.regular ? 1 : 0.4 + 0.6 * random.uniform();
    double const stop = std::min(begin + length, end_s);
    for (auto i = static_cast<std::size_t>(begin / s.interval_s); i < s.intervals; ++i) {
      double const from = std::max(begin, static_cast<double>(i) * s.interval_s);
      double const to = std::min(stop, static_cast<double>(i + 1) * s.interval_s);
      if (to <= from) break;
      burst[i] += height * (to - from) / s.interval_s;
    }
    begin += length + (s.regular ? pause_s : random.exponential(pause_s));
  }
  return burst;
}

double mean(std::vector<double> const& of) {
  double sum = 0;
  for (double value : of) sum += value;
  return sum / static_cast<double>(of.size());
}

/// a·base + b·burst with the mean and the maximum asked for, as near as the two can come to them:
/// the maximum grows with b. What is still above the peak then is cut off.
std::vector<double> scaled(std::vector<double> base, std::vector<double> burst, double mean_asked,
                           double peak_asked) {
  double const base_mean = mean(base), burst_mean = mean(burst);
  auto const height = [&](double b) {
    double const a = (mean_asked - b * burst_mean) / base_mean;
    double most = 0;
    for (std::size_t i = 0; i < base.size(); ++i) most = std::max(most, a * base[i] + b * burst[i]);
    return most;
  };
  double low = 0, high = burst_mean > 0 ? mean_asked / burst_mean : 0;
  for (int step = 0; step < 100; ++step) {
    double const middle = (low + high) / 2;
    (height(middle) < peak_asked ? low : high) = middle;
  }
  double const a = (mean_asked - low * burst_mean) / base_mean;
  std::vector<double> rate(base.size());
  for (std::size_t i = 0; i < base.size(); ++i)
    rate[i] = std::min(a * base[i] + low * burst[i], peak_asked);
  // Cutting took something away: the rest is raised, and the largest stays the peak.
  for (int step = 0; step < 50; ++step) {
    double const missing = mean_asked / mean(rate);
    if (std::abs(missing - 1) < 1e-9) break;
    for (double& r : rate) r = std::min(r * missing, peak_asked);
  }
  *std::max_element(rate.begin(), rate.end()) = peak_asked;
  return rate;
}

/// The shares of the mix go up and down a little, each by itself; what is opened is closed.
class wobble {
 public:
  wobble(shape const& s, amounts const& parts) : s_(s), parts_(parts), level_(parts.size()) {}

  /// Shares of this interval: those of the mix have the sum that they had.
  std::vector<double> next(random_numbers& random) {
    double const keep = std::exp(-s_.interval_s / memory_of_noise_s);
    std::vector<double> share(parts_.size());
    double sum = 0;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      level_[p] = keep * level_[p] + std::sqrt(1 - keep * keep) * random.normal();
      share[p] = parts_[p].second * std::exp(0.4 * s_.noise * level_[twin_of(p)]);
      if (p < s_.mix.size()) sum += share[p];
    }
    for (std::size_t p = 0; p < s_.mix.size(); ++p) share[p] /= sum;
    return share;
  }

 private:
  std::size_t twin_of(std::size_t part) const {
    if (op_table[parts_[part].first].as != core::op::close) return part;
    for (std::size_t p = 0; p < part; ++p)
      if (op_table[parts_[p].first].as == core::op::open) return p;
    return part;
  }

  shape const& s_;
  amounts const& parts_;
  std::vector<double> level_;
};

void add_job(trace& t, shape const& s, std::size_t job) {
  random_numbers random(s.seed * 1000003 + job);
  double const part_of_all = s.shares[job];
  auto const base = base_of(s, random);
  auto const burst = bursts_of(s, random);
  auto const rate = scaled(base, burst, s.mean_per_s * part_of_all, s.peak_per_s * part_of_all);
  std::string const name = s.shares.size() == 1 ? "" : fmt::format("job{}", job + 1);
  amounts parts = s.mix;
  parts.insert(parts.end(), s.bytes.begin(), s.bytes.end());
  wobble mix(s, parts);
  std::vector<double> owed(parts.size());  // what rounding left over
  for (auto const& part : parts) t.columns.push_back({name, part.first});
  for (std::size_t i = 0; i < s.intervals; ++i) {
    auto const share = mix.next(random);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      owed[p] += rate[i] * s.interval_s * share[p];
      double const count = std::max(std::floor(owed[p] + 0.5), 0.0);
      owed[p] -= count;
      t.counts[i].push_back(count);
    }
  }
}

std::string preset_key(std::string const& name) {
  std::string key = name;
  std::replace(key.begin(), key.end(), '-', '_');
  std::vector<std::string> names;
  for (auto const& row : preset_table) {
    if (row.name == key) return key;
    names.push_back(command_name(row));
  }
  throw usage_error(fmt::format("generate: no preset {}{}; there are: {}", shown(name),
                                did_you_mean(name, names), fmt::join(names, " ")));
}

/// Values with where each comes from: the command line, the preset, or the default.
void complete(given& values, std::string const& key, trace& t) {
  for (auto const& row : parameter_table) {
    std::string const name(row.name);
    std::string origin = "given on the command line";
    if (!values.contains(name)) {
      values[name] = row.value;
      origin = "default";
      for (auto const& preset : value_table)
        if (preset.preset == key && preset.parameter == name) {
          values[name] = preset.value;
          origin = preset.origin;
        }
    }
    t.facts.emplace_back(
        "parameter",
        fmt::format("{} = {} ({})", name, values[name].empty() ? "none" : values[name], origin));
  }
}

}  // namespace

std::string command_name(preset_row const& preset) {
  std::string name(preset.name);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

trace generate(std::string const& preset, given const& values) {
  std::string const key = preset.empty() ? "" : preset_key(preset);
  trace t;
  std::string title = "generated";
  for (auto const& row : preset_table)
    if (row.name == key) title = row.title;
  t.facts.emplace_back("title", title);
  t.facts.emplace_back("synthetic", "yes: made by a program, measured nowhere");
  std::string command = "sluice trace generate" + (preset.empty() ? "" : " " + preset);
  for (auto const& [name, value] : values) command += fmt::format(" --{} {}", name, value);
  t.facts.emplace_back("provenance", command);
  t.facts.emplace_back("licence", "Apache-2.0, as sluice");
  given all = values;
  complete(all, key, t);
  shape const s = read_shape(all);
  t.interval_s = s.interval_s;
  t.counts.resize(s.intervals);
  for (std::size_t job = 0; job < s.shares.size(); ++job) add_job(t, s, job);
  return t;
}

}  // namespace sluice::trace
