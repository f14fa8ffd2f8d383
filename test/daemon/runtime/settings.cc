// SPDX-License-Identifier: Apache-2.0
// The daemon's configuration: file, flags, what goes together.
#include "runtime/settings.h"

#include <catch2/catch.hpp>

#include "lib/refusal.h"
#include "runtime/address.h"
#include "runtime/command_line.h"

using namespace sluice;
using runtime::config;

namespace {

runtime::command_line flags(std::vector<std::string> words) {
  words.insert(words.begin(), "sluiced");
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  return runtime::parse_command_line(static_cast<int>(argv.size()), argv.data());
}

config made(std::string const& file, std::vector<std::string> const& words) {
  return runtime::make_config(
      file.empty() ? std::vector<runtime::given>{} : runtime::parse_config(file, "f"),
      flags(words).flags);
}

std::string refusal(std::string const& file, std::vector<std::string> const& words = {}) {
  return test::refusal_of([&] { made(file, words); });
}

}  // namespace

TEST_CASE("control settings: everything that can be said, in the file") {
  config const c = made(R"({"role": "relay", "name": "r1", "run-dir": "/r", "state-dir": "/s",
    "parent": ["tcp://a:1", "tcp://[::1]:2"], "listen": "tcp://0.0.0.0:7421", "keys": "/k",
    "cycle": "50ms", "local-cycle": "5ms", "metrics": "none", "metrics-jobs": true,
    "log-level": "debug", "user": "root"})",
                        {});
  CHECK(c.role == runtime::role_kind::relay);
  CHECK(c.name == "r1");
  CHECK(c.run_dir == "/r");
  CHECK(c.state_dir == "/s");
  CHECK(c.parents == std::vector<std::string>{"tcp://a:1", "tcp://[::1]:2"});
  CHECK(c.listen == "tcp://0.0.0.0:7421");
  CHECK(c.keys == "/k");
  CHECK(c.cycle_ns == 50'000'000);
  CHECK(c.local_cycle_ns == 5'000'000);
  CHECK(c.metrics.empty());
  CHECK(c.metrics_jobs);
  CHECK(c.log_level == "debug");
  CHECK(c.user == "root");
}

TEST_CASE("control settings: flags count more than the file, lists are replaced") {
  char const* const file =
      R"({"role": "node", "name": "n1", "parent": ["tcp://a:1", "tcp://b:1"], "keys": "/k"})";
  config const c = made(file, {"--parent", "tcp://c:1", "--name=n2"});
  CHECK(c.name == "n2");
  CHECK(c.parents == std::vector<std::string>{"tcp://c:1"});
  CHECK(made(file, {}).parents.size() == 2);
  CHECK(made("", {"--role", "node", "--parent", "tcp://127.0.0.1:1", "--parent", "tcp://[::1]:2",
                  "--plain"})
            .parents.size() == 2);
}

TEST_CASE("control settings: a node that shows the cluster has one above it") {
  char const* const file = R"({"role": "node", "parent": "tcp://a:1", "keys": "/k"})";
  CHECK(made(file, {}).view == runtime::view_kind::node);
  CHECK(made(file, {"--view", "cluster"}).view == runtime::view_kind::cluster);
  CHECK_THAT(refusal(file, {"--view", "all"}), Catch::Contains("no view; there are node, cluster"));
  CHECK(made(R"({"role": "cluster", "listen": "tcp://0.0.0.0:1", "keys": "/k", "policy": "/p",
    "shared-dir": "/s"})",
             {})
            .shared_dir == "/s");
  CHECK_THAT(refusal(R"({"role": "node", "shared-dir": "/s"})"), Catch::Contains("standby"));
  CHECK_THAT(refusal(R"({"role": "node", "view": "cluster"})"), Catch::Contains("--parent"));
}

