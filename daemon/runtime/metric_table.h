// SPDX-License-Identifier: Apache-2.0
// Figures for Prometheus. The loop sets values as it goes and publishes once a cycle; the thread of
// the HTTP server renders the published values. Names, kinds, labels and help are rows of
// metrics.def. A series of one job is removed a minute after it was last set; others stay.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/unit_kind.h"
#include "runtime/distribution.h"

namespace sluice::runtime {

enum class metric : std::uint8_t {
#define METRIC(name, kind, labels, help) name,
#include "runtime/metrics.def"
  count
};

/// The family of `operations` that counts in this unit.
constexpr metric in_unit(metric operations, core::unit_kind unit) {
  return static_cast<metric>(static_cast<unsigned>(operations) + static_cast<unsigned>(unit));
}

/// Values of the labels of the row, in its order.
using labels = std::initializer_list<std::string_view>;

class metric_table {
 public:
  explicit metric_table(bool with_jobs = false) : with_jobs_(with_jobs) {}

  /// A gauge, or a counter that the caller counts himself.
  void set(metric m, labels l, double value);
  void set(metric m, double value) { set(m, {}, value); }
  void add(metric m, labels l, double more = 1);
  void add(metric m, double more = 1) { add(m, {}, more); }
  /// A histogram, that the caller counts.
  void set(metric m, labels l, distribution const& spread);
  /// Takes a series away at once: its class, node or file is gone.
  void remove(metric m, labels l);

  /// True when series of single jobs are asked for; without it setting them does nothing.
  bool has_jobs() const { return with_jobs_; }

  /// Call it once a cycle. Hands over what was set, at most once a second; /health says
  /// `is_healthy`, and that the loop hangs when no call comes.
  void publish(std::int64_t now_ns, bool is_healthy = true, std::string_view why = "");

  /// Called before values are handed over, for what nobody counts here (the log).
  std::function<void()> before_publish = {};

  // Below: any thread.
  std::string text() const;  // text format 0.0.4
  bool health(std::string& why) const;

 private:
  struct series {
    double value = 0;
    std::unique_ptr<distribution> spread = {};  // of a histogram
    std::int64_t set_ns = 0;
    bool is_fresh = true;  // set since the last publish()
  };
  using rows = std::map<std::string, series>;  // by rendered labels

  series* find(metric m, labels l);

  bool with_jobs_;
  rows rows_[static_cast<unsigned>(metric::count)];
  std::int64_t published_ns_ = 0;
  mutable std::mutex lock_;    // of all below
  std::int64_t alive_ns_ = 0;  // when publish() was called last
  std::vector<std::vector<std::pair<std::string, double>>> published_;
  bool is_healthy_ = true;
  std::string why_;
};

}  // namespace sluice::runtime
