// SPDX-License-Identifier: Apache-2.0
// The history of a daemon: seconds and tens of them, sums that agree with all other sources, what
// is forgotten, who may read, and the doors of the dashboard.
#include "runtime/history.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "local/local.h"
#include "runtime/dashboard.h"
#include "runtime/history_rows.h"

using namespace sluice;
using namespace sluice::runtime;

namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr history_reader everybody = {}, root = {true, true, 0}, ann = {false, true, 1001};

history_look look_of(std::string_view job, float served, uid_t uid = 1001) {
  history_look l = {job, "gold", "metadata@s", uid, sluice::core::unit_kind::ops};
  l.did = {served, 0, 0, 0, served, 100, 0};
  return l;
}

std::size_t job_rows_of(history const& h, uid_t uid) {
  std::size_t found = 0;
  history_row row;
  for (std::size_t i = 0; i < h.size(); ++i)
    if (h.read(i, {false, true, uid}, true, false, row) && !row.name.job.empty()) ++found;
  return found;
}

/// One job, looked at ten times a second for so long.
void run(history& h, std::int64_t from_s, int seconds, float per_s, char const* job = "a") {
  for (int i = 0; i < seconds * 10; ++i) {
    std::int64_t const now = from_s * second + i * second / 10;
    h.begin(now, double(now) / 1e9 + 5000);
    h.put(look_of(job, per_s / 10));
    h.put_supply("metadata@s", sluice::core::unit_kind::ops, 1000);
    h.end();
  }
}

bool find(history const& h, history_reader const& who, std::string const& job, bool fine,
          history_row& out) {
  for (std::size_t i = 0; i < h.size(); ++i)
    if (h.read(i, who, fine, true, out) && out.name.job == job) return true;
  return false;
}

/// What was served in all points, the unfinished one too.
double sum_of(history_row const& row) {
  double sum = std::isnan(row.open.served) ? 0 : row.open.served;
  for (history_point const& p : row.points) sum += std::isnan(p.served) ? 0 : p.served;
  return sum;
}

}  // namespace

TEST_CASE("history: seconds, then tens of seconds", "[history]") {
  history h;
  run(h, 100, 25, 40);
  history_row row;
  REQUIRE(find(h, root, "a", true, row));
  CHECK(row.points.size() == 24);
  CHECK(row.points.back().served == 40);
  CHECK(row.points.back().demand == 4);
  CHECK(row.is_live);
  CHECK(row.end_unix_s == Approx(5124));
  REQUIRE(find(h, root, "a", false, row));
  CHECK(row.points.size() == 2);
  CHECK(row.interval_s == 10);
  CHECK(row.end_unix_s == Approx(5120));
  CHECK(row.points.back().served == 400);
}

TEST_CASE("history: ten minutes of seconds, an hour of tens", "[history]") {
  history h;
  run(h, 10, 4000, 7);
  history_row row;
  REQUIRE(find(h, root, "a", true, row));
  CHECK(row.points.size() == history::fine_points);
  REQUIRE(find(h, root, "a", false, row));
  CHECK(row.points.size() == history::coarse_points);
}

TEST_CASE("history: what was done while nobody looked is spread over that time", "[history]") {
  history h;
  run(h, 100, 3, 40);
  run(h, 108, 3, 40);  // stopped for five seconds
  history_row row;
  REQUIRE(find(h, root, "a", true, row));
  REQUIRE(row.points.size() == 10);
  CHECK(row.points[1].served == 40);
  CHECK(row.points[5].served <= 1);
  CHECK(sum_of(row) == 2 * 3 * 40);
}

TEST_CASE("history: a second in which more was wanted has no demand", "[history]") {
  history h;
  for (int i = 0; i < 30; ++i) {
    h.begin((100 + i / 10) * second + (i % 10) * second / 10, 0);
    auto l = look_of("a", 10);
    if (i > 10) l.did.demand = std::numeric_limits<float>::quiet_NaN(), l.did.blocked_s = 0.1f;
    h.put(l);
    h.end();
  }
  history_row row;
  REQUIRE(find(h, root, "a", true, row));
  CHECK(row.points[0].demand == 10);
  CHECK(std::isnan(row.points[1].demand));
  CHECK(row.points[1].blocked_s == Approx(1));
}

