// SPDX-License-Identifier: Apache-2.0
#include "runtime/metric_table.h"

#include <fmt/format.h>

#include <cassert>

#include "base/clock.h"

namespace sluice::runtime {

namespace {

struct row {
  std::string_view name, kind, labels, help;
  bool is_of_job;
};

constexpr row table[] = {
#define METRIC(name, kind, labels, help) \
  {#name, #kind, labels, help, std::string_view(labels).starts_with("job_id")},
#include "core/durations.h"
#include "runtime/metrics.def"
};

constexpr std::int64_t job_series_ns = 60 * second_ns;   // four scrapes of a usual Prometheus
constexpr std::int64_t spacing_ns = second_ns * 9 / 10;  // who comes each second is not late
constexpr std::int64_t hung_ns = 10 * second_ns;

/// `{class="gold",resource="data"}`; a value is escaped as the format wants it.
std::string render(std::string_view names, labels values) {
  std::string out;
  auto value = values.begin();
  while (!names.empty()) {
    auto const comma = names.find(',');
    out += fmt::format("{}{}=\"", out.empty() ? '{' : ',', names.substr(0, comma));
    assert(value != values.end());
    for (char c : *value++) {
      if (c == '\\' || c == '"') out += '\\';
      if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    out += '"';
    names = comma == names.npos ? "" : names.substr(comma + 1);
  }
  assert(value == values.end());
  return out.empty() ? out : out + '}';
}

/// The lines of a histogram: `rendered` are its labels. The names are the format's.
template <class Add>
void spread_out(std::string const& rendered, distribution const& spread, Add const& add) {
  std::string const open = rendered.empty() ? "{" : rendered.substr(0, rendered.size() - 1) + ",";
  double sum = 0;
  for (std::size_t i = 0; i < spread.count.size(); ++i) {
    sum += spread.count[i];
    std::string const below =
        i == distribution::bounds
            ? "+Inf"
            : fmt::format("{:.15g}", static_cast<double>(distribution::bound_ns(i)) / 1e9);
    add(fmt::format("_bucket{}le=\"{}\"}}", open, below), sum);
  }
  add("_sum" + rendered, spread.sum_s);
  add("_count" + rendered, sum);
}

}  // namespace

metric_table::series* metric_table::find(metric m, labels l) {
  auto const i = static_cast<unsigned>(m);
  if (table[i].is_of_job && !with_jobs_) return nullptr;
  series& s = rows_[i][render(table[i].labels, l)];
  s.is_fresh = true;
  return &s;
}

void metric_table::set(metric m, labels l, double value) {
  if (series* s = find(m, l)) s->value = value;
}

void metric_table::set(metric m, labels l, distribution const& spread) {
  if (series* s = find(m, l)) s->spread = std::make_unique<distribution>(spread);
}

void metric_table::add(metric m, labels l, double more) {
  if (series* s = find(m, l)) s->value += more;
}

void metric_table::remove(metric m, labels l) {
  auto const i = static_cast<unsigned>(m);
  rows_[i].erase(render(table[i].labels, l));
}

void metric_table::publish(std::int64_t now_ns, bool is_healthy, std::string_view why) {
  if (before_publish) before_publish();
  std::lock_guard const hold(lock_);
  alive_ns_ = steady_ns();
  is_healthy_ = is_healthy;
  why_ = why;
  if (!published_.empty() && now_ns - published_ns_ < spacing_ns) return;
  published_ns_ = now_ns;
  published_.resize(static_cast<unsigned>(metric::count));
  for (unsigned i = 0; i < static_cast<unsigned>(metric::count); ++i) {
    published_[i].clear();
    for (auto it = rows_[i].begin(); it != rows_[i].end();) {
      series& s = it->second;
      if (s.is_fresh) s.set_ns = now_ns;
      s.is_fresh = false;
      bool const is_over = table[i].is_of_job && now_ns - s.set_ns > job_series_ns;
      it = is_over ? rows_[i].erase(it) : std::next(it);
    }
    for (auto const& [rendered, s] : rows_[i]) {
      auto const add = [&](std::string name, double value) {
        published_[i].emplace_back(std::move(name), value);
      };
      if (s.spread)
        spread_out(rendered, *s.spread, add);
      else
        add(rendered, s.value);
    }
  }
}

std::string metric_table::text() const {
  std::lock_guard const hold(lock_);
  std::string out;
  for (unsigned i = 0; i < published_.size(); ++i) {
    if (published_[i].empty()) continue;
    row const& r = table[i];
    out +=
        fmt::format("# HELP sluice_{} {}\n# TYPE sluice_{} {}\n", r.name, r.help, r.name, r.kind);
    for (auto const& [rendered, value] : published_[i])
      out += fmt::format("sluice_{}{} {:.15g}\n", r.name, rendered, value);
  }
  return out;
}

bool metric_table::health(std::string& why) const {
  std::lock_guard const hold(lock_);
  std::int64_t const silent_ns = steady_ns() - alive_ns_;
  if (alive_ns_ == 0) {
    why = "starting";
  } else if (silent_ns > hung_ns) {
    why = fmt::format("the control loop has been silent for {} s", silent_ns / second_ns);
  } else {
    why = why_;
    return is_healthy_;
  }
  return false;
}

}  // namespace sluice::runtime
