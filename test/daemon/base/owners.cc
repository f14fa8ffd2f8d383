// SPDX-License-Identifier: Apache-2.0
// Whose a uid is: what a file of ranges says, and what it does not.
#include "base/owners.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "lib/scratch.h"

using namespace sluice;

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

struct subuid_file {
  test::scratch at;
  std::string path = at.dir + "/subuid";
  void write(std::string const& text) const {
    std::ofstream(path) << text;
    chmod(path.c_str(), 0644);
  }
};

std::string in_words(std::vector<uid_range> const& ranges) {
  std::string out;
  for (auto const& r : ranges)
    out += r.user + " " + std::to_string(r.first) + "+" + std::to_string(r.count) + "\n";
  return out;
}

}  // namespace

TEST_CASE("owners: lines that are no ranges are left out", "[owners]") {
  CHECK(in_words(read_uid_ranges("bob:200000:10\nann:100000:65536\n1000:300000:1")) ==
        "ann 100000+65536\nbob 200000+10\n1000 300000+1\n");
  for (char const* wrong :
       {"", "\n\n", "ann", "ann:1", "ann:1:", ":1:2", "ann::2", "ann:x:2", "ann:1:2:3", "ann:-1:2",
        "ann:1:-2", "ann:1:0", "ann:0:5", "ann:1:4294967295", "ann:4294967295:1",
        "ann:4294967296:1", "ann:1: 2", "# ann:1:2x"})
    CHECK(in_words(read_uid_ranges(wrong)) == "");
  CHECK(in_words(read_uid_ranges("ann:1:4294967294")) == "ann 1+4294967294\n");
}

TEST_CASE("owners: of ranges that overlap the first one holds", "[owners]") {
  CHECK(in_words(read_uid_ranges("bob:105:10\nann:100:10\ncid:110:5\ndan:112:1")) ==
        "ann 100+10\ncid 110+5\n");
}

TEST_CASE("owners: a uid of a range is its user's, any other is itself", "[owners]") {
  subuid_file const file;
  file.write("ann:100000:100\nroot:200000:100\ngone:300000:100\ngone:400000:100\n7:500000:2\n");
  int asked = 0;
  owners known(file.path, [&](std::string const& name) -> std::optional<uid_t> {
    ++asked;
    if (name == "ann") return 1000;
    return name == "root" ? std::optional<uid_t>(0) : std::nullopt;
  });
  CHECK(known.of(0, 1) == 0);
  CHECK(known.of(99'999, 1) == 99'999);
  CHECK(known.of(100'100, 1) == 100'100);
  CHECK(asked == 0);
  CHECK(known.of(1000, 1) == 1000);
  CHECK(known.of(100'000, 1) == 1000);
  CHECK(known.of(100'099, 1) == 1000);
  CHECK(known.of(200'050, 1) == 200'000);  // not root
  CHECK(known.of(300'050, 1) == 300'000);
  CHECK(known.of(400'050, 1) == 300'000);
  CHECK(known.of(500'001, 1) == 7);
  CHECK(asked == 3);  // each name once
}

TEST_CASE("owners: a file that changed is read again, once a second at most", "[owners]") {
  subuid_file const file;
  owners known(file.path, [](std::string const&) { return std::optional<uid_t>(1000); });
  CHECK(known.of(100'005, second_ns) == 100'005);
  file.write("ann:100000:100\n");
  CHECK(known.of(100'005, 2 * second_ns - 1) == 100'005);
  CHECK(known.of(100'005, 2 * second_ns) == 1000);
  SECTION("it goes") {
    unlink(file.path.c_str());
    CHECK(known.of(100'005, 4 * second_ns) == 100'005);
  }
  SECTION("others may write it") {
    file.write("ann:100000:1000\n");
    chmod(file.path.c_str(), 0666);
    CHECK(known.of(100'005, 4 * second_ns) == 100'005);
  }
}

TEST_CASE("owners: who had no uid is asked for again, once a minute", "[owners]") {
  subuid_file const file;
  file.write("ann:100000:100\nann:200000:100\n");
  int asked = 0;
  std::optional<uid_t> answer;
  owners known(file.path, [&](std::string const&) {
    ++asked;
    return answer;
  });
  CHECK(known.of(100'000, second_ns) == 100'000);
  CHECK(known.of(200'000, 60 * second_ns) == 100'000);
  CHECK(asked == 1);
  CHECK(known.of(200'000, 61 * second_ns) == 100'000);  // not another one than before
  CHECK(asked == 2);
  answer = 1000;
  CHECK(known.of(100'000, 120 * second_ns) == 100'000);
  CHECK(known.of(100'000, 121 * second_ns) == 1000);
  CHECK(known.of(200'000, 1000 * second_ns) == 1000);
  CHECK(asked == 3);
}

TEST_CASE("owners: no such file, and what is none", "[owners]") {
  for (char const* path : {"/nowhere/subuid", "/dev/zero", "/"}) {
    owners known(path);
    CHECK(known.of(100'000, 1) == 100'000);
  }
}