TEST_CASE("history: a limit is kept with the time in which it held", "[history]") {
  history h;
  for (int i = 0; i < 40; ++i) {
    h.begin((100 + i / 10) * second + (i % 10) * second / 10, 0);
    auto l = look_of("a", 10);
    if (i > 10 && i < 25) l.did.limit = 7;
    h.put(l);
    h.end();
  }
  history_row row;
  REQUIRE(find(h, root, "a", true, row));
  CHECK(std::isnan(row.points[0].limit));
  CHECK(row.points[1].limit == 7);
  CHECK(row.points[2].limit == 7);
  CHECK(std::isnan(row.open.limit));
  CHECK(std::isnan(row.limit));
  // Of ten seconds the last one that there was counts.
  for (int i = 0; i < 90; ++i) {
    h.begin((104 + i / 10) * second + (i % 10) * second / 10, 0);
    auto l = look_of("a", 10);
    if (i > 20 && i < 40) l.did.limit = 9;
    h.put(l);
    h.end();
  }
  REQUIRE(find(h, root, "a", false, row));
  CHECK(row.points.back().limit == 9);
}

TEST_CASE("history: an hour after its job a row goes", "[history]") {
  history h;
  run(h, 100, 2, 40, "short");
  run(h, 102, 2, 40, "other");
  history_row row;
  REQUIRE(find(h, root, "short", true, row));
  CHECK_FALSE(row.is_live);
  run(h, 3800, 1, 40, "other");
  CHECK_FALSE(find(h, root, "short", true, row));
  CHECK(find(h, root, "other", true, row));
}

TEST_CASE("history: no more rows than there is room", "[history]") {
  history h;
  for (int turn = 0; turn < 3; ++turn) {
    h.begin((100 + turn * 3) * second, 0);
    for (std::size_t i = 0; i < 2 * history::most_rows; ++i)
      h.put(look_of("job" + std::to_string(turn) + "-" + std::to_string(i), 1));
    h.end();
    CHECK(h.size() == history::most_rows);
    CHECK(h.left_out() >= history::most_rows);
  }
  // The last look's live ones took the place of those that had ended.
  history_row row;
  CHECK(find(h, root, "job2-0", true, row));
  CHECK_FALSE(find(h, root, "job0-1", true, row));
}

TEST_CASE("history: a user sees his own jobs, everybody the sums", "[history]") {
  history h;
  h.begin(100 * second, 0);
  h.put(look_of("his", 10, 1001));
  h.put(look_of("hers", 30, 1002));
  h.put_supply("metadata@s", sluice::core::unit_kind::ops, 1000);
  h.put_supply("data@s", sluice::core::unit_kind::bytes, 5);
  h.end();
  history_row row;
  CHECK(find(h, ann, "his", true, row));
  CHECK_FALSE(find(h, ann, "hers", true, row));
  CHECK_FALSE(find(h, everybody, "his", true, row));
  CHECK(find(h, root, "hers", true, row));
  unsigned supplies = 0, classes = 0;
  for (std::size_t i = 0; i < h.size(); ++i)
    if (h.read(i, everybody, true, true, row)) {
      CHECK(row.name.job.empty());
      (row.name.qos_class.empty() ? supplies : classes) += 1;
    }
  CHECK(supplies == 2);
  CHECK(classes == 1);
}

TEST_CASE("history: asked over the local socket, in pages", "[history]") {
  history h;
  for (int s = 0; s < 700; ++s) {
    h.begin((100 + s) * second, 5000 + s);
    for (char const* job : {"a", "b", "c", "d", "e", "f"}) h.put(look_of(job, 1234.567f));
    h.end();
  }
  std::size_t rows = 0, pages = 0;
  nlohmann::json from = 0;
  while (!from.is_null()) {
    auto const answer = answer_history(&h, ann, {{"interval", 1}, {"from", from}});
    CHECK(answer.dump().size() < local::most_bytes);
    rows += answer["rows"].size();
    from = answer["next"];
    REQUIRE(++pages < 20);
  }
  CHECK(rows == 8);  // six jobs, their class, their supply
  CHECK(pages > 1);
  CHECK(answer_history(&h, ann, {{"job", "c"}})["rows"].size() == 2);
  CHECK(answer_history(&h, ann, {{"job", "1001@c"}})["rows"].size() == 2);
  CHECK_THROWS_AS(answer_history(&h, ann, {{"interval", 5}}), error);
  CHECK_THROWS_AS(answer_history(nullptr, ann, nlohmann::json::object()), error);
}

