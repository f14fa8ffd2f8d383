// SPDX-License-Identifier: Apache-2.0
// What `sluice top` shows of an answer: numbers short and right, rows ordered, filtered and fitted
// to any width, and no answer whatever is too strange to be read.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/quantity.h"
#include "commands/cli/picture.h"

#include "commands/cli/top_view.h"

using namespace sluice;
using namespace sluice::cli;
using nlohmann::json;

namespace {

json const answer = json::parse(R"({"cycle": 9, "supplies": [
  {"supply": "metadata@scratch", "capacity": 1000, "granted": 500, "served": 250, "demand": 750}],
  "jobs": [
    {"job": "calm", "user": "ann", "class": "gold", "nodes": 2, "processes": 4, "escaped": [],
     "state": "running", "override": null, "streams": [
       {"supply": "metadata@scratch", "demand": 400, "grant": 400, "served": 300, "waiting": 0}]},
    {"job": "thirsty", "user": "bob", "class": "bronze", "nodes": 1, "processes": 1,
     "escaped": [{"pid": 4}], "state": "paused", "override": {"metadata": 1}, "streams": [
       {"supply": "metadata@scratch", "demand": null, "grant": 100, "served": 100, "waiting": 7,
        "waiters": 2, "blocked": 0.5},
       {"supply": "data@scratch", "demand": 0, "grant": 2097152, "served": 0}]}],
  "nodes": [{"name": "n1", "role": "node", "state": "live", "age_s": 0.1, "jobs": 2,
             "granted": {"metadata@scratch": 500}, "served": {"metadata@scratch": 250}},
            {"name": "n2", "state": "gone", "age_s": 12, "jobs": 0}]})");

std::string names(top_frame const& frame) {
  std::string out;
  for (auto const& row : frame.rows)
    out += (out.empty() ? "" : " ") + row.text.substr(0, row.text.find(' '));
  return out;
}

top_frame drawn(top_choice const& choice, unsigned columns = 0) {
  return draw(read_picture(answer), choice, {"cluster ctl", "12:00:00", ""}, columns);
}

}  // namespace

TEST_CASE("short numbers", "[cli]") {
  CHECK(short_number(0, core::unit_kind::ops) == "0");
  CHECK(short_number(0.25, core::unit_kind::ops) == "0.25");
  CHECK(short_number(999.4, core::unit_kind::ops) == "999");
  CHECK(short_number(999.6, core::unit_kind::ops) == "1k");
  CHECK(short_number(19500, core::unit_kind::ops) == "19.5k");
  CHECK(short_number(1e6, core::unit_kind::ops) == "1M");
  CHECK(short_number(1023, core::unit_kind::bytes) == "0.999Ki");
  CHECK(short_number(35.0 * 1024 * 1024, core::unit_kind::bytes) == "35Mi");
  CHECK(short_number(HUGE_VAL, core::unit_kind::ops) == "inf");
  CHECK(short_number(NAN, core::unit_kind::ops) == "?");
  CHECK(rate_words(1200.0, core::unit_kind::vops) == "1.2k VOP/s");
  CHECK(short_number(0.38, core::unit_kind::vops) == "0.38");
  CHECK(rate_words(2048, core::unit_kind::bytes) == "2KiB/s");
  CHECK(rate_words(std::nullopt, core::unit_kind::ops) == "unbounded");
  for (double value = 0.01; value < 1e18; value *= 1.37)
    CHECK(short_number(value, core::unit_kind::bytes).size() <= 7);
}

