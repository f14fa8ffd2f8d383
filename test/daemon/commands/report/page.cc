// SPDX-License-Identifier: Apache-2.0
// What a report says and shows: the sentences a reader needs, and that nothing a result says
// becomes part of the page.
#include "commands/report/page.h"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <tuple>

#include "commands/report/ask.h"
#include "commands/report/digest.h"
#include "commands/report/sentences.h"
#include "commands/report/shape.h"
#include "commands/report/tables.h"
#include "commands/report/text.h"
#include "commands/report/words.h"
#include "lib/refusal.h"

using namespace sluice;
using namespace sluice::report;
using Catch::Matchers::Contains;

namespace {

/// Two jobs, ten seconds; `slow` waited from the fourth to the seventh.
constexpr char const* two_jobs = R"({"version": 1, "kind": "simulation", "elapsed_s": 10,
  "timeline": {"interval_s": 1, "rows": [
  {"job": "fast", "supply": "metadata@scratch", "what": "served", "unit": "ops",
   "values": [60, 60, 60, 60, 60, 60, 60, 60, 60, 60]},
  {"job": "slow", "supply": "metadata@scratch", "what": "served", "unit": "ops",
   "values": [20, 20, 20, 40, 40, 20, 40, 20, 20, 20]},
  {"job": "slow", "supply": "metadata@scratch", "what": "blocked", "unit": "s",
   "values": [0, 0, 0, 1, 1, 1, 1, 0, 0, 0]},
  {"job": "slow", "op": "open", "what": "done",
   "values": [20, 20, 20, 40, 40, 20, 40, 20, 20, 20]},
  {"job": "slow", "op": "open", "what": "waited", "unit": "s", "values": [0, 0, 0, 2, 2, 2, 2]},
  {"supply": "metadata@scratch", "what": "capacity", "unit": "ops",
   "values": [100, 100, 100, 100, 100, 100, 100, 100, 100, 100]}]},
  "rules": [{"channel": "metadata@scratch", "text": "all of it", "file": "site.json",
             "line": 7}]})";

std::string said(std::string const& text) {
  std::string all;
  result const r = parse_result(text, "r");
  for (auto const& line : sentences_of(r, digest_of(r))) all += line + "\n";
  return all;
}

std::string hostile() {
  using nlohmann::json;
  std::string const x =
      "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'`--><svg onload=alert(1)>";
  nlohmann::json rows = nlohmann::json::array();
  for (char const* what : {"done", "waited", "lag", "p99"})
    rows.push_back({{"job", x}, {"op", x}, {"what", what}, {"unit", x}, {"values", {1, 2, 3}}});
  for (char const* what : {"served", "demand", "grant", "limit", "blocked", "capacity", "waited"})
    rows.push_back({{"job", x}, {"supply", x}, {"what", what}, {"unit", x}, {"values", {1, 2, 3}}});
  nlohmann::json const channel = {{"name", x},  {"unit", x},    {"target", x},
                                  {"calls", 5}, {"delayed", 2}, {"waited_ns", 3e9}};
  nlohmann::json const out = {
      {"version", 1},
      {"job", x},
      {"command", {x, "</title>"}},
      {"channels", nlohmann::json::array({channel})},
      {"calls", {{{"call", x}, {"op", x}, {"class", x}, {"calls", 4}, {"waited_ns", 1e9}}}},
      {"paths", {{{"path", x}, {"calls", 3}, {"over", 1}}}},
      {"passthrough", {{{"reason", x}, {"calls", 1}}}},
      {"jobs",
       {{{"job", x}, {"class", x}, {"user", x}, {"started_s", 0}, {"ended_s", 1}},
        {{"job", x + "2"}, {"started_s", 0}}}},
      {"rules", {{{"channel", x}, {"text", x}, {"file", x}, {"line", 3}}}},
      {"facts", json::array({json::array({x, x})})},
      {"timeline", {{"interval_s", 1}, {"rows", rows}}}};
  return out.dump();
}

}  // namespace

TEST_CASE("report: moments of a short run are told in seconds", "[report]") {
  std::string shorter = two_jobs;
  std::string_view const second = "\"interval_s\": 1,";
  shorter.replace(shorter.find(second), second.size(), "\"interval_s\": 0.1,");
  CHECK_THAT(said(shorter), Contains("four fifths of it between 300 ms and 700 ms"));
}

