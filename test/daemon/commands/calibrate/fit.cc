// SPDX-License-Identifier: Apache-2.0
// From rates to costs: the disk of known speed, what makes a cost unstable, the floor, and what was
// not measured.
#include "commands/calibrate/fit.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "commands/calibrate/digest.h"
#include "commands/calibrate/sample.h"
#include "commands/calibrate/state.h"

using namespace sluice;
using namespace sluice::calibrate;
using Catch::Matchers::Contains;

namespace {

abilities able() { return {true, true, 1u << 30, true}; }

/// A disk that does so many requests and bytes per second.
double rate_of(work const& w) {
  if (!w.moves_bytes()) return 40'000;
  double const bytes = 200.0 * 1024 * 1024;
  return std::min(8000.0, bytes / static_cast<double>(w.bytes));
}

sample sample_of(step const& s, unsigned round, double times = 1) {
  sample out = {s.id, round, 8, {}, false, {}};
  for (work const& w : s.works)
    out.groups.push_back({rate_of(w) * times / static_cast<double>(s.works.size()), 100, 900});
  return out;
}

std::vector<sample> all_samples(std::vector<step> const& plan) {
  std::vector<sample> out;
  for (step const& s : plan)
    for (unsigned round = 0; round < s.rounds; ++round) out.push_back(sample_of(s, round));
  return out;
}

sample& find(std::vector<sample>& all, std::string const& id, unsigned round) {
  for (sample& s : all)
    if (s.step == id && s.round == round) return s;
  FAIL(id);
  return all[0];
}

double cost(policy::cost_curve const& curve, std::uint64_t bytes) {
  for (auto const& p : curve)
    if (p.bytes == bytes) return p.cost;
  return -1;
}

}  // namespace

TEST_CASE("calibrate fit: a disk of known speed has its analytic costs", "[calibrate]") {
  auto const plan = plan_of(able());
  auto const c = fit(plan, all_samples(plan));
  CHECK(c.max_vops == Approx(8000));
  CHECK(cost(c.read[1], 4096) == Approx(1));
  CHECK(cost(c.read[1], 65536) == Approx(2.5));
  CHECK(cost(c.write[1], 262144) == Approx(10));
  CHECK(cost(c.write[1], 4194304) == Approx(160));
  for (auto const& p : c.read[1]) CHECK_FALSE(p.how.is_unstable);
  REQUIRE_FALSE(c.ops.empty());
  CHECK(c.ops[0].cost == Approx(0.2));
  CHECK(c.provisionable_vops == Approx(8000));
  CHECK(policy::parse_cost_file(policy::cost_file_text(c), "c").max_vops == 8000);
}

TEST_CASE("calibrate fit: rounds that differ make a cost unstable", "[calibrate]") {
  auto const plan = plan_of(able());
  auto samples = all_samples(plan);
  find(samples, "write/aligned/65536", 1).groups[0].per_s *= 1.12;
  find(samples, "read/aligned/65536", 1).groups[0].per_s *= 1.08;
  find(samples, "write/aligned/4194304", 0).is_thin = true;
  auto const c = fit(plan, samples);
  CHECK(c.max_vops == Approx(8000));
  for (auto const& p : c.write[1])
    CHECK(p.how.is_unstable == (p.bytes == 65536 || p.bytes == 4194304));
  for (auto const& p : c.read[1]) CHECK_FALSE(p.how.is_unstable);
  CHECK_THAT(digest_of(c, "c").said[2], Contains("2 of "));
}

TEST_CASE("calibrate fit: a wild point is not the measure of all", "[calibrate]") {
  auto const plan = plan_of(able());
  auto samples = all_samples(plan);
  find(samples, "write/aligned/512", 0).groups[0].per_s = 90'000;
  CHECK(fit(plan, samples).max_vops == Approx(8000));
  // Where none can be trusted, all costs are unstable.
  for (sample& s : samples)
    if (s.round == 1) s.groups[0].per_s *= 1.5;
  auto const c = fit(plan, samples);
  for (auto const& p : c.read[1]) CHECK(p.how.is_unstable);
  for (auto const& o : c.ops) CHECK(o.how.is_unstable);
}

TEST_CASE("calibrate fit: the floor is what nearly all loads that meet still get", "[calibrate]") {
  auto const plan = plan_of(able());
  auto samples = all_samples(plan);
  for (sample& s : samples)
    if (s.step.starts_with("grid/")) {
      double const part = s.step == "grid/50/4096/65536" ? 0.1 : 0.6;
      step const* const of =
          &*std::find_if(plan.begin(), plan.end(), [&](step const& t) { return t.id == s.step; });
      s = sample_of(*of, 0, 2 * part);
      for (std::size_t i = 0; i < 2; ++i)
        if ((of->readers == 1 && i == 1) || (of->readers == 0 && i == 0)) s.groups[i].per_s = 0;
    }
  auto const c = fit(plan, samples);
  CHECK(c.grid.size() == 8);
  CHECK(c.provisionable_vops < 0.6 * 8000);
  CHECK(c.provisionable_vops > 0.1 * 8000);  // not hostage to one bad moment
}

