// SPDX-License-Identifier: Apache-2.0
// Cost files: what can be said, what is refused, what is charged for things that nobody measured,
// and of which mount a file is true.
#include "policy/cost_file.h"

#include <catch2/catch.hpp>
#include <map>

#include "base/error.h"

using namespace sluice;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

constexpr char const* small = R"({"version": 1, "max_vops": 8000,
  "read": [[4096, 1], [1048576, 40]], "write": [[4096, 2], [1048576, 80]]})";

policy::cost_file parse(std::string const& text) { return policy::parse_cost_file(text, "c"); }

std::string refusal(std::string const& text) {
  try {
    parse(text);
  } catch (error const& e) {
    CHECK(e.status() == exit_usage);
    return e.what();
  }
  return "accepted";
}

/// A sound file with one more member.
std::string with(std::string const& member) {
  std::string text = small;
  text.back() = ',';
  return text.append(member).append("}");
}

std::string with_read(std::string const& curve) {
  return R"({"version": 1, "max_vops": 8000, "read": )" + curve + "}";
}

unsigned op_of(core::op what) { return static_cast<unsigned>(what); }

policy::mount mount_at(char const* type, char const* source, std::uint64_t device) {
  policy::mount m;
  m.device = device;
  m.point = "/s";
  m.type = type;
  m.source = source;
  m.options = "rw";
  return m;
}

}  // namespace

TEST_CASE("cost file: a small one by hand says all that is needed", "[cost]") {
  auto const c = parse(small);
  CHECK(c.max_vops == 8000);
  CHECK(c.provisionable_vops == 4000);
  CHECK_FALSE(c.from.is_known());
  auto const t = policy::to_table(c);
  CHECK(core::validate(t) == nullptr);
  CHECK(t.read_milli[1][0] == 1000);  // flat below the first point
  CHECK(t.read_milli[1][3] == 1000);
  CHECK(t.read_milli[1][11] == 40000);
  CHECK(t.read_milli[1][13] == 160000);  // proportional above the last
  // Linear in bytes between: 1 + 39 * (512 - 4) / (1024 - 4) KiB.
  CHECK(t.read_milli[1][10] == 20424);
  CHECK(t.write_milli[1][3] == 2000);
}

TEST_CASE("cost file: what is not there costs what its kin costs", "[cost]") {
  auto t = policy::to_table(parse(small));
  CHECK(t.read_milli[0][5] == t.read_milli[1][5]);
  CHECK(t.write_milli[0][0] == t.write_milli[1][0] + 1000);  // one page is read first
  CHECK(t.write_milli[0][3] == t.write_milli[1][3] + 2000);  // two
  CHECK(t.op_milli[op_of(core::op::stat)] == 1000);          // as a small read
  CHECK(t.op_milli[op_of(core::op::rename)] == 2000);        // as a small write
  CHECK(t.create_milli == 2000);
  CHECK(t.op_milli[op_of(core::op::fsync)] == 2000);
  CHECK(t.op_milli[op_of(core::op::close)] == 0);
  CHECK(t.op_milli[op_of(core::op::seek)] == 0);
  CHECK(t.op_milli[op_of(core::op::read)] == 0);
  t = policy::to_table(parse(with(R"("ops": {"open": 7, "unlink": {"cost": 30}, "close": 0.5})")));
  CHECK(t.op_milli[op_of(core::op::opendir)] == 7000);
  CHECK(t.op_milli[op_of(core::op::readdir)] == 7000);
  CHECK(t.op_milli[op_of(core::op::stat)] == 1000);  // read and open are as near: the first row
  CHECK(t.op_milli[op_of(core::op::rename)] == 30000);
  CHECK(t.create_milli == 2000);
  CHECK(t.op_milli[op_of(core::op::close)] == 500);
  t = policy::to_table(parse(with_read("[[4096, 1], [8192, 3]]")));
  CHECK(t.write_milli[1][4] == 3000);
}

