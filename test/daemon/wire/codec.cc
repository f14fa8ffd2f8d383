// SPDX-License-Identifier: Apache-2.0
// Bytes <-> messages: what was encoded comes back the same, everything else is refused whole or
// means something valid; peers of other versions are told so.
#include "wire/codec.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "wire_random.h"

using namespace sluice;
using test::bytes;
using test::encoded;

namespace {

template <class T>
void put(bytes& b, std::size_t at, T value) {
  std::memcpy(b.data() + at, &value, sizeof value);
}

template <class T>
T at(bytes const& b, std::size_t where) {
  T value;
  std::memcpy(&value, b.data() + where, sizeof value);
  return value;
}

constexpr std::size_t major_at = 4, type_at = 6, length_at = 8, spare_at = 12;

/// Whatever decode() accepts is valid: encoding it again gives bytes that mean the same.
void check_valid(bytes const& b) {
  auto const d = wire::decode(b);
  if (d.refused != nullptr) return;
  bytes const again = encoded(d.head, d.body);
  auto const second = wire::decode(again);
  REQUIRE(second.refused == nullptr);
  REQUIRE(encoded(second.head, second.body) == again);
}

wire::report sample_report() {
  wire::report r;
  r.supplies = {7, 9};
  r.lease.supply.resize(2);
  r.lease.supply[0].held = 5;
  wire::stream_report s;
  s.job = 1;
  s.supply = 1;
  s.served = 2;
  r.streams = {s, s};
  policies::demand_bins bins;
  bins.nodes[3] = 4;
  bins.demand[3] = 99;
  bins.blocked = 1;
  bins.blocked_weight = 6;
  wire::put_bins(r, 0, bins);
  return r;
}

/// A copy of `b` whose block at `begin` has entries of `wanted` bytes: cut, or filled with `with`.
bytes with_entries(bytes const& b, std::size_t begin, unsigned wanted, std::byte with) {
  auto const had = at<std::uint16_t>(b, begin + 2);
  auto const count = at<std::uint32_t>(b, begin + 4);
  bytes out(b.begin(), b.begin() + static_cast<long>(begin) + 8);
  put(out, begin + 2, static_cast<std::uint16_t>(wanted));
  for (std::uint32_t i = 0; i < count; ++i)
    for (unsigned k = 0; k < wanted; ++k)
      out.push_back(k < had ? b[begin + 8 + i * had + k] : with);
  out.insert(out.end(), b.begin() + static_cast<long>(begin) + 8 + had * count, b.end());
  put(out, length_at, static_cast<std::uint32_t>(out.size()));
  return out;
}

}  // namespace

TEST_CASE("codec: the largest report of a node fits, with any number of supplies",
          "[wire][codec]") {
  wire::report r;
  for (std::uint32_t supplies = 1; supplies <= most_supplies; ++supplies) {
    r.supplies.push_back(supplies);
    r.lease.supply.emplace_back();
    r.speeds.push_back({supplies - 1, {1, 1, 0, 1}});
    std::size_t const most = wire::most_streams(supplies);
    REQUIRE(most >= 500);
    r.streams.resize(most);
    for (std::uint32_t i = 0; i < most; ++i) r.streams[i].supply = i % supplies;
    bytes const b = encoded({1, 1, 1}, r);
    CAPTURE(supplies);
    REQUIRE(b.size() <= wire::most_bytes_node);
    REQUIRE(b.size() <= wire::bytes_of({.supplies = supplies, .streams = most}));
    REQUIRE(wire::decode(b).refused == nullptr);
  }
}

TEST_CASE("wire: every message comes back as it was sent", "[wire]") {
  std::mt19937_64 random(1);
  for (std::size_t which = 0; which < test::message_count; ++which)
    for (int i = 0; i < 500; ++i) {
      auto const head = test::random_envelope(random);
      auto const m = test::random_message(which, random);
      bytes const b = encoded(head, m);
      auto const d = wire::decode(b);
      INFO(which << " " << (d.refused != nullptr ? d.refused : ""));
      REQUIRE(d.refused == nullptr);
      REQUIRE(d.body.index() == which);
      REQUIRE(d.head.incarnation == head.incarnation);
      REQUIRE(d.head.sequence == head.sequence);
      REQUIRE(d.head.cycle == head.cycle);
      REQUIRE(encoded(d.head, d.body) == b);
    }
}

