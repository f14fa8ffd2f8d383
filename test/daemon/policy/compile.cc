// SPDX-License-Identifier: Apache-2.0
// Limits -> ruleset: targets and their nesting, the order of passing, and what is refused.
#include "policy/compile.h"

#include <bit>
#include <catch2/catch.hpp>

#include "base/error.h"
#include "policy/small.h"

using namespace sluice;
using policy::parse_limit;

namespace {

policy::file_system files() {
  policy::file_system f;
  f.mounts = parse_mounts(
      "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "40 27 0:50 / /scratch rw - lustre fs rw\n"
      "41 27 0:50 /a /home/a rw - lustre fs rw\n"
      "22 27 0:21 / /proc rw - proc proc rw\n");
  f.find = [](std::string const& path) {
    if (path == "/gone") throw usage_error("target /gone: No such file or directory");
    bool const lustre = path.starts_with("/scratch");
    policy::place p;
    p.path = path == "/link" ? "/scratch" : path;
    p.device = lustre ? std::uint64_t{50} : std::uint64_t{254} << 32;
    p.mount_id = lustre ? 40 : 27;
    return p;
  };
  return f;
}

policy::compiled compile(std::vector<std::string> const& limits) {
  policy::compile_input input;
  for (auto const& text : limits) input.channels.push_back(parse_limit(text));
  return policy::compile(input, files());
}

std::vector<std::string> order(policy::compiled const& c) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < c.rules->rule_count; ++i)
    names.emplace_back(core::view(*c.rules, c.rules->channel[c.rules->rule[i].channel].name));
  return names;
}

}  // namespace

TEST_CASE("compile: narrow before wide, deep before shallow, conditional first") {
  policy::compile_input input;
  for (char const* text : {"all=9/s", "metadata=5/s", "open=1/s", "open=2/s@/scratch",
                           "open=3/s@/scratch/a", "directory=4/s", "data=1MB/s"})
    input.channels.push_back(parse_limit(text));
  input.channels.push_back(parse_limit("open=6/s"));
  input.channels.back().name = "logs";
  input.channels.back().path_glob = "*.log";
  auto const c = policy::compile(input, files());
  CHECK(order(c) == std::vector<std::string>{"open@/scratch/a", "open@/scratch", "logs", "open",
                                             "directory", "data", "metadata", "all"});
  CHECK(core::validate(*c.rules) == nullptr);
  CHECK(c.curves.size() == 8);
}

TEST_CASE("compile: nested targets, whole devices and mounts inside") {
  auto const c = compile({"open=1/s@/scratch/a", "open=1/s@/scratch"});
  core::ruleset const& r = *c.rules;
  REQUIRE(r.target_count == 3);
  unsigned const inner = core::view(r, r.target[1].path) == "/scratch/a" ? 1 : 2, outer = 3 - inner;
  CHECK(r.target[inner].parent == outer);
  CHECK(r.target[outer].parent == 0);
  CHECK(r.target[outer].whole_device == 1);
  CHECK(r.target[inner].whole_device == 0);
  REQUIRE(r.target[inner].inside_count == 1);
  CHECK(r.target[inner].inside_mounts[0] == 41);
  CHECK(std::popcount(r.rules_for[static_cast<unsigned>(core::op::open)][inner]) == 2);
  CHECK(std::popcount(r.rules_for[static_cast<unsigned>(core::op::open)][outer]) == 1);
  CHECK(r.counts_elsewhere == 0);
}

TEST_CASE("compile: two names of one tree are one target") {
  auto const c = compile({"open=1/s@/link", "stat=1/s@/scratch"});
  CHECK(c.rules->target_count == 2);
}

TEST_CASE("compile: nothing limited still counts everywhere") {
  auto const c = compile({});
  CHECK(c.rules->target_count == 1);
  CHECK(c.rules->counts_elsewhere == 1);
  CHECK(c.rules->quiet_count >= 1);
}

TEST_CASE("compile: equal limits have equal hashes") {
  CHECK(compile({"open=1/s", "stat=2/s"}).hash == compile({"stat=2/s", "open=1/s"}).hash);
  CHECK(compile({"open=1/s"}).hash != compile({"open=2/s"}).hash);
  CHECK(compile({"open=1/s"}).hash != compile({"open=1/s@/scratch"}).hash);
  CHECK(compile({}).hash != compile({"open=1/s"}).hash);
}

TEST_CASE("compile: refusals") {
  CHECK_THROWS_WITH(compile({"open=1/s", "open=2/s"}), Catch::Contains("already has a limit"));
  CHECK_THROWS_WITH(compile({"open=1/s@/gone"}),
                    Catch::Contains("--limit open=1/s@/gone: target /gone"));
  std::vector<std::string> many;
  std::string tree = "/scratch";
  for (int i = 0; i < 9; ++i) many.push_back("open=1/s@" + (tree += "/d"));
  CHECK_THROWS_WITH(compile(many), Catch::Contains("more than 8 limits apply to one \"open\""));
  many.clear();
  for (int i = 0; i < 20; ++i) many.push_back("open=1/s@/scratch/" + std::to_string(i));
  CHECK_THROWS_WITH(compile(many), Catch::Contains("more than 15 targets"));
}

