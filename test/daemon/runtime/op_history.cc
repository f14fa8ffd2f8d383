// SPDX-License-Identifier: Apache-2.0
// What a daemon remembers of each job by op: sums that stay whole, room that stays bounded, who may
// read, and what comes out over the local socket.
#include "runtime/op_history.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "base/error.h"
#include "lib/seeds.h"
#include "local/local.h"
#include "runtime/history_rows.h"

using namespace sluice;
using namespace sluice::runtime;

namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr history_reader everybody = {}, root = {true, true, 0}, ann = {false, true, 1001};

op_look look_of(std::string_view job, std::string_view op, double amount, uid_t uid = 1001) {
  return {job, "gold", op, uid, op_unit::operations, amount};
}

bool find(op_history const& h, history_reader const& who, std::string const& job,
          std::string const& op, bool fine, op_row& out) {
  for (std::size_t i = 0; i < h.size(); ++i)
    if (h.read(i, who, fine, out) && out.name.job == job && out.op == op) return true;
  return false;
}

double sum(op_row const& row) {
  return std::accumulate(row.done.begin(), row.done.end(), row.open,
                         [](double a, double b) { return a + (std::isnan(b) ? 0 : b); });
}

/// Four looks a second.
void run(op_history& h, std::int64_t from_s, int seconds, double per_s, char const* job = "a") {
  for (int i = 0; i < seconds * 4; ++i) {
    std::int64_t const now = from_s * second + i * second / 4;
    h.begin(now, double(now) / 1e9 + 5000);
    h.put(look_of(job, "open", per_s / 4));
    h.end();
  }
}

}  // namespace

TEST_CASE("op history: seconds, then tens of seconds", "[history]") {
  op_history h;
  run(h, 100, 25, 40);
  op_row row;
  REQUIRE(find(h, root, "a", "open", true, row));
  REQUIRE(row.done.size() == 24);
  for (std::size_t i = 1; i < row.done.size(); ++i) CHECK(row.done[i] == Approx(40));
  CHECK(row.is_live);
  CHECK(row.end_unix_s == Approx(5124));
  REQUIRE(find(h, root, "a", "open", false, row));
  REQUIRE(row.done.size() == 2);
  CHECK(row.done[1] == Approx(400));
  CHECK(row.end_unix_s == Approx(5120));
  run(h, 125, 4000, 7);
  REQUIRE(find(h, root, "a", "open", true, row));
  CHECK(row.done.size() == history::fine_points);
  REQUIRE(find(h, root, "a", "open", false, row));
  CHECK(row.done.size() == history::coarse_points);
}

