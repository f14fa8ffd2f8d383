// SPDX-License-Identifier: Apache-2.0
// The tables of a page. Each is empty when there is nothing to show.
#pragma once

#include <string>
#include <vector>

#include "commands/report/digest.h"

namespace sluice::report {

std::string gate_table(digest const& d);
std::string op_table_of(digest const& d);
/// How long calls took, and how much they moved: of a sample.
std::string time_table(result const& r);
std::string size_table(result const& r);
std::string job_table(digest const& d);
std::string path_table(result const& r);
std::string role_table(result const& r);
std::string fact_table(result const& r);

/// The figures of several results, the later ones also as multiples of the first.
std::string comparison(std::vector<result> const& results,
                       std::vector<digest const*> const& digests);

/// The same figures for a terminal.
struct compared {
  std::string what;
  std::string unit;
  std::vector<double> values;  // by result
};
std::vector<compared> compare(std::vector<digest const*> const& digests);

}  // namespace sluice::report