TEST_CASE("calibrate fit: tenants are compared with half of the floor", "[calibrate]") {
  auto const plan = plan_of(able());
  auto samples = all_samples(plan);
  for (sample& s : samples)
    if (s.step == "pair/rr/4096/65536") {
      s.groups[0].per_s = 4000 * 0.9;  // the floor is 8000 VOP/s
      s.groups[1].per_s = 4000 / 2.5;
    }
  auto const c = fit(plan, samples);
  REQUIRE(c.pairs.size() == 2);
  CHECK(c.pairs[0].ratio[0] == Approx(0.9));
  CHECK(c.pairs[0].ratio[1] == Approx(1));
  CHECK(c.pairs[0].mmr == Approx(0.9));
}

TEST_CASE("calibrate fit: what was not measured is not in it", "[calibrate]") {
  auto const plan = plan_of(able());
  CHECK(fit(plan, {}).max_vops == 0);
  auto samples = all_samples(plan);
  std::erase_if(samples, [](sample const& s) {
    return s.step.starts_with("grid/") || s.step == "op/open" ||
           (s.step.starts_with("read/unaligned/") && !s.step.ends_with("/4096"));
  });
  for (sample& s : samples)
    if (s.step == "op/mknod") s = {s.step, s.round, 0, {}, false, "Operation not supported"};
  auto const c = fit(plan, samples);
  CHECK(c.read[0].empty());  // one point is no curve
  CHECK(c.grid.empty());
  CHECK(c.provisionable_vops == Approx(4000));  // half, as nobody looked
  for (auto const& o : c.ops) CHECK((o.op != "open" && o.op != "mknod"));
  CHECK(core::validate(policy::to_table(c)) == nullptr);
}

TEST_CASE("calibrate state: samples are read back, up to the first damage", "[calibrate]") {
  sample const whole = {"read/aligned/4096", 2, 16, {{1234.5, 10, 20.5}}, true, {}};
  sample const none = {"op/mknod", 0, 4, {}, false, "Operation not permitted"};
  std::string const text = "about\n" + sample_line(whole) + "\n" + sample_line(none) + "\n";
  auto s = parse_state(text);
  CHECK(s.about == "about");
  REQUIRE(s.samples.size() == 2);
  CHECK(s.samples[0].step == whole.step);
  CHECK(s.samples[0].threads == 16);
  CHECK(s.samples[0].is_thin);
  CHECK_FALSE(s.samples[1].is_thin);
  CHECK(s.samples[0].groups[0].per_s == 1234.5);
  CHECK(s.samples[1].missing == none.missing);
  CHECK(find_sample(s.samples, "read/aligned/4096", 2) == &s.samples[0]);
  CHECK(find_sample(s.samples, "read/aligned/4096", 1) == nullptr);
  for (std::size_t cut = 0; cut < text.size(); ++cut)
    CHECK(parse_state(text.substr(0, cut)).samples.size() <= 2);
  s = parse_state("about\nnonsense\n" + sample_line(whole) + "\n");
  CHECK(s.samples.empty());
  for (char const* bad :
       {"{}", "[]", "{\"step\":1}", R"({"step":"a","round":-1,"threads":1,"rates":[]})",
        R"({"step":"a","round":0,"threads":1,"rates":[[1,2]]})",
        R"({"step":"a","round":0,"threads":1,"rates":[[-1,2,3]]})",
        R"({"step":"a","round":1e300,"threads":1,"rates":[]})"})
    CHECK_FALSE(parse_sample(bad));
}

TEST_CASE("calibrate state: only directories of our name are taken for ours", "[calibrate]") {
  auto const left = [](std::string const& path) {
    return parse_state("about\n{\"directory\":\"" + path + "\",\"inode\":7}\n").directories.size();
  };
  CHECK(left("/s/.sluice-calibrate.aB3xYz") == 1);
  CHECK(left("/home/somebody") == 0);
  CHECK(left("/s/.sluice-calibrate.x/..") == 0);
}

TEST_CASE("calibrate fit: the fastest point alone is not one VOP", "[calibrate]") {
  auto const plan = plan_of(able());
  auto samples = all_samples(plan);
  for (unsigned round = 0; round < 2; ++round)
    find(samples, "write/aligned/512", round).groups[0].per_s = 8700;  // both rounds were lucky
  CHECK(fit(plan, samples).max_vops == Approx(8000));
}

TEST_CASE("calibrate fit: a slow point is not one VOP where faster ones are unstable",
          "[calibrate]") {
  auto const plan = plan_of(able());
  auto samples = all_samples(plan);
  for (char const* id : {"read/aligned/512", "read/aligned/4096", "read/aligned/16384",
                         "write/aligned/512", "write/aligned/4096", "write/aligned/16384"})
    find(samples, id, 1).groups[0].per_s *= 1.5;
  auto const c = fit(plan, samples);
  CHECK(c.max_vops == Approx(10000));
  for (auto const& p : c.read[1]) CHECK(p.how.is_unstable);
}