TEST_CASE("op history: whenever it is looked, the sum is what was put", "[history]") {
  test::for_seeds(200, [](std::mt19937_64& random) {
    op_history h;
    double put = 0;
    std::int64_t now = 100 * second;
    h.begin(now, 0);
    h.end();
    for (int i = 0; i < 60; ++i) {
      now += static_cast<std::int64_t>(random() % (i % 20 == 0 ? 9'000'000'000 : 900'000'000));
      h.begin(now, 0);
      auto const amount = static_cast<double>(random() % 1000);
      h.put(look_of("a", "open", amount));
      h.end();
      put += amount;
    }
    op_row row;
    REQUIRE(find(h, root, "a", "open", false, row));
    CHECK(sum(row) == put);
    REQUIRE(find(h, root, "a", "open", true, row));
    CHECK(sum(row) == put);
    // Late by whole seconds: what came is spread, and no second is unknown.
    for (double v : row.done) CHECK_FALSE(std::isnan(v));
  });
}

TEST_CASE("op history: time in the calls has a row of its own and keeps its fractions",
          "[history]") {
  op_history h;
  for (int i = 0; i < 3; ++i) {  // one look in three seconds
    h.begin((100 + i * 3) * second, 5100 + i * 3);
    h.put(look_of("a", "open", 90));
    op_look took = look_of("a", "open", 0.3);
    took.unit = op_unit::seconds;
    h.put(took);
    h.end();
  }
  auto const answer = answer_op_history(&h, root, {{"interval", 1}});
  REQUIRE(answer["rows"].size() == 2);
  CHECK(answer["rows"][0]["unit"] == "ops");
  nlohmann::json const& row = answer["rows"][1];
  CHECK(row["unit"] == "s");
  CHECK(row["op"] == "open");
  CHECK(row["done_sum"].back() == 0);
  double sum_s = 0;
  for (auto const& v : row["done_sum"]) sum_s += v.is_number() ? v.get<double>() : 0;
  CHECK(sum_s == Approx(0.9));
  CHECK(row["done_sum"][row["done_sum"].size() - 2].get<double>() == Approx(0.1));
}

TEST_CASE("op history: after its end a job is not known, an hour later forgotten", "[history]") {
  op_history h;
  run(h, 100, 5, 8, "short");
  run(h, 105, 20, 8, "other");
  op_row row;
  REQUIRE(find(h, root, "short", "open", true, row));
  CHECK_FALSE(row.is_live);
  CHECK(std::isnan(row.done.back()));
  CHECK(row.done[2] == Approx(8));
  run(h, 3800, 2, 8, "other");
  CHECK_FALSE(find(h, root, "short", "open", true, row));
  CHECK(find(h, root, "other", "open", true, row));
}

TEST_CASE("op history: no row without something done, no more rows than there is room",
          "[history]") {
  op_history h;
  h.begin(100 * second, 0);
  h.put(look_of("a", "open", 0));
  h.end();
  CHECK(h.size() == 0);
  for (int turn = 0; turn < 3; ++turn) {
    h.begin((101 + turn * 3) * second, 0);
    for (std::size_t i = 0; i < op_history::most_rows + 100; ++i)
      h.put(look_of("job" + std::to_string(turn) + "-" + std::to_string(i), "open", 1));
    h.end();
    h.begin((102 + turn * 3) * second, 0);
    h.end();
    CHECK(h.size() == op_history::most_rows);
  }
  h.begin(200 * second, 0);
  h.put(look_of("last", "open", 1));
  for (std::size_t i = 0; i < op_history::most_rows; ++i)
    h.put(look_of("job2-" + std::to_string(i), "open", 1));
  h.end();
  CHECK(h.left_out() == 1);
  op_row row;
  CHECK(find(h, root, "last", "open", true, row));
  CHECK_FALSE(find(h, root, "job0-1", "open", true, row));
}

TEST_CASE("op history: only its owner and an operator see a job's", "[history]") {
  op_history h;
  h.begin(100 * second, 0);
  h.put(look_of("his", "open", 1, 1001));
  h.put(look_of("hers", "open", 1, 1002));
  h.end();
  op_row row;
  CHECK(find(h, ann, "his", "open", true, row));
  CHECK_FALSE(find(h, ann, "hers", "open", true, row));
  CHECK_FALSE(find(h, everybody, "his", "open", true, row));
  CHECK(find(h, root, "hers", "open", true, row));
}

TEST_CASE("op history: asked over the local socket, in pages", "[history]") {
  op_history h;
  for (int s = 0; s < 700; ++s) {
    h.begin((100 + s) * second, 5000 + s);
    for (char const* job : {"a", "b", "c", "d", "e", "f"})
      for (char const* op : {"open", "stat", "read", "unlink"}) h.put(look_of(job, op, 1234.567));
    h.end();
  }
  std::size_t rows = 0, pages = 0;
  nlohmann::json from = 0;
  while (!from.is_null()) {
    auto const answer = answer_op_history(&h, ann, {{"interval", 1}, {"from", from}});
    CHECK(answer.dump().size() < local::most_bytes);
    rows += answer["rows"].size();
    for (auto const& row : answer["rows"])
      CHECK(row["done_sum"].size() == history::fine_points + 1);
    from = answer["next"];
    REQUIRE(++pages < 40);
  }
  CHECK(rows == 24);
  CHECK(pages > 1);
  auto const one = answer_op_history(&h, ann, {{"job", "1001@c"}});
  CHECK(one["rows"].size() == 4);
  CHECK(one["rows"][0]["job"] == "c");
  CHECK(one["rows"][0]["unit"] == "ops");
  CHECK_THROWS_AS(answer_op_history(&h, ann, {{"interval", 5}}), error);
  CHECK_THROWS_AS(answer_op_history(nullptr, ann, nlohmann::json::object()), error);
}
