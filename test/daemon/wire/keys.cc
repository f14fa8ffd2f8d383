// SPDX-License-Identifier: Apache-2.0
// Keys on disk: made private, read back, and every mistake said with its place and remedy.
#include "wire/keys.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "lib/scratch.h"

using namespace sluice;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

using test::scratch;

int keys(std::vector<std::string> words) {
  words.insert(words.begin(), "keys");
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  int const saved = dup(1);  // what it prints is for people
  std::fflush(stdout);
  FILE* const nowhere = std::fopen("/dev/null", "w");
  dup2(fileno(nowhere), 1);
  auto const restore = [&] {
    std::fflush(stdout);
    dup2(saved, 1);
    close(saved);
    std::fclose(nowhere);
  };
  try {
    int const status = wire::keys_main(static_cast<int>(argv.size()) - 1, argv.data());
    restore();
    return status;
  } catch (...) {
    restore();
    throw;
  }
}

unsigned mode_of(std::string const& path) {
  struct stat st = {};
  return stat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

void write(std::string const& path, std::string const& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("keys: made, allowed, read back", "[wire][keys]") {
  scratch const at;
  std::string const ctl = at.dir + "/ctl", n1 = at.dir + "/n1";
  CHECK(keys({"new", "--dir", ctl, "ctl"}) == 0);
  CHECK(keys({"new", "--dir", n1, "n1"}) == 0);
  CHECK(keys({"allow", "--dir", ctl, "--role", "node", "n1", n1 + "/public"}) == 0);
  fs::copy_file(ctl + "/public", n1 + "/parent.pub");
  CHECK(mode_of(ctl) == 0700);
  CHECK(mode_of(ctl + "/secret") == 0600);
  auto const parent = wire::read_keys(ctl), child = wire::read_keys(n1);
  CHECK(parent.name == "ctl");
  CHECK(child.parent_key == parent.public_key);
  CHECK(parent.parent_key == wire::key{});
  REQUIRE(parent.allowed.contains(child.public_key));
  CHECK(parent.allowed.at(child.public_key).name == "n1");
  CHECK(parent.allowed.at(child.public_key).who == wire::role::node);
  CHECK(keys({"list", "--dir", ctl}) == 0);
  CHECK(keys({"check", "--dir", n1}) == 0);
  for (auto const& entry : fs::directory_iterator(ctl))  // nothing half-made is left
    CHECK(entry.path().filename().string()[0] != '.');
}

TEST_CASE("keys: a name has one key, a key one name", "[wire][keys]") {
  scratch const at;
  std::string const ctl = at.dir + "/ctl";
  keys({"new", "--dir", ctl, "ctl"});
  std::string const a = wire::hex(wire::new_key_pair().public_key);
  std::string const b = wire::hex(wire::new_key_pair().public_key);
  keys({"allow", "--dir", ctl, "n1", a});
  CHECK_THROWS_WITH(keys({"allow", "--dir", ctl, "n2", a}), Contains("one key, one name"));
  keys({"allow", "--dir", ctl, "--role", "relay", "n1", b});
  auto const list = wire::read_keys(ctl).allowed;
  REQUIRE(list.size() == 1);
  CHECK(wire::hex(list.begin()->first) == b);
  CHECK(list.begin()->second.who == wire::role::relay);
  CHECK_THROWS_AS(keys({"new", "--dir", ctl, "ctl"}), sluice::error);
  keys({"revoke", "--dir", ctl, "n1"});
  CHECK(wire::read_keys(ctl).allowed.empty());
  CHECK_THROWS_AS(keys({"revoke", "--dir", ctl, "n1"}), sluice::error);
}

TEST_CASE("keys: several parents, in the order of their addresses", "[wire][keys]") {
  scratch const at;
  keys({"new", "--dir", at.dir, "n1"});
  auto const a = wire::new_key_pair().public_key, b = wire::new_key_pair().public_key;
  write(at.dir + "/parent.pub",
        "# the controllers\n" + wire::hex(a) + " c1\n\n" + wire::hex(b) + " c2\n");
  auto const s = wire::read_keys(at.dir);
  CHECK(s.parent_key == a);
  CHECK(s.more_parents == std::vector<wire::key>{b});
}

TEST_CASE("keys: mistakes are said with place and remedy", "[wire][keys]") {
  scratch const at;
  auto const wrong = [&](std::string const& what) {
    CHECK_THROWS_WITH(wire::read_keys(at.dir), Contains(what));
  };
  wrong("sluiced keys new");
  keys({"new", "--dir", at.dir, "n1"});
  chmod((at.dir + "/secret").c_str(), 0640);
  wrong("chmod 600");
  chmod((at.dir + "/secret").c_str(), 0600);
  std::string const zero(64, '0'), good = wire::hex(wire::new_key_pair().public_key);
  write(at.dir + "/parent.pub", zero + " ctl\n");
  wrong("parent.pub:1");
  write(at.dir + "/parent.pub", "\n");
  wrong("empty");
  write(at.dir + "/parent.pub", good + " ctl\n");
  chmod((at.dir + "/parent.pub").c_str(), 0666);
  wrong("open to others");
  chmod((at.dir + "/parent.pub").c_str(), 0644);
  write(at.dir + "/allowed", "# peers\n" + good + " n1 emperor\n");
  wrong("allowed:2");
  write(at.dir + "/allowed", good + " n1\n");
  wrong("no role");
  write(at.dir + "/allowed", good + " n/1 node\n");
  wrong("allowed:1");
  write(at.dir + "/allowed", good + " n1 node\n" + good + " n2 node\n");
  wrong("twice");
  write(at.dir + "/allowed", good.substr(1) + " n1 node\n");
  wrong("not a key");
  write(at.dir + "/secret", "name n1\npublic " + good + "\nsecret " + good + "\n");
  wrong("do not belong together");
  write(at.dir + "/secret", "name n1\npublic " + good + "\n");
  wrong("missing");
}
