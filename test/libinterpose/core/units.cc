// SPDX-License-Identifier: Apache-2.0
// What people write is read exactly, refused with a place and a reason, and written back unchanged.
#include "libinterpose/core/units.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>
#include <string>

using namespace sluice::core;

namespace {

constexpr std::uint64_t s = sluice::second_ns;

std::string text(short_text const& t) { return std::string(t.view()); }

}  // namespace

TEST_CASE("amounts", "[units]") {
  CHECK(parse_amount("0").value == amount{0, false});
  CHECK(parse_amount("200MiB").value == amount{200ull << 20, true});
  CHECK(parse_amount("1MB").value == amount{1'000'000, true});
  CHECK(parse_amount("7B").value == amount{7, true});
  CHECK(parse_amount("5k").value == amount{5000, false});
  CHECK(parse_amount("5K").value == amount{5000, false});
  CHECK(parse_amount("1.5k").value == amount{1500, false});
  CHECK(parse_amount("0.5Ki").value == amount{512, false});
  CHECK(parse_amount("1.25TiB").value == amount{1374389534720, true});
  CHECK(parse_amount("3Gi").value == amount{3ull << 30, false});
  CHECK(parse_amount("2G").value == amount{2'000'000'000, false});
  CHECK(parse_amount("2T").value == amount{2'000'000'000'000, false});
  CHECK(parse_amount("1.4").value == amount{1, false});
  CHECK(parse_amount("1.5").value == amount{2, false});
  CHECK(parse_amount("18446744073709551615").value == amount{~0ull, false});
}

TEST_CASE("rates are exact fractions", "[units]") {
  CHECK(parse_rate("1000/s").value == rate{1000, s, false});
  CHECK(parse_rate("5k/s").value == rate{5000, s, false});
  CHECK(parse_rate("200MiB/s").value == rate{200ull << 20, s, true});
  CHECK(parse_rate("10/min").value == rate{10, 60 * s, false});
  CHECK(parse_rate("1.5/h").value == rate{15, 36'000 * s, false});
  CHECK(parse_rate("0.001/s").value == rate{1, 1000 * s, false});
  CHECK(parse_rate("1.50k").value == rate{1500, s, false});
  CHECK(parse_rate("0").value == rate{0, s, false});
  CHECK(parse_rate("1.1MiB/s").value == rate{11534336, 10 * s, true});
}

TEST_CASE("what is refused says where and why", "[units]") {
  struct bad {
    char const* text;
    std::size_t at;
    char const* reason;
  };
  bad const rates[] = {{"", 0, "expected a digit"},
                       {"k/s", 0, "expected a digit"},
                       {"-1/s", 0, "expected a digit"},
                       {"1./s", 2, "expected a digit"},
                       {".5/s", 0, "expected a digit"},
                       {" 1/s", 0, "expected a digit"},
                       {"1 /s", 1, "unknown suffix"},
                       {"1m/s", 1, "unknown suffix"},
                       {"1kk/s", 2, "unknown suffix"},
                       {"1MiBB", 4, "unknown suffix"},
                       {"1e3/s", 1, "unknown suffix"},
                       {"1/", 2, "expected s, min or h"},
                       {"1/day", 2, "expected s, min or h"},
                       {"1/s ", 2, "expected s, min or h"},
                       {"0.1234567891/s", 11, "too many digits after the point"},
                       {"18446744073709551616/s", 19, "number too large"},
                       {"99999999999T/s", 11, "number too large"}};
  for (bad const& b : rates) {
    INFO(b.text);
    auto r = parse_rate(b.text);
    REQUIRE_FALSE(r.ok());
    CHECK(std::string(r.reason) == b.reason);
    CHECK(r.error_at == b.at);
  }
  CHECK_FALSE(parse_amount("5k/s").ok());
  CHECK_FALSE(parse_amount("5x").ok());
  CHECK_FALSE(parse_amount(std::string_view("5\0", 2)).ok());
}

TEST_CASE("amounts and rates are written in their shortest exact form", "[units]") {
  CHECK(text(format_decimal({209715200, 0, true})) == "200MiB");
  CHECK(text(format_decimal({1'000'000, 0, true})) == "1MB");
  CHECK(text(format_decimal({1048577, 0, true})) == "1048577B");
  CHECK(text(format_decimal({1500, 0, false})) == "1.5k");
  CHECK(text(format_decimal({1024, 0, false})) == "1024");
  CHECK(text(format_decimal({0, 0, false})) == "0");
  CHECK(text(format_decimal({~0ull, 0, false})) == "18446744073709551615");
  CHECK(text(format_rate({1000, s, false})) == "1k/s");
  CHECK(text(format_rate({15, 10 * s, false})) == "1.5/s");
  CHECK(text(format_rate({10, 60 * s, false})) == "10/min");
  CHECK(text(format_rate({1, 36'000 * s, false})) == "0.1/h");
  CHECK(text(format_rate({1, 3 * s, false})) == "0.333/s");
  CHECK(text(format_rate({1, 0, false})) == "0/s");
  CHECK(text(format_rate({~0ull, 7, false})).size() < 40);
}

TEST_CASE("what is written is read back unchanged", "[units]") {
  std::mt19937_64 random(99);
  for (int i = 0; i < 20'000; ++i) {
    std::uint64_t units = random() >> (random() % 64);
    if (i % 3 == 0) units = (units % 1000) << (10 * (random() % 5));
    if (i % 3 == 1) units = (units % 1000) * power_of_ten(int(random() % 15));
    bool const bytes = random() % 2 == 0;
    amount const a{units, bytes};
    INFO(text(format_decimal({a.units, 0, a.is_bytes})));
    REQUIRE(parse_amount(format_decimal({a.units, 0, a.is_bytes}).view()).value == a);
    std::string written = std::to_string(units % 100000) + "." + std::to_string(random() % 1000) +
                          suffixes[random() % 8].text.data() + (bytes ? "B/min" : "/h");
    auto const r = parse_rate(written);
    INFO(written << " " << text(format_rate(r.value)));
    REQUIRE(r.ok());
    REQUIRE(parse_rate(format_rate(r.value).view()).value == r.value);
  }
}

TEST_CASE("any text is survived", "[units]") {
  std::mt19937_64 random(7);
  std::string const alphabet = "0123456789.kMGTiB/smnh -+e";
  for (int i = 0; i < 50'000; ++i) {
    std::string t;
    for (auto n = random() % 30; n != 0; --n) t += alphabet[random() % alphabet.size()];
    auto r = parse_rate(t);
    REQUIRE((r.ok() || r.error_at <= t.size()));
    auto a = parse_amount(t);
    REQUIRE((a.ok() || a.error_at <= t.size()));
  }
}

TEST_CASE("rates become bucket rates and come back", "[units]") {
  std::uint64_t q = 0;
  REQUIRE(bucket_rate(parse_rate("1000/s").value, unit_kind::ops, q));
  CHECK(per_second(q, unit_kind::ops) == Approx(1000));
  REQUIRE(bucket_rate(parse_rate("200MiB/s").value, unit_kind::bytes, q));
  CHECK(per_second(q, unit_kind::bytes) == Approx(209715200));
  REQUIRE(bucket_rate(parse_rate("1/min").value, unit_kind::ops, q));
  CHECK(per_second(q, unit_kind::ops) == Approx(1 / 60.0));
  REQUIRE(bucket_rate(parse_rate("1.5k/s").value, unit_kind::vops, q));
  CHECK(per_second(q, unit_kind::vops) == Approx(1500));
  REQUIRE(bucket_rate(parse_rate("0/s").value, unit_kind::ops, q));
  CHECK(q == 0);
  CHECK_FALSE(bucket_rate(parse_rate("20G/s").value, unit_kind::ops, q));
  CHECK_FALSE(bucket_rate(parse_rate("18T/s").value, unit_kind::ops, q));
  CHECK_FALSE(bucket_rate(parse_rate("0.000000001/h").value, unit_kind::bytes, q));
  static_assert(parse_rate("1.5k/s").value.units == 1500);
}