TEST_CASE("wire: a report comes back field by field", "[wire]") {
  wire::report r = sample_report();
  r.lease.child_incarnation = 11;
  r.lease.t_child = -12;
  r.lease.heard = {13, 14};
  r.lease.lend = true;
  r.lease.supply[1] = {{15, 16}, 17, 19, 20};
  r.policy_hash = 21;
  r.applied_sequence = 22;
  r.early = true;
  r.streams[0].blocked_ppm = 23;
  r.streams[0].nodes = 24;
  auto const d = wire::decode(encoded({}, r));
  REQUIRE(d.refused == nullptr);
  auto const& got = std::get<wire::report>(d.body);
  CHECK(got.lease.child_incarnation == 11);
  CHECK(got.lease.t_child == -12);
  CHECK(got.lease.heard.incarnation == 13);
  CHECK(got.lease.heard.t_parent == 14);
  CHECK(got.lease.lend);
  CHECK(got.supplies == r.supplies);
  CHECK(got.lease.supply[1].applied == lease::version{15, 16});
  CHECK(got.lease.supply[1].held == 17);
  CHECK(got.lease.supply[1].lent == 19);
  CHECK(got.lease.supply[1].members == 20);
  CHECK(got.policy_hash == 21);
  CHECK(got.applied_sequence == 22);
  CHECK(got.early);
  REQUIRE(got.streams.size() == 2);
  CHECK(got.streams[0].blocked_ppm == 23);
  CHECK(got.streams[0].nodes == 24);
  CHECK(got.streams[0].has_bins);
  policies::demand_bins const bins =
      wire::histogram(got.streams[0].blocked, got.streams[0].blocked_weight, got.bins);
  CHECK(bins.nodes[3] == 4);
  CHECK(bins.demand[3] == 99);
  CHECK(bins.blocked == 1);
  CHECK(bins.blocked_weight == 6);
  CHECK_FALSE(got.streams[1].has_bins);
}

TEST_CASE("wire: prefixes are refused, flipped bits refused or valid", "[wire]") {
  std::mt19937_64 random(2);
  for (std::size_t which = 0; which < test::message_count; ++which)
    for (int i = 0; i < 4; ++i) {
      bytes const b = encoded(test::random_envelope(random), test::random_message(which, random));
      for (std::size_t n = 0; n<b.size(); n += b.size()> 4000 ? 37 : 1) {
        REQUIRE(wire::decode({b.data(), n}).refused != nullptr);
        bytes said(b.begin(), b.begin() + static_cast<long>(n));  // with a length that is right
        if (n >= wire::layout::header_bytes) put(said, length_at, static_cast<std::uint32_t>(n));
        check_valid(said);
      }
      for (std::size_t bit = 0; bit<b.size() * 8; bit += b.size()> 4000 ? 61 : 1) {
        bytes flipped = b;
        flipped[bit / 8] ^= std::byte{1} << bit % 8;
        check_valid(flipped);
      }
    }
}

TEST_CASE("wire: random bytes after a good header are refused or valid", "[wire]") {
  std::mt19937_64 random(3);
  unsigned refused = 0;
  for (int i = 0; i < 20000; ++i) {
    bytes b = encoded({}, test::random_message(random() % test::message_count, random));
    if (b.size() == wire::layout::header_bytes || b.size() > 4000) continue;
    for (unsigned n = 1 + random() % 4; n > 0; --n)
      b[48 + random() % (b.size() - 48)] = static_cast<std::byte>(random());
    refused += wire::decode(b).refused != nullptr;
    check_valid(b);
  }
  CHECK(refused > 0);
}

TEST_CASE("wire: sizes that the bytes do not back up are refused", "[wire]") {
  bytes b = encoded({}, sample_report());
  std::size_t const holdings = 48 + 8 + 64;
  REQUIRE(at<std::uint16_t>(b, holdings) == 7);
  bytes many = b;
  put(many, holdings + 4, 0xffffffffu);
  CHECK(wire::decode(many).refused != nullptr);
  bytes wide = b;
  put(wide, holdings + 2, static_cast<std::uint16_t>(0xfff8));
  CHECK(wire::decode(wide).refused != nullptr);
  bytes longer = b;
  longer.resize(b.size() + 8);
  CHECK(wire::decode(longer).refused != nullptr);
  put(longer, length_at, static_cast<std::uint32_t>(longer.size()));
  CHECK(wire::decode(longer).refused != nullptr);  // a block of kind 0
}

TEST_CASE("wire: contradictions are refused", "[wire]") {
  auto const refused = [](wire::message const& m) {
    return wire::decode(encoded({}, m)).refused != nullptr;
  };
  wire::report r = sample_report();
  CHECK_FALSE(refused(r));
  r.streams[0].supply = 2;
  CHECK(refused(r));
  r = sample_report();
  r.supplies = {7, 7};
  CHECK(refused(r));
  r = sample_report();
  r.bins.push_back({0, 2, 1, 1});  // before the one that is there
  CHECK(refused(r));
  r.bins[0] = {0, 2, 1, 1}, r.bins[1] = {0, 2, 1, 1};
  CHECK(refused(r));
  r.bins[1] = {0, 3, 1, 1};
  CHECK_FALSE(refused(r));
  r.bins[1] = {1, 3, 1, 1};  // of a stream without a histogram
  CHECK(refused(r));
  r = sample_report();
  r.same_streams = true;
  CHECK(refused(r));
  wire::grant g;
  g.supplies = {1};
  g.lease.supply.resize(1);
  g.streams = {{1, 0, 5}};
  CHECK_FALSE(refused(g));
  g.streams[0].supply = 1;
  CHECK(refused(g));
  CHECK(refused(wire::policy_part{1, 10, 5, "123456"}));
  CHECK_FALSE(refused(wire::policy_part{1, 10, 5, "12345"}));
}

