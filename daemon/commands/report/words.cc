// SPDX-License-Identifier: Apache-2.0
#include "commands/report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

namespace sluice::report {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

/// Length of the UTF-8 sequence that begins here; 0: there is none.
std::size_t sequence(std::string_view text) {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t const size = byte(0) < 0x80       ? 1
                           : byte(0) >> 5 == 6  ? 2
                           : byte(0) >> 4 == 14 ? 3
                           : byte(0) >> 3 == 30 ? 4
                                                : 0;
  if (size == 0 || size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if (byte(i) >> 6 != 2) return 0;
  return size;
}

/// Control characters, also those of Unicode that turn the direction of writing or are not seen.
bool is_hidden(std::string_view one) {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(one[i]); };
  if (one.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (one.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (one.size() != 3 || byte(0) != 0xe2) return one == "\xEF\xBB\xBF";
  unsigned const low = (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
  return (low >= 0x0b && low <= 0x0f) || (low >= 0x28 && low <= 0x2e) ||
         (low >= 0x60 && low <= 0x6f);
}

template <typename Put>
void characters(std::string_view text, std::size_t most, Put const& put) {
  std::size_t taken = 0;
  while (!text.empty()) {
    if (taken++ == most) {
      put("\xE2\x80\xA6");
      return;
    }
    std::size_t const size = sequence(text);
    std::string_view const one = text.substr(0, std::max<std::size_t>(1, size));
    put(size == 0 || is_hidden(one) ? replacement : one);
    text.remove_prefix(one.size());
  }
}

/// Three digits and a letter.
std::string scaled(double value, double step, std::initializer_list<char const*> letters) {
  auto letter = letters.begin();
  while (value >= step * 0.9995 && letter + 1 != letters.end()) value /= step, ++letter;
  int const digits = value >= 99.95 || value == std::floor(value) ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, digits, *letter);
}

std::string grouped(double whole) {
  std::string out = fmt::format("{:.0f}", whole);
  for (std::size_t at = out.size(); at > 3;) out.insert(at -= 3, "\xE2\x80\xAF");
  return out;
}

}  // namespace

std::string html(std::string_view text, std::size_t most) {
  std::string out;
  characters(text, most, [&](std::string_view one) {
    switch (one[0]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '`':
        out += "&#96;";
        break;
      default:
        out += one;
    }
  });
  return out;
}

std::string plain(std::string_view text, std::size_t most) {
  std::string out;
  characters(text, most, [&](std::string_view one) { out += one; });
  return out;
}

std::string count_text(double count) {
  if (std::isnan(count)) return "-";
  if (count < 10'000 && count == std::floor(count)) return grouped(count);
  return scaled(count, 1000, {"", " k", " M", " G", " T", " P", " E"});
}

std::string amount_text(double amount, std::string_view unit) {
  if (std::isnan(amount)) return "-";
  if (unit == "bytes")
    return scaled(amount, 1024, {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"});
  if (unit == "s") return seconds_text(amount);
  if (unit == "ns") return seconds_text(amount / 1e9);
  if (unit == "vops") return count_text(amount) + " VOP";
  return count_text(amount);
}

std::string rate_text(double rate, std::string_view unit) {
  if (std::isnan(rate)) return "-";
  if (unit == "threads") return count_text(rate) + " threads";
  if (unit == "part") return share_text(rate, 1);
  if (unit == "time") return seconds_text(rate);
  return amount_text(rate, unit) + "/s";
}

std::string seconds_text(double seconds) {
  if (std::isnan(seconds)) return "-";
  if (seconds == 0) return "0 s";
  if (seconds < 1) return scaled(seconds * 1e9, 1000, {" ns", " us", " ms"});
  if (seconds < 100) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200) return grouped(std::round(seconds)) + " s";
  return seconds < 2 * 86400 ? fmt::format("{:.4g} h", seconds / 3600)
                             : fmt::format("{:.4g} d", seconds / 86400);
}

std::string clock_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e12)) return "-";
  auto const whole = static_cast<long long>(seconds + 0.5);
  long long const days = whole / 86400;
  std::string const clock =
      fmt::format("{}:{:02}:{:02}", whole / 3600 % 24, whole / 60 % 60, whole % 60);
  return days > 0 ? fmt::format("{} d {}", days, clock) : clock;
}

std::string share_text(double part, double whole) {
  if (!(whole > 0)) return "-";
  double const percent = 100 * part / whole;
  return fmt::format("{:.{}f} %", percent, percent >= 9.95 || percent == 0 ? 0 : 1);
}

std::string date_text(double unix_s) {
  if (!(unix_s >= 0 && unix_s < 2.5e11)) return "-";
  auto const when = static_cast<std::time_t>(unix_s);
  std::tm utc = {};
  char text[40] = {};
  if (gmtime_r(&when, &utc) != nullptr)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

std::string sources_text(std::vector<std::pair<std::string, double>> const& sources) {
  double all = 0;
  for (auto const& [source, bytes] : sources) all += bytes;
  std::string out;
  for (auto const& [source, bytes] : sources) {
    if (all > 0 && bytes == 0) continue;
    std::string const part = all > 0 && bytes < all ? " " + share_text(bytes, all) : "";
    out += (out.empty() ? "" : ", ") + source + part;
  }
  return out.empty() ? "-" : out;
}

}  // namespace sluice::report
