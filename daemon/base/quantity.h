// SPDX-License-Identifier: Apache-2.0
// Amounts that were measured, for people: three digits and a suffix, bytes in powers of 1024.
// Amounts that a user wrote are printed exactly as written, by limit.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/unit_kind.h"

namespace sluice {

/// `950`, `1.2k`, `35M`; bytes `35Mi`.
std::string short_number(double value, core::unit_kind unit);

/// With unit: `1.2k/s`, `35MiB/s`, `1.2k VOP/s`; no value: `unbounded`.
std::string rate_words(std::optional<double> per_s, core::unit_kind unit);

/// `0`, `950 ns`, `3.2 ms`, `12.34 s`.
std::string time_words(std::uint64_t ns);

/// `512 B`, `1.5 GiB`.
std::string size_words(std::uint64_t bytes);

}  // namespace sluice