TEST_CASE("compile: the burst of a slow limit is one operation") {
  CHECK(policy::settings_of(core::unit_kind::ops, 1).cap_units == core::op_units);
  CHECK(policy::settings_of(core::unit_kind::bytes, 0).cap_units == 1);
}

TEST_CASE("compile: a durable target takes those nested in it along, and needs no channel") {
  policy::compile_input input;
  input.targets = {{"a", "/scratch/a", "p", true}, {"other", "/home", "p", false}};
  for (char const* text : {"open=1/s@/scratch", "open=1/s@/scratch/a/deep", "open=1/s@/var"})
    input.channels.push_back(parse_limit(text));
  auto const c = policy::compile(input, files());
  std::vector<std::string> durable;
  for (unsigned t = 0; t < c.rules->target_count; ++t)
    if ((c.durable_targets >> t & 1) != 0)
      durable.emplace_back(core::view(*c.rules, c.rules->target[t].path));
  CHECK(durable == std::vector<std::string>{"/scratch/a", "/scratch/a/deep"});
  input.targets[0].durable = false;
  auto const plain = policy::compile(input, files());
  CHECK(plain.durable_targets == 0);
  CHECK(plain.hash != c.hash);
}

TEST_CASE("compile: hints are for a target and those nested in it, or for all files") {
  policy::compile_input input;
  input.targets = {{"a", "/scratch/a", "p"}, {"other", "/home", "p"}};
  input.targets[0].hints = true;
  for (char const* text : {"open=1/s@/scratch", "open=1/s@/scratch/a/deep", "open=1/s@/var"})
    input.channels.push_back(parse_limit(text));
  auto const hinted = [&] {
    auto const c = policy::compile(input, files());
    std::vector<std::string> out;
    for (unsigned t = 0; t < c.rules->target_count; ++t)
      if ((c.hinted_targets >> t & 1) != 0)
        out.emplace_back(core::view(*c.rules, c.rules->target[t].path));
    return out;
  };
  std::uint64_t const hash = policy::compile(input, files()).hash;
  CHECK(hinted() == std::vector<std::string>{"/scratch/a", "/scratch/a/deep"});
  input.targets[0].hints = false;
  CHECK(hinted().empty());
  CHECK(policy::compile(input, files()).hash != hash);
  input.hints_everywhere = true;
  CHECK(hinted().size() == policy::compile(input, files()).rules->target_count);
}

TEST_CASE("compile: small reads are buffered in a target and those nested in it, or everywhere") {
  policy::compile_input input;
  input.targets = {{"a", "/scratch/a", "p"}};
  std::uint64_t const hash = policy::compile(input, files()).hash;
  input.targets[0].buffers = true;
  auto const c = policy::compile(input, files());
  CHECK(std::popcount(c.buffered_targets) == 1);
  CHECK((c.hinted_targets | c.gathered_targets) == 0);
  CHECK(c.hash != hash);
  input.targets[0].buffers = false;
  policy::add_small("reads", input);
  auto const everywhere = policy::compile(input, files());
  CHECK(std::popcount(everywhere.buffered_targets) ==
        static_cast<int>(everywhere.rules->target_count));
}

TEST_CASE("compile: strict is for a target, or for all that have no order") {
  policy::compile_input input;
  input.targets = {{"a", "/scratch/a", "p"}, {"kept", "/scratch/kept", "p", true}};
  std::uint64_t const hash = policy::compile(input, files()).hash;
  policy::add_small("strict@/scratch/a", input);
  auto const c = policy::compile(input, files());
  CHECK(std::popcount(c.strict_targets) == 1);
  CHECK((c.gathered_targets | c.buffered_targets) == 0);
  CHECK(c.hash != hash);
  input.targets.pop_back();
  policy::add_small("strict", input);
  auto const everywhere = policy::compile(input, files());
  CHECK(std::popcount(everywhere.strict_targets) ==
        static_cast<int>(everywhere.rules->target_count) - 1);
  input.targets[1].is_strict = true;
  CHECK_THROWS_WITH(policy::compile(input, files()),
                    Catch::Contains("is strict and has an order, or lies in or around"));
  CHECK_THROWS_WITH(policy::add_small("stric", input),
                    Catch::Contains("unknown mode \"stric\"") && Catch::Contains("known: hints, "));
}