TEST_CASE("control settings: mistakes in the file are shown with their place") {
  CHECK(refusal("{\n \"rolle\": \"node\"}") ==
        "f:2:2: unknown key \"rolle\" in the configuration; did you mean \"role\"?");
  CHECK(refusal("{\"role\": \"nodes\"}") ==
        "f:1:10: role: \"nodes\" is no role; there are node, relay, cluster; did you mean "
        "\"node\"?");
  CHECK(refusal("{\"role\": \"node\",\n \"plain\": \"yes\"}") ==
        "f:2:11: plain must be true or false, not a string");
  CHECK(refusal("{\"role\": \"node\", \"parent\": [\"tcp://a:1\", \"ctl:7421\"]}") ==
        "f:1:42: parent: an address begins with tcp://; write it like "
        "tcp://ctl.example.org:7421");
  CHECK(refusal("{\"role\": \"node\", \"cycle\": \"1h\"}") ==
        "f:1:27: cycle: 1h is not between 10ms and 1min");
  CHECK(refusal("{\"role\": 1}") == "f:1:10: role must be a string, not a number");
  CHECK(refusal("{").starts_with("f:1:1: not JSON"));
}

TEST_CASE("control settings: mistakes in the flags") {
  CHECK(refusal("", {"--role", "node", "--log", "/l", "--journal", "/l"}) ==
        "--log excludes --journal");
  CHECK(refusal("", {"--rolle", "node"}) ==
        "--rolle: there is no such flag; did you mean "
        "\"--role\"?");
  CHECK(refusal("", {"node"}) == "node: there is no such argument");
  CHECK(refusal("", {"--role", "node", "--name", "a b"}).starts_with("--name a b: "));
  CHECK(refusal("", {"--role", "node", "--name", "n[1-2]"}).find("is a list") != std::string::npos);
  CHECK(refusal("", {"--role", "node", "--metrics", "9100"}) ==
        "--metrics 9100: wanted HOST:PORT, like 127.0.0.1:9742");
  CHECK(refusal("", {"--role", "node", "--log-level", "loud"}).starts_with("--log-level loud: "));
  CHECK(refusal("", {"--role", "node", "--user", "no-such-user-here"}) ==
        "--user no-such-user-here: there is no user \"no-such-user-here\"");
}

TEST_CASE("control settings: what goes together") {
  struct row {
    std::vector<std::string> words;
    char const* why;
  };
  char const* const here = "tcp://127.0.0.1:1";
  row const rows[] = {
      {{}, "--role is missing"},
      {{"--role", "node", "--listen", here, "--plain"}, "a node has no children"},
      {{"--role", "cluster", "--policy", "p", "--plain"}, "--listen says where"},
      {{"--role", "cluster", "--listen", here, "--plain"}, "--policy says what"},
      {{"--role", "cluster", "--listen", here, "--policy", "p", "--parent", here, "--plain"},
       "nothing is above it"},
      {{"--role", "relay", "--listen", here, "--plain"}, "--parent says whose"},
      {{"--role", "node", "--parent", here, "--policy", "p", "--plain"}, "leave --policy out"},
      {{"--role", "node", "--parent", here}, "--keys DIR says who"},
      {{"--role", "node", "--parent", here, "--plain", "--keys", "k"}, "exclude each other"},
      {{"--role", "node", "--parent", "tcp://10.0.0.1:1", "--plain"}, "is for loopback addresses"},
      {{"--role", "node", "--parent", "tcp://127.evil.org:1", "--plain"}, "for loopback"},
      {{"--role", "node", "--parent", here, "--parent", here, "--plain"}, "is given twice"},
      {{"--role", "node", "--user", "root"}, "--user would take away"}};
  for (auto const& r : rows) CHECK_THAT(refusal("", r.words), Catch::Contains(r.why));
  CHECK(refusal("", {"--role", "node"}) == "accepted");
  CHECK(refusal("", {"--role", "node", "--policy", "p"}) == "accepted");
}