TEST_CASE("report: what hints to the kernel came to", "[report]") {
  auto const with = [](char const* hints) {
    return said(R"({"version": 1, "hints": )" + std::string(hints) + "}");
  };
  CHECK_THAT(
      with(R"({"advised": 3, "advised_bytes": 12288, "cached": 4})"),
      Contains("The kernel was asked 3 times to read ahead, 12 KiB in all; 4 times nothing of "
               "it was to be read."));
  CHECK_THAT(with(R"({"unpaid": 5})"), Contains("never asked to read ahead; 5 times the limit"));
  CHECK(with("null").find("read ahead") == std::string::npos);
}

TEST_CASE("report: why small writes and reads were gathered no longer", "[report]") {
  std::string const all = said(R"({"version": 1,
    "gathered": {"writes": 1480, "bytes": 14800, "flushes": 9, "ended_slow": 5, "ended_memory": 2},
    "buffered": {"reads": 7, "bytes": 70, "fills": 1, "ended_asked": 3}})");
  CHECK_THAT(all, Contains("; it ended 5 times, as they came too slowly; it ended 2 times, as "
                           "they came from memory that libc may unmap."));
  CHECK_THAT(all, Contains("; it ended 3 times, as too few came before another call on the file."));
}

TEST_CASE("report: who used it, who waited, for which rule, when", "[report]") {
  std::string const all = said(two_jobs);
  CHECK_THAT(all, Contains("4 s of 10 s were spent waiting for metadata tokens of scratch"));
  CHECK_THAT(all, Contains("all of it, site.json line 7"));
  CHECK_THAT(all, Contains("Most of it by job slow: 4 s, 100 %"));
  CHECK_THAT(all, Contains("8 s in open"));
  CHECK_THAT(all, Contains("between 0:00:03 and 0:00:07"));
  CHECK_THAT(all, Contains("fast 70 %, slow 30 %"));
  CHECK_THAT(
      all,
      Contains("86 % of the capacity; while something waited, 5.0 % of the capacity of that time "
               "stayed unused"));
}

TEST_CASE("report: what was done at a supply is not served once more", "[report]") {
  auto const d = digest_of(parse_result(R"({"version": 1, "timeline": {"interval_s": 2, "rows": [
    {"job": "a", "supply": "metadata@s", "what": "served", "unit": "ops", "values": [5, 5]},
    {"job": "a", "supply": "metadata@s", "what": "done", "unit": "ops", "values": [10, 10]},
    {"job": "b", "supply": "metadata@s", "what": "done", "unit": "ops", "values": [4, 4]}]}})",
                                        "r"));
  REQUIRE(d.uses.size() == 2);
  CHECK(d.uses[0].served == 20);
  CHECK(d.uses[1].served == 8);
}

TEST_CASE("report: shares are of what the rows say, whoever made the sums", "[report]") {
  auto const r = parse_result(R"({"version": 1, "job": "a", "channels": [
    {"name": "metadata@s", "unit": "ops", "calls": 10, "amount": 10}],
    "timeline": {"interval_s": 1, "rows": [
    {"job": "a", "supply": "metadata@s", "what": "served", "unit": "ops", "values": [9, 3]},
    {"job": "other jobs", "supply": "metadata@s", "what": "served", "unit": "ops", "values": [4]}
    ]}})",
                              "r");
  std::string const text = text_of({r}, 100);
  CHECK_THAT(text, Contains("served 10,"));
  CHECK_THAT(text, Contains("75 %"));
  CHECK_THAT(text, Contains("25 %"));
  CHECK_THAT(text, !Contains("120 %"));
}

TEST_CASE("report: a demand far above all that was used does not press it flat", "[report]") {
  auto const r = parse_result(R"({"version": 1, "timeline": {"interval_s": 1, "rows": [
    {"job": "a", "supply": "metadata@s", "what": "served", "unit": "ops", "values": [100, 100]},
    {"job": "a", "supply": "metadata@s", "what": "demand", "unit": "ops", "values": [90, 70000]}
    ]}})",
                              "r");
  std::string const page = page_of({r}, "n");
  CHECK_THAT(page, Contains("demand, up to 70"));
  CHECK_THAT(page, Contains("[90,70000]"));
  CHECK_THAT(page, Contains(">150"));
  CHECK_THAT(page, !Contains(">70 k"));
}

