// SPDX-License-Identifier: Apache-2.0
// Numbers in human units, and text that is safe inside a page. All text of a result file is a
// stranger's: it reaches a page only through html().
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::report {

/// For text and attributes: nothing in it ends an element, an attribute or a comment. Control
/// characters and what turns the direction of writing become visible marks; at most `most`
/// characters are kept.
std::string html(std::string_view text, std::size_t most = 400);

/// For a terminal: the same, without entities.
std::string plain(std::string_view text, std::size_t most = 400);

std::string count_text(double count);                           // 1 234, 12.3 k, 4.56 M
std::string amount_text(double amount, std::string_view unit);  // 12.3 k, 1.50 GiB, 3.2 s
/// 12.3 k/s, 1.50 GiB/s; of threads, part and time the value itself.
std::string rate_text(double rate, std::string_view unit);
std::string seconds_text(double seconds);           // 3.2 ms, 412 s, 3 600 s
std::string clock_text(double seconds);             // 0:06:52
std::string share_text(double part, double whole);  // 62 %; nothing of nothing: -
std::string date_text(double unix_s);               // 2026-11-21 12:03:04 UTC

/// `thread 97 %, log 3 %`: how a role was known, by bytes.
std::string sources_text(std::vector<std::pair<std::string, double>> const& sources);

}  // namespace sluice::report
