// SPDX-License-Identifier: Apache-2.0
// One message of each type as bytes on the wire. When one of these changes, old and new daemons no
// longer understand each other: raise the major version, or change something else.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "unit/wire_random.h"

using namespace sluice;
using namespace sluice::wire;

namespace {

constexpr envelope head{0x1112131415161718, 0x2122232425262728, 0x3132333435363738};

std::string hex_of(message const& m) {
  std::string text;
  char const* const digits = "0123456789abcdef";
  auto const b = test::encoded(head, m);
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (i > 0 && i % 16 == 0) text += '\n';
    text += digits[std::to_integer<unsigned>(b[i]) >> 4];
    text += digits[std::to_integer<unsigned>(b[i]) & 15];
  }
  return text;
}

test::bytes bytes_of(std::string const& hex) {
  test::bytes b;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    b.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return b;
}

report a_report() {
  report r;
  r.lease = {1, 2, {3, 4}, true, {{{5, 6}, 7, 8, true, 9, 10}}};
  r.supplies = {11};
  r.policy_hash = 12;
  r.applied_sequence = 13;
  r.early = true;
  r.streams = {{14, 0, 15, 16, 17, 18, 19, 20, true, 23, 24}};
  r.bins = {{0, 1, 21, 22}};
  return r;
}

grant a_grant() {
  grant g;
  g.lease = {1, 2, 3, 4, true, {{{5, 6}, 7, 8}}};
  g.supplies = {9};
  g.sequence = 10;
  g.streams = {{11, 0, 12, true}};
  return g;
}

/// The table of README.md, from the rows.
std::string readme_table() {
  using layout::row;
  std::ostringstream out;
  unsigned at = 0;
  for (row const& r : layout::rows) {
    switch (r.is) {
      case row::header:
        out << "| **header** | | |\n";
        at = 0;
        break;
      case row::message:
        out << "| **" << r.number << " " << r.name << "** | from " << r.rule << " | |\n";
        break;
      case row::one:
      case row::many:
        out << "| block " << r.number << " `" << r.name << "` | "
            << (r.is == row::one ? "one" : "any number") << " | |\n";
        at = 0;
        break;
      case row::text:
        out << "| block " << r.number << " `" << r.name << "` | up to " << r.bytes << " bytes | "
            << r.rule << " |\n";
        break;
      case row::field:
        out << "| " << at << " | " << r.type << " `" << r.name << "` | " << r.rule << " |\n";
        at += r.bytes;
        break;
      case row::label:
        out << "| " << at << " | " << r.bytes << " bytes `" << r.name << "` | " << r.rule << " |\n";
        at += r.bytes;
        break;
      case row::spare:
        at += r.bytes;
        break;
      case row::may_end:
        out << "| " << at << " | may end here | |\n";
        break;
      case row::end:
        out << "| " << at << " | end | |\n";
        break;
      case row::done:
        break;
    }
  }
  return out.str();
}

}  // namespace

TEST_CASE("wire: the bytes of small messages do not change", "[wire]") {
  CHECK(hex_of(hello{role::node, 1, "n1"}) ==
        "534c5543010001008800000002000000\n"
        "38373635343332311817161514131211\n"
        "28272625242322210000000000000000\n"
        "01005000010000000100000000000000\n"
        "01000000000000006e31000000000000\n"
        "00000000000000000000000000000000\n"
        "00000000000000000000000000000000\n"
        "00000000000000000000000000000000\n"
        "0000000000000000");
  CHECK(hex_of(welcome{role::relay, 1, 2000000, 3000000, 4, "top", 5, true}) ==
        "534c554301000200a000000002000000\n"
        "38373635343332311817161514131211\n"
        "28272625242322210000000000000000\n"
        "02006800010000000400000000000000\n"
        "80841e0000000000c0c62d0000000000\n"
        "0200000001000000746f700000000000\n"
        "00000000000000000000000000000000\n"
        "00000000000000000000000000000000\n"
        "00000000000000000000000000000000\n"
        "00000000000000000500000001000000");
  CHECK(hex_of(policy_part{1, 9, 2, "{}"}) ==
        "534c5543010003005800000002000000\n"
        "38373635343332311817161514131211\n"
        "28272625242322210000000000000000\n"
        "03001000010000000100000000000000\n"
        "09000000020000000400010002000000\n"
        "7b7d000000000000");
  CHECK(hex_of(job_list{{{1, 2, 3, 4, 5, "train", "gold"}}}) ==
        "534c554301000400b000000002000000\n"
        "38373635343332311817161514131211\n"
        "28272625242322210000000000000000\n"
        "05007800010000000100000000000000\n"
        "02000000030000000400000005000000\n"
        "747261696e0000000000000000000000\n"
        "00000000000000000000000000000000\n"
        "00000000000000000000000000000000\n"
        "00000000000000000000000000000000\n"
        "676f6c64000000000000000000000000\n"
        "00000000000000000000000000000000");
  CHECK(hex_of(error{fault::full, "full"}) ==
        "534c5543010007005000000002000000\n"
        "38373635343332311817161514131211\n"
        "28272625242322210000000000000000\n"
        "0e000800010000000500000000000000\n"
        "0f0001000400000066756c6c00000000");
  CHECK(hex_of(bye{}) ==
        "534c5543010008003000000002000000\n"
        "38373635343332311817161514131211\n"
        "28272625242322210000000000000000");
  CHECK(hex_of(restart{}) ==
        "534c5543010009003000000002000000\n"
        "38373635343332311817161514131211\n"
        "28272625242322210000000000000000");
  CHECK(hex_of(question{1, 2, "{}"}) ==
        "534c554301000a005800000002000000\n"
        "38373635343332311817161514131211\n"
        "28272625242322210000000000000000\n"
        "10001000010000000100000000000000\n"
        "02000000000000001100010002000000\n"
        "7b7d000000000000");
  CHECK(hex_of(answer{3, "[]"}) ==
        "534c554301000b005000000002000000\n"
        "38373635343332311817161514131211\n"
        "28272625242322210000000000000000\n"
        "12000800010000000300000000000000\n"
        "13000100020000005b5d000000000000");
}

