// SPDX-License-Identifier: Apache-2.0
#include "verbs/views/sentences.h"

#include <catch2/catch.hpp>
#include <string>

using namespace sluice;

namespace {

std::string said(verbs::stream_view const& s, bool is_enforced) {
  verbs::job_view job;
  job.streams = {s};
  verbs::job_details details;
  details.is_enforced = is_enforced;
  std::string all;
  for (auto const& line : verbs::explain(job, details, nullptr, 0)) all += line + "\n";
  return all;
}

}  // namespace

TEST_CASE("explain: what a policy that is not enforced would hold back", "[verbs]") {
  verbs::stream_view s;
  s.supply = "metadata@scratch";
  s.granted = 20'000'000;  // thousandths
  s.served = 169'000'000;
  CHECK(said(s, true).find("would wait") == std::string::npos);
  s.would_delay = s.served - s.granted;
  CHECK_THAT(said(s, false),
             Catch::Contains("it may use 20k/s and used 169k/s; were it held to that, 149k/s "
                             "would wait. No request waited."));
}
