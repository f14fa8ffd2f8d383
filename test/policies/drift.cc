// SPDX-License-Identifier: Apache-2.0
// Whether a file system still gives what was measured: only when it is busy, and not for a moment.
#include "policies/drift.h"

#include <catch2/catch.hpp>

using namespace sluice::policies;

namespace {

constexpr std::uint64_t second = 1'000'000'000;

struct watched {
  drift by;
  std::int64_t now_ns = 1;

  watched() { by.use({400'000, 800'000, 4}); }  // 400 VOP/s whatever meets, 800 at most
  /// For so many seconds: what it gives, and how many calls are at it.
  drift_sign run(int seconds, rate served, double calls) {
    for (int i = 0; i < seconds * 10; ++i)
      by.look(served, static_cast<std::uint64_t>(calls * second / 10), now_ns += second / 10);
    return by.sign();
  }
};

}  // namespace

TEST_CASE("drift: of a device that is not busy nothing is said") {
  watched w;
  CHECK(w.run(60, 100'000, 1) == drift_sign::unknown);
  CHECK(w.by.given() == 0);
  CHECK(w.run(60, 0, 0) == drift_sign::unknown);
}

TEST_CASE("drift: a busy device gives the floor or more") {
  watched w;
  CHECK(w.run(2, 500'000, 8) == drift_sign::unknown);
  CHECK(w.run(10, 500'000, 8) == drift_sign::fits);
  CHECK(w.by.given() == Approx(500'000).epsilon(0.01));
  CHECK(w.run(10, 790'000, 8) == drift_sign::fits);
}

TEST_CASE("drift: it is told within seconds that it gives less, and that it is over") {
  watched w;
  CHECK(w.run(20, 500'000, 8) == drift_sign::fits);
  CHECK(w.run(2, 100'000, 16) == drift_sign::fits);  // a moment is none
  CHECK(w.run(12, 100'000, 16) == drift_sign::less);
  CHECK(w.run(30, 0, 0) == drift_sign::less);  // not busy: nothing new
  CHECK(w.run(20, 500'000, 8) == drift_sign::fits);
}

TEST_CASE("drift: more than the most is told, however few calls are at the device") {
  watched w;
  CHECK(w.run(20, 2'000'000, 0.1) == drift_sign::more);
  CHECK(w.by.given() == Approx(2'000'000).epsilon(0.01));
}

TEST_CASE("drift: absurd looks are survived") {
  watched w;
  w.by.look(unbounded, ~std::uint64_t{0}, w.now_ns += second);
  w.by.look(unbounded, ~std::uint64_t{0}, w.now_ns += second);
  w.by.look(1, 1, 1);  // time went back
  for (int i = 0; i < 20; ++i) w.by.look(unbounded, ~std::uint64_t{0}, w.now_ns += second);
  CHECK(w.by.sign() == drift_sign::more);
}
