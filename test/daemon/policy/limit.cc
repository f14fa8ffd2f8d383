// SPDX-License-Identifier: Apache-2.0
// The limit syntax: what is accepted, and that what is refused says why.
#include "policy/limit.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "core/request.h"

using namespace sluice;
using Catch::Matchers::Contains;

TEST_CASE("limit: operations, bytes, periods and targets") {
  auto const open = policy::parse_limit("open=1000/s");
  CHECK(open.name == "open");
  CHECK(open.ops == core::op_bit(core::op::open));
  CHECK(open.amount.unit == core::unit_kind::ops);
  CHECK(policy::per_second(open.amount.unit, open.amount.rate_q40) == 1000);
  CHECK(policy::rate_text(open.amount.unit, open.amount.rate_q40) == "1k/s");

  auto const data = policy::parse_limit("data=200MiB/s@/scratch");
  CHECK(data.name == "data@/scratch");
  CHECK(data.target == "/scratch");
  CHECK(data.amount.unit == core::unit_kind::bytes);
  CHECK(policy::rate_text(data.amount.unit, data.amount.rate_q40) == "200MiB/s");

  auto const slow = policy::parse_limit("metadata=90/min");
  CHECK(slow.ops == core::ops_of_selector("metadata"));
  CHECK(policy::per_second(slow.amount.unit, slow.amount.rate_q40) == 1.5);
  CHECK(policy::parse_limit("read=5k/s").amount.unit == core::unit_kind::ops);
  CHECK(policy::parse_limit("open=1/s@/a=b@c").target == "/a=b@c");
}

TEST_CASE("limit: 0 pauses, in the unit that fits") {
  CHECK(policy::parse_limit("open=0").amount.rate_q40 == 0);
  CHECK(policy::parse_limit("open=0").amount.unit == core::unit_kind::ops);
  CHECK(policy::parse_limit("data=0").amount.unit == core::unit_kind::bytes);
  CHECK(policy::rate_text(core::unit_kind::ops, 0) == "paused");
}

TEST_CASE("limit: what is wrong is named") {
  struct row {
    char const* text;
    char const* reason;
  };
  auto const& wrong = GENERATE(values<row>({{"open", "wanted SELECTOR[:ROLE]=AMOUNT"},
                                            {"=5/s", "wanted SELECTOR[:ROLE]=AMOUNT"},
                                            {"opne=5/s", "did you mean \"open\"?"},
                                            {"open=", "expected a digit"},
                                            {"open=-1/s", "expected a digit"},
                                            {"open=5/fortnight", "expected s, min or h"},
                                            {"open=5x/s", "unknown suffix"},
                                            {"open=5MB/s", "a limit in bytes is for data"},
                                            {"all=5MB/s", "a limit in bytes is for data"},
                                            {"data=5MB/s@", "nothing stands after the @"},
                                            {"open=99999999999999999999/s", "number too large"},
                                            {"open=1T/s", "too many operations"}}));
  CAPTURE(wrong.text);
  try {
    policy::parse_limit(wrong.text);
    FAIL("accepted");
  } catch (error const& e) {
    CHECK(e.status() == exit_usage);
    CHECK_THAT(e.what(), Contains(wrong.reason));
  }
}
