// SPDX-License-Identifier: Apache-2.0
// Rates as the tables of people show them: three digits and a suffix, bytes in powers of 1024.
#pragma once

#include <optional>
#include <string>

namespace sluice::cli {

/// Supplies are named RESOURCE@TARGET; those of data count bytes.
bool counts_bytes(std::string const& supply);

/// `950`, `1.2k`, `35M`; bytes `35Mi`.
std::string short_number(double value, bool bytes);

/// With unit: `1.2k/s`, `35MiB/s`; no value: `unbounded`.
std::string rate_words(std::optional<double> per_s, bool bytes);

/// Text of others for a terminal: what is not printable ASCII becomes `?`.
std::string printable(std::string text);

}  // namespace sluice::cli