TEST_CASE("report: nothing waited", "[report]") {
  std::string const all = said(R"({"version": 1, "job": "a", "elapsed_s": 2, "calls": [
    {"call": "open", "op": "open", "calls": 5}]})");
  CHECK_THAT(all, Contains("Run of a over 2 s, 5 operations."));
  CHECK_THAT(all, Contains("Nothing waited"));
}

TEST_CASE("report: that nothing waited is said by who can know it", "[report]") {
  std::string const early = said(R"({"version": 1, "kind": "history", "job": "a", "timeline":
    {"interval_s": 1, "rows": [{"job": "a", "supply": "metadata@s", "what": "served",
     "unit": "ops", "values": [null]}]}})");
  CHECK_THAT(early, Contains("no interval has ended") && !Contains("Nothing waited"));
  std::string const now = said(R"({"version": 1, "kind": "history", "job": "a", "timeline":
    {"interval_s": 1, "rows": [{"job": "a", "supply": "metadata@s", "what": "waiting",
     "unit": "ops", "values": [3]}]}})");
  CHECK_THAT(now, Contains("A wait has just begun") && !Contains("Nothing waited"));
  std::string const late = said(R"({"version": 1, "kind": "replay", "timeline":
    {"interval_s": 1, "rows": [
     {"job": "a", "op": "open", "what": "done", "unit": "ops", "values": [9]},
     {"job": "a", "op": "open", "what": "delayed", "unit": "ops", "values": [7]},
     {"job": "a", "op": "open", "what": "lag", "unit": "s", "values": [60]}]}})");
  CHECK_THAT(late, Contains("7 operations were late") && !Contains("Nothing waited"));
  CHECK_THAT(late, Contains("60 s after its time"));
}

TEST_CASE("report: unused is what the time with waiting could have had", "[report]") {
  auto const d = digest_of(parse_result(R"({"version": 1, "timeline": {"interval_s": 10, "rows": [
    {"supply": "metadata@s", "what": "capacity", "unit": "ops", "values": [100, 100]},
    {"job": "a", "supply": "metadata@s", "what": "blocked", "unit": "s", "values": [5, 0]},
    {"job": "a", "supply": "metadata@s", "what": "served", "unit": "ops", "values": [30, 1]}]}})",
                                        "r"));
  REQUIRE(d.gates.size() == 1);
  CHECK(d.gates[0].waited_capacity == Approx(500));
  CHECK(d.gates[0].idle_amount == Approx(200));
  auto const told = digest_of(parse_result(R"({"version": 1, "timeline": {"interval_s": 10,
    "rows": [
    {"supply": "metadata@s", "what": "capacity", "unit": "ops", "values": [100]},
    {"supply": "metadata@s", "what": "blocked", "unit": "s", "values": [8]},
    {"supply": "metadata@s", "what": "unused", "unit": "ops", "values": [70]},
    {"job": "a", "supply": "metadata@s", "what": "blocked", "unit": "s", "values": [5]}]}})",
                                           "r"));
  CHECK(told.gates[0].blocked_s == Approx(8));
  CHECK(told.gates[0].idle_amount == 70);
  CHECK_THAT(gate_table(d), Contains("<td>40 %</td>"));
}

TEST_CASE("report: the time in the calls has its own picture and is no waiting", "[report]") {
  auto const r = parse_result(R"({"version": 1, "job": "a", "calls": [
    {"call": "open", "op": "open", "calls": 6, "waited_ns": 4e9}],
    "timeline": {"interval_s": 2, "rows": [
    {"job": "a", "op": "open", "what": "done", "unit": "ops", "values": [4, 2]},
    {"job": "a", "op": "open", "what": "took", "unit": "s", "values": [1, 0.5]}]}})",
                              "r");
  auto const d = digest_of(r);
  REQUIRE(d.ops.size() == 1);
  CHECK(d.ops[0].took_s == 1.5);
  CHECK(d.ops[0].took == std::vector<double>{0.5, 0.25});
  CHECK(d.ops[0].waited_s == 4);
  CHECK_THAT(page_of({r}, "n"), Contains("Time in the calls themselves"));
}

TEST_CASE("report: the lag of a job at a supply is in its row", "[report]") {
  auto const d = digest_of(parse_result(R"({"version": 1, "timeline": {"interval_s": 1, "rows": [
    {"job": "a", "supply": "metadata@s", "what": "done", "unit": "ops", "values": [1, 1]},
    {"job": "a", "supply": "metadata@s", "what": "lag", "unit": "s", "values": [3, 70]}]}})",
                                        "r"));
  REQUIRE(d.jobs.size() == 1);
  CHECK(d.jobs[0].lag_s == 70);
}

