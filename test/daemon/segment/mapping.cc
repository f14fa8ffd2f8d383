// SPDX-License-Identifier: Apache-2.0
// What people are shown of a segment whose owner has scribbled over it.
#include "segment/mapping.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>

#include "core/path_text.h"

using namespace sluice;

TEST_CASE("no text that is shown of a segment is longer than a path", "[segment]") {
  auto const s = std::make_unique<abi::segment>();
  core::ruleset& r = s->rules;
  core::text const all = {0, r.string_bytes = sizeof r.strings};
  std::memset(r.strings, 'x', sizeof r.strings);
  r.target_count = r.rule_count = r.channel_count = 1;
  r.target[0].path = r.target[0].name = all;
  r.rule[0].path_glob = r.rule[0].thread_glob = r.rule[0].role = all;
  r.channel[0].name = r.channel[0].origin = all;
  auto const rules = segment::shown_rules_of(*s);
  core::target_row const& t = rules->target[0];
  core::rule_row const& rule = rules->rule[0];
  for (core::text const& text : {t.path, t.name, rule.path_glob, rule.thread_glob, rule.role,
                                 rules->channel[0].name, rules->channel[0].origin})
    CHECK(core::view(*rules, text).size() == core::max_path);
}