TEST_CASE("cost file: each op has its kin once", "[cost]") {
  std::map<std::string, unsigned> rows;
#define KIN(op, kin) ++rows[#op];
#include "policy/kin.def"
  for (auto const& row : core::op_table)
    if (!row.has_bytes) CHECK(rows[std::string(row.name)] == 1);
  CHECK(rows["create"] == 1);
  CHECK(rows.size() == core::op_count - 2 + 1);
}

TEST_CASE("cost file: absurd ones are refused, with the place", "[cost]") {
  CHECK_THAT(refusal("{}"), Equals("c:1:1: the cost file has no \"version\""));
  CHECK_THAT(refusal(R"({"version": 2})"), Contains("version is 2; this sluice reads version 1"));
  CHECK_THAT(refusal(R"({"version": 1})"), Contains("has no \"max_vops\""));
  CHECK_THAT(refusal(R"({"version": 1, "max_vops": 0})"), Contains("max_vops is 0, wanted 1 to"));
  CHECK_THAT(refusal(R"({"version": 1, "max_vops": -5})"), Contains("max_vops is -5"));
  CHECK_THAT(refusal(R"({"version": 1, "max_vops": 1e999})"), Contains("c:1:"));
  CHECK_THAT(refusal(R"({"version": 1, "max_vops": 10})"), Contains("neither \"read\" nor"));
  CHECK_THAT(refusal(with(R"("provisionable_vops": 9000)")), Contains("more than max_vops"));
  CHECK_THAT(refusal(with(R"("max_vopz": 1)")), Contains("did you mean \"max_vops\"?"));
  CHECK_THAT(refusal(with_read("[[4096, 1]]")), Contains("fewer than two points"));
  CHECK_THAT(refusal(with_read("[]")), Contains("fewer than two points"));
  CHECK_THAT(refusal(with_read("[[4096, 0], [8192, 1]]")),
             Equals("c:1:50: read[0][1] is 0 VOP, wanted 0.001 to 1e+06"));
  CHECK_THAT(refusal(with_read("[[4096, -1], [8192, 1]]")), Contains("is -1 VOP"));
  CHECK_THAT(refusal(with_read("[[4096, 1], [8192, 1e7]]")), Contains("is 1e+07 VOP"));
  CHECK_THAT(refusal(with_read("[[4096, null], [8192, 1]]")), Contains("must be a number"));
  CHECK_THAT(refusal(with_read("[[4095, 1], [8192, 1]]")), Contains("wanted a power of two"));
  CHECK_THAT(refusal(with_read("[[8388608, 1], [8192, 1]]")), Contains("wanted a power of two"));
  CHECK_THAT(refusal(with_read("[[8192, 1], [4096, 1]]")), Contains("sizes must grow"));
  CHECK_THAT(refusal(with_read("[[4096, 1], [4096, 1]]")), Contains("sizes must grow"));
  CHECK_THAT(refusal(with_read("[[4096, 1, 2], [8192, 1]]")), Contains("wanted [bytes, cost]"));
  CHECK_THAT(refusal(with_read(R"({"unaligned": [[4096, 1], [8192, 1]]})")),
             Contains("read has no \"aligned\""));
  CHECK_THAT(refusal(with_read(R"([{"bytes": 4096, "cots": 1}, [8192, 1]])")),
             Contains("did you mean \"cost\"?"));
  CHECK_THAT(refusal(with(R"("ops": {"opne": 1})")), Contains("did you mean \"open\"?"));
  CHECK_THAT(refusal(with(R"("ops": {"read": 1})")), Contains("read moves bytes"));
  CHECK_THAT(refusal(with(R"("ops": {"open": 0})")), Contains("ops.open is 0 VOP"));
  CHECK_THAT(refusal(with(R"("provenance": {"fs": "ext4"})")), Contains("has no \"device\""));
  CHECK_THAT(refusal(with(R"("pairs": [{"kind": "rx"}])")), Contains("pairs[0].kind"));
  CHECK_THAT(refusal(with(R"("charge": "devices")")), Contains("did you mean \"device\"?"));
  CHECK_THAT(refusal("{\"version\": 1"), Contains("not JSON"));
}