TEST_CASE("control settings: paths are absolute, whoever starts it") {
  CHECK(made("", {"--role", "node", "--policy", "p.json"}).policy.starts_with("/"));
  CHECK(made("", {"--role", "node", "--policy", "/p.json"}).policy == "/p.json");
}

TEST_CASE("control settings: addresses") {
  auto const parse = [](char const* text) { return runtime::host_and_port(text, "w"); };
  CHECK(parse("127.0.0.1:0").first == "127.0.0.1");
  CHECK(parse("[::1]:9100") == std::pair<std::string, std::uint16_t>{"::1", 9100});
  for (char const* wrong : {"", ":", "a", "a:", ":1", "a:65536", "a:-1", "a:1x", "::1:5", "a b:1",
                            "[::1:1", "tcp://a:1"})
    CHECK_THROWS_AS(parse(wrong), error);
  CHECK_NOTHROW(runtime::check_endpoint("tcp://127.0.0.1:*", true, "w"));
  CHECK_THROWS_AS(runtime::check_endpoint("tcp://127.0.0.1:*", false, "w"), error);
  CHECK_THROWS_AS(runtime::check_endpoint("tcp://a:0", true, "w"), error);
  CHECK_THROWS_AS(runtime::check_endpoint("ipc:///x", true, "w"), error);
}

TEST_CASE("control settings: the journal of a node") {
  config const c = made(R"({"role": "node", "journal": "/l", "journal-size": "1.5GiB"})", {});
  CHECK(c.journal == "/l");
  CHECK(c.journal_mib == 1536);
  CHECK(made("", {"--role", "node", "--journal", "/l"}).journal_mib == 256);
  for (char const* size : {"0", "64", "1KiB", "65GiB", "64MiB/s", "-1MiB", ""})
    CHECK(
        refusal("", {"--role", "node", "--journal", "/l", "--journal-size", size}).find("64GiB") !=
        std::string::npos);
  CHECK(refusal("", {"--role", "node", "--journal-size", "1MiB", "--metrics", "none"}) !=
        "accepted");
  CHECK(refusal("", {"--role", "cluster", "--policy", "/p", "--plain", "--listen",
                     "tcp://127.0.0.1:1", "--journal", "/l"})
            .find("leave --journal out") != std::string::npos);
  CHECK(refusal("", {"--role", "node", "--journal-idle", "1s", "--metrics", "none"}) != "accepted");
  CHECK(refusal("", {"--role", "node", "--journal", "/l", "--journal-size", "5GiB"})
            .find("--journal-total is less") != std::string::npos);
  config const many = made("", {"--role", "node", "--journal", "/l", "--journal-size", "5GiB",
                                "--journal-total", "1024GiB", "--journal-idle", "1min"});
  CHECK(many.journal_total_mib == 1 << 20);
  CHECK(many.journal_idle_ns == 60'000'000'000);
}

TEST_CASE("control settings: an old name means the new one, and a warning says so") {
  config const file = made(R"({"role": "node", "log": "/l", "log-size": "2MiB"})", {});
  CHECK(file.journal == "/l");
  CHECK(file.journal_mib == 2);
  REQUIRE(file.warnings.size() == 2);
  CHECK_THAT(file.warnings[0], Catch::Contains("this is called journal now"));
  CHECK(made("", {"--role", "node", "--log", "/l"}).warnings.size() == 1);
  CHECK(made("", {"--role", "node", "--journal", "/l"}).warnings.empty());
  CHECK(refusal("", {"--role", "node", "--journal", "/l", "--log", "/m"}) != "accepted");
}

TEST_CASE("control settings: that users share a journal means nothing, and a warning says so") {
  config const c = made(R"({"role": "node", "journal": "/l", "journal-shared": true})", {});
  REQUIRE(c.warnings.size() == 1);
  CHECK_THAT(c.warnings[0], Catch::Contains("each user has a journal of his own now"));
}