TEST_CASE("wire: the bytes of reports and grants do not change", "[wire]") {
  CHECK(hex_of(a_report()) ==
        "534c5543010005002801000002000000\n"
        "38373635343332311817161514131211\n"
        "28272625242322210000000000000000\n"
        "06004000010000000100000000000000\n"
        "02000000000000000300000000000000\n"
        "04000000000000000c00000000000000\n"
        "0d000000000000000100000001000000\n"
        "00000000000000000700380001000000\n"
        "0b0000000a0000000500000000000000\n"
        "06000000000000000700000000000000\n"
        "09000000000000000800000000000000\n"
        "01000000000000000800300001000000\n"
        "0e00000000000000000000000f000000\n"
        "11000000000000001200000000000000\n"
        "13000000140000001000000000000000\n"
        "09001000010000000000000017000000\n"
        "18000000000000000a00180001000000\n"
        "00000000010000001500000000000000\n"
        "1600000000000000");
  CHECK(hex_of(a_grant()) ==
        "534c554301000600b800000002000000\n"
        "38373635343332311817161514131211\n"
        "28272625242322210000000000000000\n"
        "0b003000010000000100000000000000\n"
        "02000000000000000300000000000000\n"
        "04000000000000000a00000000000000\n"
        "01000000000000000c00280001000000\n"
        "09000000000000000500000000000000\n"
        "06000000000000000700000000000000\n"
        "08000000000000000d00180001000000\n"
        "0b000000000000000000000001000000\n"
        "0c00000000000000");
}

TEST_CASE("wire: what minor version 0 sent is understood", "[wire]") {
  auto const w =
      decode(bytes_of("534c5543010002009800000000000000"
                      "38373635343332311817161514131211"
                      "28272625242322210000000000000000"
                      "02006000010000000400000000000000"
                      "80841e0000000000c0c62d0000000000"
                      "0200000001000000746f700000000000"
                      "00000000000000000000000000000000"
                      "00000000000000000000000000000000"
                      "00000000000000000000000000000000"
                      "0000000000000000"));
  REQUIRE(w.refused == nullptr);
  CHECK(std::get<welcome>(w.body).name == "top");
  CHECK(std::get<welcome>(w.body).minor == 0);
  CHECK_FALSE(std::get<welcome>(w.body).lacks_pool);
  auto const r =
      decode(bytes_of("534c5543010005002001000000000000"
                      "38373635343332311817161514131211"
                      "28272625242322210000000000000000"
                      "06003800010000000100000000000000"
                      "02000000000000000300000000000000"
                      "04000000000000000c00000000000000"
                      "0d000000000000000100000001000000"
                      "07003800010000000b0000000a000000"
                      "05000000000000000600000000000000"
                      "07000000000000000900000000000000"
                      "08000000000000000100000000000000"
                      "08003000010000000e00000000000000"
                      "000000000f0000001100000000000000"
                      "12000000000000001300000014000000"
                      "10000000000000000900100001000000"
                      "00000000170000001800000000000000"
                      "0a001800010000000000000001000000"
                      "15000000000000001600000000000000"));
  REQUIRE(r.refused == nullptr);
  CHECK_FALSE(std::get<report>(r.body).same_streams);
  CHECK(hex_of(r.body) == hex_of(a_report()));
}

TEST_CASE("wire: README.md shows the layout as it is", "[wire]") {
  std::ifstream file("daemon/wire/README.md");
  std::stringstream text;
  text << file.rdbuf();
  INFO("expected in daemon/wire/README.md:\n" << readme_table());
  CHECK(text.str().find(readme_table()) != std::string::npos);
}
