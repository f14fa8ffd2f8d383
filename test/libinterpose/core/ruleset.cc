// SPDX-License-Identifier: Apache-2.0
// Rule matching against a model that asks every rule in turn.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "core/ruleset.h"

using namespace sluice::core;

namespace {

text put(ruleset& rules, std::string const& what) {
  text const t{rules.string_bytes, static_cast<std::uint32_t>(what.size())};
  std::memcpy(rules.strings + t.offset, what.data(), what.size());
  rules.string_bytes += t.length;
  return t;
}

// elsewhere, 1 = /a, 2 = /a/b (in 1), 3 = /c
std::unique_ptr<ruleset> tree() {
  auto rules = std::make_unique<ruleset>();
  rules->target_count = 4;
  rules->target[2].parent = 1;
  rules->channel_count = 1;
  return rules;
}

bool model(ruleset const& rules, rule_row const& r, op o, unsigned target) {
  if ((r.ops & op_bit(o)) == 0) return false;
  if (r.target == any_target || r.target == target) return true;
  for (unsigned t = target; t != 0; t = rules.target[t].parent)
    if (t == r.target) return true;
  return false;
}

}  // namespace

TEST_CASE("the index of rules says what asking every rule says", "[ruleset]") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    auto rules = tree();
    rules->rule_count = static_cast<std::uint32_t>(random() % (max_rules + 1));
    for (unsigned r = 0; r < rules->rule_count; ++r) {
      rules->rule[r].ops = random() & random();
      unsigned const target = static_cast<unsigned>(random() % 5);
      rules->rule[r].target = target == 4 ? any_target : static_cast<std::uint8_t>(target);
      rules->rule[r].user = any_user;
    }
    index_rules(*rules);
    REQUIRE(validate(*rules) == nullptr);
    for (unsigned o = 0; o < op_count; ++o)
      for (unsigned t = 0; t < rules->target_count; ++t)
        for (unsigned r = 0; r < rules->rule_count; ++r)
          REQUIRE((rules->rules_for[o][t] >> r & 1) ==
                  model(*rules, rules->rule[r], static_cast<op>(o), t));
  }
}

TEST_CASE("path and thread patterns choose rules", "[ruleset]") {
  auto rules = tree();
  rules->rule_count = 4;
  for (auto& r : rules->rule) r.user = any_user;
  rules->rule[1].path_glob = put(*rules, "*.ckpt");
  rules->rule[2].path_glob = put(*rules, "/scratch/*/log");
  rules->rule[3].thread_glob = put(*rules, "rocksdb:low*");
  CHECK((path_rules(*rules, "/x/y.ckpt") & 0xf) == 0b1011);
  CHECK((path_rules(*rules, "y.ckpt") & 0xf) == 0b1011);
  CHECK((path_rules(*rules, "/scratch/j/log") & 0xf) == 0b1101);
  CHECK((path_rules(*rules, "log") & 0xf) == 0b1001);
  CHECK((caller_rules(*rules, "rocksdb:low0", 1) & 0xf) == 0b1111);
  CHECK((caller_rules(*rules, "main", 1) & 0xf) == 0b0111);
  rules->rule[0].user = 1000;
  CHECK((caller_rules(*rules, "main", 1000) & 0xf) == 0b0111);
  CHECK((caller_rules(*rules, "main", 1001) & 0xf) == 0b0110);
}

TEST_CASE("selectors name ops, classes and resources", "[ruleset]") {
  CHECK(ops_of_selector("open") == op_bit(op::open));
  CHECK((ops_of_selector("metadata") & op_bit(op::getxattr)) != 0);
  CHECK((ops_of_selector("metadata") & op_bit(op::read)) == 0);
  CHECK(ops_of_selector("data") == (op_bit(op::read) | op_bit(op::write)));
  CHECK((ops_of_selector("all") & op_bit(op::seek)) == 0);
  CHECK(ops_of_selector("openat") == 0);
  CHECK(byte_ops_of(ops_of_selector("data")) == ops_of_selector("data"));
  CHECK(byte_ops_of(ops_of_selector("metadata")) == 0);
}

TEST_CASE("a scribbled ruleset is refused and bounded", "[ruleset]") {
  std::mt19937_64 random(11);
  auto rules = std::make_unique<ruleset>();
  for (int round = 0; round < 200; ++round) {
    auto* const words = reinterpret_cast<std::uint32_t*>(rules.get());
    for (std::size_t i = 0; i < sizeof(ruleset) / 4; ++i)
      words[i] = static_cast<unsigned>(random());
    CHECK(validate(*rules) != nullptr);
    is_within(*rules, static_cast<unsigned>(random() % max_targets), 5);
  }
}
