// SPDX-License-Identifier: Apache-2.0
// Patterns mean what fnmatch(3) means by them (as far as both know them), and cost no more than the
// product of the lengths.
#include "libinterpose/core/glob.h"

#include <fnmatch.h>
#include <time.h>

#include <catch2/catch.hpp>
#include <random>
#include <string>

using sluice::core::glob_match;

TEST_CASE("patterns", "[glob]") {
  struct row {
    char const* pattern;
    char const* text;
    bool matches;
  };
  row const rows[] = {{"", "", true},
                      {"", "a", false},
                      {"*", "", true},
                      {"***", "abc", true},
                      {"?", "", false},
                      {"?", "a", true},
                      {"/scratch/*", "/scratch/a/b", true},
                      {"/scratch/*", "/scratch", false},
                      {"*.h5", "/data/x.h5", true},
                      {"*.h5", "/data/x.h55", false},
                      {"a*b*c", "aXbXbXc", true},
                      {"a*b*c", "aXbXbX", false},
                      {"rank[0-9]", "rank7", true},
                      {"rank[0-9]", "rankx", false},
                      {"rank[!0-9]", "rankx", true},
                      {"rank[^0-9]", "rank3", false},
                      {"[]]", "]", true},
                      {"[!]]", "]", false},
                      {"[a-]", "-", true},
                      {"[]-a]", "^", true},
                      {"[z-a]", "m", false},
                      {"[", "[", true},
                      {"[]", "[]", true},
                      {"a[b", "a[b", true},
                      {"[!]", "[!]", true},
                      {"\\*", "*", true},
                      {"\\*", "a", false},
                      {"\\", "\\", true},
                      {"[\\]", "\\", true},
                      {"x[a-c]*z", "xbz", true}};
  for (row const& r : rows) {
    INFO(r.pattern << " on " << r.text);
    CHECK(glob_match(r.pattern, r.text) == r.matches);
  }
  CHECK(glob_match(std::string_view("a\0*", 3), std::string_view("a\0b", 3)));
  CHECK(glob_match("[\xf0-\xff]", "\xf8"));
}

TEST_CASE("agreement with fnmatch", "[glob]") {
  std::mt19937 random(3);
  std::string const in_pattern = "ab*?[]-!a*";
  for (int i = 0; i < 200'000; ++i) {
    std::string pattern;
    std::string text;
    for (auto n = random() % 8; n != 0; --n) pattern += in_pattern[random() % in_pattern.size()];
    for (auto n = random() % 8; n != 0; --n) text += "ab]-"[random() % 4];
    // A set that is never closed is where C libraries differ.
    auto const open = pattern.find('[');
    if (open != std::string::npos && pattern.find(']', open + 3) == std::string::npos) continue;
    if (pattern.find('[', open + 1) != std::string::npos && open != std::string::npos) continue;
    INFO(pattern << " on " << text);
    REQUIRE(glob_match(pattern, text) == (fnmatch(pattern.c_str(), text.c_str(), 0) == 0));
  }
}

TEST_CASE("hostile patterns stay cheap", "[glob]") {
  std::string const text(4000, 'a');
  std::string stars;
  std::string sets;
  for (int i = 0; i < 1000; ++i) {
    stars += "*a";
    sets += "*[";
  }
  std::string const patterns[] = {stars + "b",
                                  sets,
                                  sets + "]",
                                  sets + "b",
                                  "*" + std::string(2000, '[') + "]b",
                                  "*" + std::string(3000, 'a') + "b"};
  clock_t const from = clock();
  for (std::string const& p : patterns) CHECK_FALSE(glob_match(p, text));
  CHECK(double(clock() - from) / CLOCKS_PER_SEC < 2);
}
