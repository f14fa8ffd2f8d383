// SPDX-License-Identifier: Apache-2.0
#include "policies/drift.h"

namespace sluice::policies {

namespace {

constexpr double step_s = 1;
constexpr double kept_of_busy = 0.9;  // a step: ten seconds in all
constexpr double enough_s = 4;        // of busy seconds
constexpr double far_less = 0.8, far_more = 1.2;
constexpr double least_threads = 2;  // where the file does not say how many filled the device
constexpr char const* drift_names[] = {"unknown", "fits", "less", "more"};

}  // namespace

char const* name_of(drift_sign s) { return drift_names[static_cast<unsigned>(s)]; }

void drift::look(rate served, std::uint64_t took_ns, std::int64_t now_ns) {
  double const span_s = static_cast<double>(now_ns - looked_ns_) / 1e9;
  bool const is_first = looked_ns_ == 0 || now_ns < looked_ns_;
  looked_ns_ = now_ns;
  if (is_first) return;
  span_s_ += span_s;
  served_ += static_cast<double>(served) * span_s;
  took_s_ += static_cast<double>(took_ns) / 1e9;
  if (span_s_ < step_s) return;
  decide(span_s_);
  span_s_ = served_ = took_s_ = 0;
}

void drift::decide(double span_s) {
  double const threads = costs_.threads > least_threads ? costs_.threads : least_threads;
  bool const is_much = served_ > far_more * static_cast<double>(costs_.most) * span_s;
  if (took_s_ < threads * span_s && !is_much) return;
  busy_s_ = busy_s_ * kept_of_busy + span_s;
  busy_served_ = busy_served_ * kept_of_busy + served_;
  if (busy_s_ < enough_s) return;
  auto const now = static_cast<double>(given());
  sign_ = now < far_less * static_cast<double>(costs_.floor)  ? drift_sign::less
          : now > far_more * static_cast<double>(costs_.most) ? drift_sign::more
                                                              : drift_sign::fits;
}

rate drift::given() const {
  if (busy_s_ < enough_s) return 0;
  double const now = busy_served_ / busy_s_;
  return now >= 1.8e19 ? unbounded : static_cast<rate>(now);
}

}  // namespace sluice::policies