TEST_CASE("report: the sums of a run without a timeline", "[report]") {
  std::string const all = said(R"({"version": 1, "job": "a", "elapsed_s": 9, "exit": {"signal": 9},
    "channels": [{"name": "opens", "unit": "ops", "calls": 10, "delayed": 5, "waited_ns": 3e9}]})");
  CHECK_THAT(all, Contains("ended by signal 9"));
  CHECK_THAT(all, Contains("3 s were spent waiting for limit opens, all threads added"));
  CHECK_THAT(all, Contains("50 % of 10 calls"));
}

TEST_CASE("report: waiting of all threads is no more than the time it took", "[report]") {
  auto const d = digest_of(parse_result(R"({"version": 1, "timeline": {"interval_s": 2, "rows": [
    {"job": "a", "channel": "c", "what": "waited", "unit": "s", "values": [16, 1, null]}]}})",
                                        "r"));
  REQUIRE(d.gates.size() == 1);
  CHECK(d.gates[0].waited_s == 17);
  CHECK(d.gates[0].blocked_s == 3);
}

TEST_CASE("report: what a result says never becomes part of the page", "[report]") {
  auto const r = parse_result(hostile(), "</title><script>alert(2)</script>");
  std::string const one = page_of({r}, "abc123"), two = page_of({r, r}, "abc123");
  for (std::string const& page : {one, two}) {
    std::regex const elements("<(script|img|svg|style|title|iframe|a|link)[ >]");
    for (std::sregex_iterator it(page.begin(), page.end(), elements), end; it != end; ++it) {
      std::string const found = page.substr(std::size_t(it->position()), 24);
      bool const ours = found.starts_with("<script nonce=\"abc123\">") ||
                        found.starts_with("<style nonce=\"abc123\">") ||
                        found.starts_with("<svg class=\"") || found.starts_with("<title>sluice: ");
      CHECK(ours);
      if (!ours) WARN(found);
    }
    std::string const bare = std::regex_replace(page, std::regex("\"[^\"]*\""), "\"\"");
    CHECK_FALSE(std::regex_search(bare, std::regex("<[^>]* on[a-z]+=")));
    CHECK_FALSE(std::regex_search(page, std::regex("(https?:)?//[a-z]+\\.(?!w3\\.org)")));
    CHECK_THAT(page, Contains("default-src 'none'"));
    CHECK_THAT(page, !Contains(" style="));
  }
  CHECK_THAT(text_of({r}, 80), Contains("</script>"));  // a terminal has no elements
}

TEST_CASE("report: text loses what would move a terminal", "[report]") {
  CHECK(html("a<b>&\"'`") == "a&lt;b&gt;&amp;&quot;&#39;&#96;");
  CHECK(plain("\x1b[2Ja\n\xc2\x9b") == "\xEF\xBF\xBD[2Ja\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(plain("\xe2\x80\xae"
              "abc") ==
        "\xEF\xBF\xBD"
        "abc");  // turns the direction
  CHECK(plain("\xff\xc3") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(plain("\xc3\xa4\xe2\x82\xac", 1) == "\xc3\xa4\xE2\x80\xA6");
}

