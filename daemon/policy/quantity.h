// SPDX-License-Identifier: Apache-2.0
// Amounts that were measured, for people: three digits and a suffix, bytes in powers of 1024. What
// somebody wrote is given back as exactly as he wrote it, by limit.h.
#pragma once

#include <optional>
#include <string>

namespace sluice::policy {

/// `950`, `1.2k`, `35M`; bytes `35Mi`.
std::string short_number(double value, bool bytes);

/// With unit: `1.2k/s`, `35MiB/s`; no value: `unbounded`.
std::string rate_words(std::optional<double> per_s, bool bytes);

}  // namespace sluice::policy
