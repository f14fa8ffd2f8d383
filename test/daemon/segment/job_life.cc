// SPDX-License-Identifier: Apache-2.0
// When a job is over.
#include "segment/job_life.h"

#include <catch2/catch.hpp>

using namespace sluice::segment;

namespace {

constexpr std::int64_t s_ns = 1'000'000'000;

job_life found(job_life const& before, life_facts const& f, std::int64_t at_s10) {
  return next_life(before, f, at_s10 * s_ns / 10);
}

}  // namespace

TEST_CASE("a job is over when nobody was in it for a second", "[segment][life]") {
  life_facts nobody, somebody;
  somebody.has_process = true;
  job_life j = found({}, nobody, 100);
  CHECK(j.state == life_state::empty);
  CHECK(found(j, nobody, 110).state == life_state::empty);
  CHECK(found(j, somebody, 111).state == life_state::used);
  CHECK(found(j, nobody, 111).state == life_state::over);
  // Somebody was there meanwhile, so the second begins anew.
  j = found(found(j, somebody, 105), nobody, 106);
  CHECK(found(j, nobody, 111).state == life_state::empty);
  CHECK(found(j, nobody, 117).state == life_state::over);
}

TEST_CASE("whoever is in a job, or may come, keeps it", "[segment][life]") {
  for (bool life_facts::*who : {&life_facts::has_process, &life_facts::has_joiner,
                                &life_facts::is_held, &life_facts::has_step}) {
    life_facts f;
    f.*who = true;
    CHECK(is_used(f));
    CHECK(found({life_state::empty, 0}, f, 1000).state == life_state::used);
    f.is_scheduled = true;
    CHECK(found({life_state::over, 0}, f, 1000).state == life_state::used);
    f.is_damaged = true;  // its memory says nothing any more
    CHECK(found({}, f, 1000).state == life_state::over);
  }
}

TEST_CASE("a scheduler's job ends when it is said to", "[segment][life]") {
  life_facts f;
  f.is_scheduled = true;
  CHECK(found({}, f, 100).state == life_state::over);
}

TEST_CASE("what is over stays so until somebody comes", "[segment][life]") {
  CHECK(found({life_state::over, 0}, {}, 100).state == life_state::over);
}
