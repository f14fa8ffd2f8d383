// SPDX-License-Identifier: Apache-2.0
// Names of nodes as schedulers write them: n[1-8,12],login1, r[01-04]n[1-2]. Leading zeros of a
// range are kept. Every name is listed once, in the order written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::policy {

/// Throws a usage error that begins with `where`: brackets that do not close, ranges that run
/// backwards, a name twice, more than 65536 names.
std::vector<std::string> expand_hostlist(std::string_view text, std::string const& where);

/// `9 nodes: n1, n2, n3 … login1`.
std::string hosts_in_words(std::vector<std::string> const& names);

}  // namespace sluice::policy