TEST_CASE("report: numbers as people read them", "[report]") {
  CHECK(count_text(999) == "999");
  CHECK(count_text(12345) == "12.3 k");
  CHECK(count_text(unknown) == "-");
  CHECK(amount_text(1536, "bytes") == "1.50 KiB");
  CHECK(seconds_text(0.0123) == "12.3 ms");
  CHECK(seconds_text(3600) ==
        "3\xE2\x80\xAF"
        "600 s");
  CHECK(seconds_text(116'401) == "32.33 h");
  CHECK(seconds_text(13 * 86'400.0) == "13 d");
  CHECK(clock_text(412) == "0:06:52");
  CHECK(clock_text(90000) == "1 d 1:00:00");
  CHECK(share_text(1, 0) == "-");
  CHECK(date_text(0) == "1970-01-01 00:00:00 UTC");
}

TEST_CASE("report: columns, sums and spans of series", "[report]") {
  std::vector<double> const v = {1, 3, unknown, unknown, 5};
  CHECK(merged(5, 3) == 2);
  auto const columns = columns_of(v, 2);
  REQUIRE(columns.size() == 3);
  CHECK(columns[0] == 2);
  CHECK(std::isnan(columns[1]));
  CHECK(columns[2] == 5);
  auto const span = densest({0, 1, 5, 5, 1, 0}, 0.8);
  CHECK(span.begin == 2);
  CHECK(span.end == 4);
  CHECK(densest({0, 0}, 0.8).end == 0);
}

TEST_CASE("report: results side by side", "[report]") {
  auto const a = parse_result(two_jobs, "a.json"), b = parse_result(two_jobs, "b.json");
  auto const da = digest_of(a), db = digest_of(b);
  auto const rows = compare({&da, &db});
  REQUIRE_FALSE(rows.empty());
  CHECK(rows[0].what == "duration");
  CHECK(rows[0].values.size() == 2);
  CHECK_THAT(page_of({a, b}, "n"), Contains("Side by side") && Contains("b.json"));
  CHECK_THAT(text_of({a, b}, 100), Contains("a.json") && Contains("duration"));
}

TEST_CASE("report: the history of a daemon becomes a result", "[report]") {
  auto const answer = nlohmann::json::parse(R"({"interval_s": 10, "rows": [
    {"job": "a", "user": "ann", "class": "gold", "supply": "metadata@s", "unit": "ops",
     "end_unix_s": 1000, "limit": [20, 50, 50],
     "served_sum": [10, 20, 30],
     "demand": [1, null, 3],
     "blocked_s": [0, 5, 0], "waited_s": [0, 7, 0], "delayed_sum": [0, 3, 0]},
    {"class": "gold", "supply": "metadata@s", "served_sum": [9], "end_unix_s": 1000},
    {"class": "", "supply": "metadata@s", "unit": "ops", "end_unix_s": 1000, "capacity": 100,
     "served_sum": [50, 50, 50]},
    {"job": "b", "supply": 7, "served_sum": "no", "end_unix_s": 990}, 5, null]})");
  question q;
  q.job = "a";
  auto const ops = nlohmann::json::parse(R"({"interval_s": 10, "rows": [
    {"job": "a", "op": "open", "unit": "ops", "end_unix_s": 1000,
     "done_sum": [20, null, 40]},
    {"job": "a", "op": "read", "unit": "bytes", "end_unix_s": 990, "done_sum": [80]},
    {"job": "a", "supply": "metadata@s", "done_sum": [1]}, {"op": "stat", "done_sum": "no"}, 5,
     null]})");
  auto const r = parse_result(result_of_history(answer, ops, q).dump(), "h");
  CHECK(r.kind == "history");
  CHECK(r.time.interval_s == 10);
  CHECK(r.time.start_unix_s == 970);
  // A limit that was set for a time is not blamed on the one of now, nor forgotten.
  REQUIRE(r.rules.size() == 1);
  CHECK_THAT(r.rules[0].text, Contains("a has a limit of 50/s; a had a limit of 20/s"));
  auto const d = digest_of(r);
  REQUIRE_FALSE(d.gates.empty());
  bool found = false;
  for (auto const& u : d.uses)
    if (u.job == other_jobs && u.gate == "metadata@s") {
      found = true;
      CHECK(u.served == Approx(90));
    }
  CHECK(found);
  CHECK(d.gates[0].delayed == 3);
  CHECK(d.gates[0].waited_s == 7);
  CHECK(d.gates[0].blocked_s == 5);
  CHECK(d.jobs.size() == 2);
  REQUIRE(d.ops.size() == 2);
  CHECK(d.ops[0].op == "open");
  CHECK(d.ops[0].total == Approx(60));
  REQUIRE(d.ops[0].rate.size() == 3);
  CHECK(d.ops[0].rate[2] == Approx(4));
  CHECK(d.ops[1].unit == "bytes");
  CHECK(d.ops[1].rate[1] == Approx(8));
  CHECK_THAT(page_of({r}, "n"), Contains("operations over time"));
  // The axis of a job is its own, however long the daemon has been there.
  auto const young = nlohmann::json::parse(R"({"interval_s": 10, "rows": [
    {"job": "a", "supply": "metadata@s", "unit": "ops", "end_unix_s": 980,
     "served_sum": [null, null, 20, 30]},
    {"class": "", "supply": "metadata@s", "unit": "ops", "end_unix_s": 1000, "capacity": 100,
     "served_sum": [9, 9, 9, 9, 50, 60, 70, 80]}]})");
  auto const own = parse_result(result_of_history(young, {}, q).dump(), "h");
  CHECK(own.time.start_unix_s == 960);
  auto const of_it = digest_of(own);
  bool is_beside = false;
  for (auto const& u : of_it.uses)
    if (u.job == other_jobs) {
      is_beside = true;
      CHECK(u.served == Approx(50 + 60 - 20 - 30));
    }
  CHECK(is_beside);
  // A daemon that knows nothing of ops answers with the rows of supplies once more.
  CHECK(digest_of(parse_result(result_of_history(answer, answer, q).dump(), "h")).ops.empty());
}