TEST_CASE("dashboard: a key opens what its owner may see", "[history]") {
  keyring keys;
  std::string const first = keys.key_of(1001, 1001, false);
  CHECK(first.size() == 48);
  CHECK(keys.key_of(1001, 1001, false) == first);
  CHECK(keys.key_of(1002, 1002, false) != first);
  REQUIRE(keys.owner_of(first));
  CHECK(keys.owner_of(first)->uid == 1001);
  CHECK_FALSE(keys.owner_of(first)->sees_all);
  CHECK_FALSE(keys.owner_of(""));
  CHECK_FALSE(keys.owner_of(first.substr(1)));
  CHECK(keys.owner_of(keys.key_of(0, 0, true))->sees_all);
}

TEST_CASE("dashboard: a person with many uids takes no key from others", "[history]") {
  keyring keys;
  std::string const hers = keys.key_of(1001, 1001, false);
  for (uid_t uid = 100000; uid < 100000 + 2 * keyring::most_keys; ++uid)
    REQUIRE_FALSE(keys.key_of(uid, 1002, false).empty());
  CHECK(keys.key_of(1001, 1001, false) == hers);
  CHECK_FALSE(keys.key_of(0, 0, true).empty());
}

TEST_CASE("dashboard: names that anybody could own are not ours", "[history]") {
  for (char const* own :
       {"127.0.0.1:80", "127.0.0.1", "localhost", "localhost:9100", "[::1]:80", "10.1.2.3:80"})
    CHECK(is_own_host(own));
  for (char const* foreign :
       {"", ":80", "evil.example", "evil.example:80", "127.0.0.1.evil.example",
        "localhost.evil.example:1", "[::1", "[evil]:80", "127.0.0.1@evil.a"})
    CHECK_FALSE(is_own_host(foreign));
}

TEST_CASE("history: who has the most rows makes room, and pushes nobody out", "[history]") {
  history h;
  std::int64_t now_s = 0;
  auto const look = [&](std::string const& his, std::size_t of_his, std::size_t of_hers) {
    ++now_s;
    h.begin(now_s * second, 1000.0 + double(now_s));
    for (std::size_t i = 0; i < of_his; ++i) h.put(look_of(his + std::to_string(i), 1, 1));
    for (std::size_t i = 0; i < of_hers; ++i) h.put(look_of("hers" + std::to_string(i), 1, 2));
    h.end();
  };
  auto const rows_of = [&](uid_t uid) { return job_rows_of(h, uid); };
  for (int i = 0; i < 3; ++i) look("his", history::most_rows, 0);
  std::size_t const alone = rows_of(1);
  CHECK(alone > history::most_rows - 10);
  for (int i = 0; i < 3; ++i) look("his", history::most_rows, 10);
  CHECK(rows_of(2) == 10);
  CHECK(rows_of(1) == alone - 10);
  // Hers have ended, and his come and go.
  for (int round = 0; round < 5; ++round)
    for (int i = 0; i < 3; ++i) look("his" + std::to_string(round) + ".", 500, 0);
  CHECK(rows_of(2) == 10);
  CHECK(rows_of(1) + 20 > alone);  // class and supply have found room, too
}

TEST_CASE("history: users who come and go in turns push nobody else out", "[history]") {
  // 2000 and 2001 are of one person.
  for (bool const is_one : {false, true}) {
    history h([](uid_t uid) { return uid == 2001 ? 2000 : uid; });
    std::int64_t now_s = 0;
    int number = 0;
    auto const look = [&](std::size_t count, std::vector<uid_t> const& users) {
      ++now_s;
      h.begin(now_s * second, 1000.0 + double(now_s));
      for (std::size_t i = 0; i < count; ++i)
        for (uid_t const uid : users) h.put(look_of("j" + std::to_string(++number), 1, uid));
      h.end();
    };
    auto const rows_of = [&](uid_t uid) { return job_rows_of(h, uid); };
    std::vector<uid_t> const victims = {11, 12, 13, 14, 15};
    look(40, victims);
    for (int round = 0; round < 300; ++round) look(10, {2000, is_one ? 2001u : 3000u});
    for (uid_t const uid : victims) CHECK(rows_of(uid) == 40);
    CHECK(rows_of(2000) + rows_of(2001) + rows_of(3000) > 800);
  }
}