TEST_CASE("wire: what does not fit is made to fit", "[wire]") {
  wire::report r = sample_report();
  r.streams[0].served = ~std::uint64_t{0};
  auto d = wire::decode(encoded({}, r));
  REQUIRE(d.refused == nullptr);
  CHECK(std::get<wire::report>(d.body).streams[0].served == wire::most_rate);
  d = wire::decode(encoded({}, wire::job_list{{{1, 2, 3, 4, 5, std::string(99, 'x'), "a\nb"}}}));
  REQUIRE(d.refused == nullptr);
  CHECK(std::get<wire::job_list>(d.body).jobs[0].name == std::string(63, 'x'));
  CHECK(std::get<wire::job_list>(d.body).jobs[0].qos_class == "a?b");
  d = wire::decode(encoded({}, wire::error{wire::fault::displaced, std::string(200, 'y')}));
  REQUIRE(d.refused == nullptr);
  CHECK(std::get<wire::error>(d.body).text == std::string(80, 'y'));
}

TEST_CASE("wire: entries and messages of another length are refused", "[wire]") {
  bytes const b = encoded({1, 2, 3}, sample_report());
  std::size_t const holdings = 48 + 8 + 64;
  CHECK(wire::decode(with_entries(b, holdings, 40, {})).refused == nullptr);
  for (std::uint16_t size : {32, 48})
    CHECK(wire::decode(with_entries(b, holdings, size, std::byte{0xff})).refused != nullptr);
  bytes appended = b;  // a block that we do not know
  bytes const extra = encoded({}, wire::error{wire::fault::displaced, "xy"});
  appended.insert(appended.end(), extra.begin() + 48, extra.end());
  put(appended, length_at, static_cast<std::uint32_t>(appended.size()));
  CHECK(wire::decode(appended).refused != nullptr);
  bytes unknown = encoded({}, wire::bye{});
  put(unknown, type_at, static_cast<std::uint16_t>(77));
  CHECK(wire::decode(unknown).refused != nullptr);
}

TEST_CASE("wire: another major version is told apart, its errors are read", "[wire]") {
  bytes b = encoded({}, wire::hello{wire::role::node, 1, "n1"});
  put(b, major_at, static_cast<std::uint16_t>(wire::major_version + 1));
  CHECK(wire::decode(b).refused != nullptr);
  CHECK(wire::decode(b).other_major);
  put(b, spare_at, static_cast<std::uint16_t>(4));  // it has a meaning there
  CHECK(wire::decode(b).other_major);
  b = encoded({}, wire::error{wire::fault::version, "too old"});
  put(b, major_at, static_cast<std::uint16_t>(wire::major_version + 1));
  put(b, spare_at, static_cast<std::uint16_t>(4));
  auto const d = wire::decode(b);
  REQUIRE(d.refused == nullptr);
  CHECK(std::get<wire::error>(d.body).text == "too old");
}

TEST_CASE("wire: no user finds a name with the key of another's job", "[wire]") {
  // The two have one FNV-1a of "UID/NAME", which was the key once.
  char const* const met = "aodmPSQrqiUW1S_ITgCAeUEjb";
  REQUIRE(wire::peer_key(64001, "hydro") == wire::peer_key(64002, met));
  CHECK(wire::job_key(64001, "hydro") != wire::job_key(64002, met));
}

TEST_CASE("wire: keys do not change", "[wire]") {
  CHECK(wire::job_key(1000, "train") == wire::job_key(1000, "train"));
  CHECK(wire::job_key(1000, "train") != wire::job_key(1001, "train"));
  CHECK(wire::job_key(10, "0/a") != wire::job_key(100, "/a"));
  core::job_id const train = wire::job_key(1000, "train");
  CHECK(train.high == 0xd1efe90c5b78ae5b);
  CHECK(train.low == 0xf9ea9a1aad23baf3);
  CHECK(wire::peer_key(0, "ctl") == 0x1496f4ab6248b041);
  CHECK(wire::supply_key("metadata", "scratch") != wire::supply_key("data", "scratch"));
  CHECK(wire::class_key("") != 0);
}