TEST_CASE("cost file: what is written is read back the same", "[cost]") {
  policy::cost_file c = parse(with(R"("charge": "device",
    "ops": {"open": {"cost": 0.25, "per_s": 32000.5,
    "spread": 0.031, "unstable": true, "p50_us": 3, "p99_us": 9.5, "threads": 4}},
    "provenance": {"path": "/s", "device": "7:1", "fs": "ext4", "source": "/dev/x \"y\"",
      "identity": "00ff", "io": "direct", "time": "2026-11-24T00:00:00Z", "load": 1.5},
    "beside": [{"kind": "append", "bytes": 4096, "cost": 3}],
    "interference": [{"readers": 0.75, "read_bytes": 4096, "write_bytes": 65536, "vops": 5000}],
    "pairs": [{"kind": "rw", "bytes": [4096, 65536], "ratio": [0.98, 1], "mmr": 0.98}])"));
  c.read[0] = c.read[1];
  c.read[0][0].cost = 1.23456789;
  std::string const text = policy::cost_file_text(c);
  auto const back = parse(text);
  CHECK(policy::cost_file_text(back) == text);
  CHECK(back.from.source == "/dev/x \"y\"");
  CHECK(back.from.load == 1.5);
  CHECK(policy::to_table(back).by_device == 1);
  CHECK(back.read[0][0].cost == 1.23457);
  REQUIRE(back.ops.size() == 1);
  CHECK(back.ops[0].how.is_unstable);
  CHECK(back.ops[0].how.per_s == 32000.5);
  CHECK(back.ops[0].how.threads == 4);
  REQUIRE(back.beside.size() == 1);
  REQUIRE(back.grid.size() == 1);
  CHECK(back.grid[0].write_bytes == 65536);
  REQUIRE(back.pairs.size() == 1);
  CHECK(back.pairs[0].ratio[0] == 0.98);
}

TEST_CASE("cost file: another mount is refused with the reason", "[cost]") {
  std::uint64_t const loop1 = (7ull << 32) | 1, loop2 = (7ull << 32) | 2;
  policy::place const where = {"/s/dir", loop1, 2, 0, 0xabc};
  auto const from = policy::provenance_of(mount_at("ext4", "/dev/loop1", loop1), where);
  auto const why = [&](policy::mount const& m, std::uint64_t device, std::uint64_t identity) {
    return policy::why_other_mount(from, m, {"/t", device, 2, 0, identity});
  };
  CHECK(why(mount_at("ext4", "/dev/loop1", loop1), loop1, 0xabc).empty());
  CHECK_THAT(why(mount_at("xfs", "/dev/loop1", loop1), loop1, 0xabc),
             Equals("the file system is xfs, and the costs are of ext4"));
  CHECK_THAT(why(mount_at("ext4", "/dev/loop2", loop1), loop1, 0xabc),
             Contains("what is mounted is /dev/loop2"));
  CHECK_THAT(why(mount_at("ext4", "/dev/loop1", loop2), loop2, 0xabc),
             Contains("the device is 7:2"));
  CHECK_THAT(why(mount_at("ext4", "/dev/loop1", loop1), loop1, 0xdef), Contains("identity"));
  CHECK(policy::why_other_mount({}, mount_at("xfs", "none", 1), {}).empty());
}

TEST_CASE("cost file: the number of a network mount may change", "[cost]") {
  policy::place const then = {"/n", 44, 2, 0, 0}, now = {"/n", 51, 2, 0, 0};
  auto const from = policy::provenance_of(mount_at("nfs4", "server:/a", 44), then);
  CHECK(policy::why_other_mount(from, mount_at("nfs4", "server:/a", 51), now).empty());
  CHECK_FALSE(policy::why_other_mount(from, mount_at("nfs4", "server:/b", 51), now).empty());
}

TEST_CASE("a cost file of many values is refused, whatever they are", "[cost_file]") {
  std::string text = R"({"a":1)";
  for (int i = 0; i < 6000; ++i) text += ",\"" + std::to_string(i) + "\":1";
  CHECK_THROWS_WITH(policy::parse_cost_file(text + "}", "c"), Contains("too many values"));
}