TEST_CASE("times in three digits, also where these are the next unit", "[cli]") {
  CHECK(time_words(0) == "0");
  CHECK(time_words(999) == "999 ns");
  CHECK(time_words(999'400) == "999 us");
  CHECK(time_words(999'600) == "1 ms");
  CHECK(time_words(999'400'000) == "999 ms");
  CHECK(time_words(999'600'000) == "0.9996 s");
  CHECK(time_words(1'250'000'000) == "1.25 s");
}

TEST_CASE("top orders and filters", "[cli]") {
  top_choice choice;
  CHECK(names(drawn(choice)) == "thirsty calm thirsty");
  choice.sort = sort_key("served");
  CHECK(names(drawn(choice)) == "calm thirsty thirsty");
  choice.reversed = true;
  CHECK(names(drawn(choice)) == "thirsty thirsty calm");
  choice = {};
  choice.active_only = true;
  CHECK(names(drawn(choice)) == "thirsty calm");
  choice.filter = "user=ann";
  CHECK(names(drawn(choice)) == "calm");
  choice.filter = "user=bronze";
  CHECK(names(drawn(choice)).empty());
  choice.filter = "bronze";
  CHECK(names(drawn(choice)) == "thirsty");
  choice = {};
  choice.nodes = true;
  CHECK(names(drawn(choice)) == "n1 n2");
  choice.filter = "state=gone";
  CHECK(names(drawn(choice)) == "n2");
  CHECK_THROWS_AS(sort_key("x"), sluice::error);
}

TEST_CASE("top fits its lines to the screen", "[cli]") {
  for (unsigned columns = 1; columns < 200; ++columns)
    for (bool const nodes : {false, true}) {
      top_choice choice;
      choice.nodes = nodes;
      auto const frame = drawn(choice, columns);
      for (auto const& l : frame.head) CHECK(l.text.size() <= columns);
      for (auto const& l : frame.rows) CHECK(l.text.size() <= columns);
      CHECK(frame.columns.text.size() <= columns);
    }
  auto const frame = drawn({}, 80);
  CHECK(drawn({}).head[0].text.find("2 jobs, 2 nodes (1 silent)") != std::string::npos);
  picture p = read_picture(answer);
  p.nodes.resize(1);
  CHECK(draw(p, {}, {}, 0).head[0].text.ends_with("2 jobs, 1 node  cycle 9"));
  CHECK(frame.head[1].text.find("[####====--------]") == std::string::npos);
  CHECK(drawn({}).head[1].text.find("[##########==========--------------------]") !=
        std::string::npos);
  CHECK(frame.rows[0].text.find("thirsty P") == 0);
  CHECK(frame.rows[0].style == line_style::alarm);
}

TEST_CASE("top shows a trend where there is room", "[cli]") {
  CHECK(trend({}).empty());
  CHECK(trend({0, 0}) == "|            |");
  CHECK(trend({1, 2, 4, 8}) == "|        .:=#|");
  picture p = read_picture(answer);
  for (auto& s : p.streams) s.lately = {1};
  CHECK(draw(p, {}, {}, 0).rows[0].text.ends_with('|'));
  CHECK_FALSE(draw(p, {}, {}, 60).rows[0].text.ends_with('|'));
  CHECK(draw(p, {}, {}, 60).rows[0].text == drawn({}, 60).rows[0].text);
}

TEST_CASE("an answer may be anything", "[cli]") {
  std::mt19937 random(7);
  std::vector<json> const odd = {
      nullptr, 5, -1e300, "x\n\x1b[2J", json::array({1, json::object()}), {{"a", 1}}, true};
  auto const flat = answer.flatten();
  for (int round = 0; round < 2000; ++round) {
    json changed = answer;
    for (auto const& [path, value] : flat.items())
      if (random() % 8 == 0) {
        std::string up = path;
        for (unsigned cut = random() % 4; cut > 0 && up.rfind('/') != 0; --cut)
          up.resize(up.rfind('/'));
        json::json_pointer const at(up);
        if (changed.contains(at)) changed[at] = odd[random() % odd.size()];
      }
    for (bool const nodes : {false, true}) {
      top_choice choice;
      choice.nodes = nodes;
      auto const frame = draw(read_picture(changed), choice, {}, 80);
      for (auto const& row : frame.rows)
        for (unsigned char c : row.text) CHECK((c >= 32 && c < 127));
    }
  }
}