namespace {

/// Two users have a job `work`: ann's is served 60 and opens 6 files, bob's 900 and 90.
nlohmann::json two_of_a_name(char const* kind) {
  nlohmann::json rows = nlohmann::json::array();
  for (auto const& [user, uid, load] : {std::tuple("ann", 1001, 1), std::tuple("bob", 1002, 15)}) {
    nlohmann::json row = {{"job", "work"}, {"user", user}, {"uid", uid},         {"class", "gold"},
                          {"unit", "ops"}, {"live", true}, {"end_unix_s", 1000}, {"limit", {10}}};
    if (kind == std::string("ops"))
      row.update({{"op", "open"}, {"done_sum", {load * 6}}});
    else
      row.update(
          {{"supply", "metadata@s"}, {"served_sum", {load * 60}}, {"blocked_s", {load / 9}}});
    rows.push_back(row);
  }
  rows.push_back({{"job", "alone"},
                  {"user", "bob"},
                  {"uid", 1002},
                  {"supply", "metadata@s"},
                  {"end_unix_s", 1000},
                  {"served_sum", {7}}});
  return nlohmann::json::parse(
      nlohmann::json({{"interval_s", 10}, {"rows", rows}}).dump());  // as it comes from a daemon
}

}  // namespace

TEST_CASE("report: jobs of two users with one name are two jobs", "[report]") {
  auto const answer = two_of_a_name("supplies"), ops = two_of_a_name("ops");
  auto const r = parse_result(result_of_history(answer, ops, {}).dump(), "h");
  auto const d = digest_of(r);
  std::map<std::string, double> served, done, blocked;
  for (auto const& u : d.uses) served[u.job] += u.served;
  for (auto const& j : d.jobs) done[j.job] += j.done, blocked[j.job] += j.blocked_s;
  CHECK(served == std::map<std::string, double>{{"alone", 7}, {"ann@work", 60}, {"bob@work", 900}});
  CHECK(done == std::map<std::string, double>{{"alone", 0}, {"ann@work", 6}, {"bob@work", 90}});
  CHECK(blocked == std::map<std::string, double>{{"alone", 0}, {"ann@work", 0}, {"bob@work", 1}});
  for (std::string const& shown : {text_of({r}, 100), summary_of({r}), page_of({r}, "n")}) {
    CHECK_THAT(shown, Contains("ann@work") && Contains("bob@work") && Contains("alone"));
    CHECK_THAT(shown, !Contains("bob@alone"));
  }
  REQUIRE(r.rules.size() == 1);
  CHECK_THAT(r.rules[0].text, Contains("ann@work has a limit of 10/s; bob@work has a limit"));
}

TEST_CASE("report: a name that means more than one job is refused", "[report]") {
  auto answer = two_of_a_name("supplies"), ops = two_of_a_name("ops");
  for (auto* const all : {&answer, &ops}) (*all)["rows"].erase(2);
  question q;
  q.job = "work";
  std::string const refused = "more than one job \"work\": say which of ann@work, bob@work";
  CHECK(test::refusal_of([&] { result_of_history(answer, ops, q); }) == refused);
  CHECK(test::refusal_of([&] { result_of_history({}, ops, q); }) == refused);
  // Who asks means his own, as with every verb.
  q.uid = 1001;
  auto const d = digest_of(parse_result(result_of_history(answer, ops, q).dump(), "h"));
  REQUIRE(d.jobs.size() == 1);
  CHECK(d.jobs[0].job == "work");
  CHECK(d.jobs[0].user == "ann");
  CHECK(d.jobs[0].done == 6);
  REQUIRE(d.uses.size() == 1);
  CHECK(d.uses[0].served == 60);
}