TEST_CASE("compile: close-to-open is for a target and those nested in it, and without an order") {
  policy::compile_input input;
  input.targets = {{"a", "/scratch/a", "p"}, {"deep", "/scratch/a/deep", "p"}};
  input.targets[0].gathers = true;
  for (char const* text : {"open=1/s@/scratch", "open=1/s@/scratch/a/deep"})
    input.channels.push_back(parse_limit(text));
  auto const c = policy::compile(input, files());
  CHECK(std::popcount(c.gathered_targets) == 2);
  CHECK(c.hinted_targets == 0);
  input.targets[0].gathers = false;
  CHECK(policy::compile(input, files()).hash != c.hash);
  // A journal looks at what is written when fsync is called.
  input.targets[0].gathers = true;
  input.targets[1].durable = true;
  CHECK_THROWS_WITH(policy::compile(input, files()), Catch::Contains("use one of the two"));
}

TEST_CASE("compile: of targets within each other the nearest order counts") {
  policy::compile_input input;
  input.targets = {{"a", "/scratch/a", "p", true, true}, {"deep", "/scratch/a/deep", "p", true}};
  for (char const* text : {"open=1/s@/scratch/a/b", "open=1/s@/scratch/a/deep/er"})
    input.channels.push_back(parse_limit(text));
  auto const c = policy::compile(input, files());
  std::vector<std::string> durable, ordered;
  for (unsigned t = 0; t < c.rules->target_count; ++t) {
    std::string const path(core::view(*c.rules, c.rules->target[t].path));
    if ((c.durable_targets >> t & 1) != 0) durable.push_back(path);
    if ((c.ordered_targets >> t & 1) != 0) ordered.push_back(path);
  }
  CHECK(durable.size() == 4);
  CHECK(ordered == std::vector<std::string>{"/scratch/a", "/scratch/a/b"});
  CHECK((c.job_streams | c.thread_streams | c.path_streams) == 0);
  input.targets[0].stream = policy::order_stream::job;
  auto const shared = policy::compile(input, files());
  CHECK(shared.job_streams == c.ordered_targets);
  CHECK(shared.path_streams == 0);
  CHECK(shared.hash != c.hash);
  input.targets[0].ordered = false;
  auto const plain = policy::compile(input, files());
  CHECK(plain.ordered_targets == 0);
  CHECK(plain.hash != c.hash);
}

TEST_CASE("compile: the nearest \"after\" counts, and the target needs no channel") {
  policy::compile_input input;
  input.targets = {{"a", "/scratch/a", "p"}, {"b", "/scratch/a/b", "p"}, {"c", "/scratch/c", "p"}};
  input.targets[0].after = policy::after_spec{"*/M-*", "*/d-*"};
  input.targets[1].after = policy::after_spec{"*/N-*", "*/e-*"};
  input.channels.push_back(parse_limit("open=1/s@/scratch/a/b/deep"));
  auto const c = policy::compile(input, files());
  REQUIRE(c.after.size() == 2);
  CHECK(c.after[0].root == "/scratch/a");
  CHECK(c.after[1].says.write == "*/N-*");
  unsigned outer = 0, inner = 0;
  for (unsigned t = 0; t < c.rules->target_count; ++t) {
    CHECK((c.after[0].targets & c.after[1].targets & 1u << t) == 0);
    outer += c.after[0].targets >> t & 1;
    inner += c.after[1].targets >> t & 1;
  }
  CHECK(outer == 1);
  CHECK(inner == 2);
  input.targets[1].after->write = "*/O-*";
  CHECK(policy::compile(input, files()).hash != c.hash);
  input.targets[2].path = "/scratch/a";
  input.targets[2].after = policy::after_spec{"x", "y"};
  CHECK_THROWS_AS(policy::compile(input, files()), error);
}

TEST_CASE("compile: what is mounted below a target is the deepest one's that has mounts") {
  policy::file_system f = files();
  for (auto const& m : parse_mounts("50 40 0:60 / /scratch/m rw - nfs fs rw\n"
                                    "51 40 0:61 / /scratch/a/m rw - nfs fs rw\n"))
    f.mounts.push_back(m);
  policy::compile_input input;
  input.targets = {{.name = "one", .path = "/scratch/a", .origin = "p", .one_file_system = true}};
  for (char const* text : {"open=1/s@/scratch", "open=1/s@one"})
    input.channels.push_back(parse_limit(text));
  auto const c = policy::compile(input, f);
  core::ruleset const& r = *c.rules;
  auto const owner = [&](std::uint64_t device) {
    for (unsigned i = 0; i < r.below_count; ++i)
      if (r.below[i].device == device) return core::view(r, r.target[r.below[i].target].path);
    return std::string_view("nobody");
  };
  CHECK(r.top_mount == 27);
  CHECK(owner(60) == "/scratch");
  CHECK(owner(61) == "/scratch");  // /scratch/a is one file system
  input.targets[0].one_file_system = false;
  auto const all = policy::compile(input, f);
  CHECK(all.hash != c.hash);
}
