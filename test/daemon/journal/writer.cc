// SPDX-License-Identifier: Apache-2.0
// The log's parts one by one: what is on disk, what is refused, and writers that share a flush.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <thread>

#include "journal/scan.h"
#include "journal/slots.h"
#include "order_disk.h"
#include "roomy_writer.h"

using namespace sluice::journal;
using sluice::test::roomy_writer;
using sluice::test::simulated_disk;

namespace {

superblock made(simulated_disk& d) {
  std::byte const id[16] = {std::byte{7}};
  REQUIRE(make_log(d, first_superblock(d.bytes() - area_begin, 42, id, 1000)) == 0);
  return read_slots(d).in_force;
}

surroundings quiet() {
  return {[] { return std::uint64_t{5}; },
          [] {
            return static_cast<std::uint64_t>(
                std::chrono::steady_clock::now().time_since_epoch().count());
          }};
}

int home_is_safe() { return 0; }

record data_record(std::span<std::byte const> bytes, std::uint64_t epoch = 0) {
  record r;
  r.what = kind::data;
  r.file.handle = "handle";
  r.file.fs.fill(9);
  r.bytes = bytes;
  r.epoch = epoch;
  return r;
}

record unlink_record() {
  record r;
  r.what = kind::unlink;
  r.mode = S_IFREG;
  r.file.handle = r.directory.handle = "h";
  r.name = "name";
  return r;
}

std::vector<std::byte> payload_of(record const& r) {
  std::vector<std::byte> p;
  encode(r, p);
  return p;
}

/// Fails from the so-manieth write on.
class failing_disk : public simulated_disk {
 public:
  using simulated_disk::simulated_disk;
  std::atomic<int> good_writes = 1 << 30;
  int error = EIO;
  int write_through(std::uint64_t offset, std::span<std::byte const> from) override {
    if (good_writes.fetch_sub(1) <= 0) return error;
    return simulated_disk::write_through(offset, from);
  }
};

}  // namespace

TEST_CASE("the bytes of a log are what the format says", "[order]") {
  simulated_disk d(area_begin + area_bytes_min);
  superblock const s = made(d);
  CHECK(s.sequence == 2);
  CHECK(s.generation == 1);
  roomy_writer w(d, s, quiet(), home_is_safe);
  std::byte const bytes[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::uint64_t lsn = 0;
  REQUIRE(w.append(data_record(bytes, 77), lsn) == 0);
  REQUIRE(w.commit(lsn) == 0);
  block_buffer block(block_bytes);
  REQUIRE(d.read(area_begin, block) == 0);
  CHECK(std::memcmp(block.data(), "slrc", 4) == 0);
  CHECK(std::to_integer<unsigned>(block[4]) == 9);  // the head of the batch
  auto const at = [&](std::size_t i) {
    return std::to_integer<unsigned>(block[batch_head_bytes + i]);
  };
  CHECK(at(4) == 2);     // data
  CHECK(at(8) == 1);     // generation
  CHECK(at(16) == 128);  // LSN
  CHECK(at(32) == 5);    // written
  CHECK(at(48) == 77);   // epoch
  CHECK(at(56) == 16 + 4 + 4 + 6 + 8 + 8 + 3);
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, block.data() + batch_head_bytes + 24, 8);
  CHECK(checksum == 0x63bfee365f3aaea1u);  // XXH3, fixed for ever
  CHECK(at(64) == 9);                      // uuid of the file system
  CHECK(w.durable() == block_bytes);
}

TEST_CASE("records come back as they were, and nothing else passes for one", "[order]") {
  std::byte const bytes[2] = {std::byte{1}, std::byte{2}};
  record const all[] = {data_record(bytes), unlink_record()};
  for (auto const& r : all) {
    auto p = payload_of(r);
    auto const back = decode(r.what, p);
    REQUIRE(back);
    CHECK(payload_of(*back) == p);
    for (std::size_t cut = 0; cut < p.size(); ++cut) {
      auto const part = decode(r.what, std::span(p).first(cut));
      // Data may be shorter; all else is exact.
      CHECK((!part || (r.what == kind::data && part->bytes.size() == 1)));
    }
  }
  for (char const* bad : {"", ".", "..", "a/b", "/"}) {
    record r = unlink_record();
    r.name = bad;
    CHECK_FALSE(decode(r.what, payload_of(r)));
  }
  record directory = unlink_record();
  directory.mode = S_IFDIR;
  CHECK_FALSE(decode(directory.what, payload_of(directory)));
  record far = data_record(bytes);
  far.offset = INT64_MAX;
  CHECK_FALSE(decode(far.what, payload_of(far)));
  for (int const unknown : {4, 6, 8, 99})  // some were other kinds once
    CHECK_FALSE(decode(kind(unknown), payload_of(far)));
}

TEST_CASE("a log of another version, a foreign file and a damaged log are told apart", "[order]") {
  simulated_disk d(area_begin + area_bytes_min);
  CHECK(read_slots(d).what == slots_found::empty);
  superblock s = made(d);
  block_buffer block(block_bytes, std::byte{0});
  auto const write_slot_as = [&](int slot, superblock const& to) {
    std::memcpy(block.data(), &to, sizeof to);
    REQUIRE(d.write_through(slot * block_bytes, block) == 0);
  };
  superblock newer = s;
  newer.version = 2;
  write_slot_as(1, newer);
  CHECK(read_slots(d).what == slots_found::newer);
  superblock torn = s;
  torn.head += block_bytes;
  write_slot_as(1, torn);
  CHECK(read_slots(d).in_force.sequence == 2);  // slot 0 holds it
  write_slot_as(0, torn);
  CHECK(read_slots(d).what == slots_found::damaged);
  std::fill(block.begin(), block.end(), std::byte{'x'});
  REQUIRE(d.write_through(0, block) == 0);
  REQUIRE(d.write_through(block_bytes, block) == 0);
  CHECK(read_slots(d).what == slots_found::foreign);
}

TEST_CASE("many threads, a small log: all is durable, flushes are shared, laps are made",
          "[order]") {
  // A batch and a superblock are written at the same time.
  struct : simulated_disk {
    using simulated_disk::simulated_disk;
    std::mutex one;
    int write(std::uint64_t offset, std::span<std::byte const> from) override {
      std::lock_guard const held(one);
      return simulated_disk::write(offset, from);
    }
    int flush() override {
      std::lock_guard const held(one);
      return simulated_disk::flush();
    }
  } d{area_begin + 64 * block_bytes};
  roomy_writer w(d, made(d), quiet(), home_is_safe);
  constexpr int threads = 8, each = 300;
  std::atomic<int> failures = 0;
  std::vector<std::thread> crew;
  for (int t = 0; t < threads; ++t)
    crew.emplace_back([&, t] {
      std::vector<std::byte> bytes(1500, std::byte(t));
      for (int i = 0; i < each; ++i) {
        std::uint64_t lsn = 0;
        if (w.append(data_record(bytes, i), lsn) != 0 || w.commit(lsn) != 0 || w.durable() < lsn)
          ++failures;
      }
    });
  for (auto& t : crew) t.join();
  CHECK(failures == 0);
  CHECK(w.batches().count <= threads * each);
  CHECK(w.tail() > 4 * 64 * block_bytes);
  CHECK(w.durable() == w.tail());
  // What is left in the ring is whole.
  superblock const s = read_slots(d).in_force;
  CHECK(scan(d, s, [](auto const&, auto) { return true; }).end == w.tail());
}

TEST_CASE("the first error of the log is everybody's, for good", "[order]") {
  for (int error : {EIO, ENOSPC}) {
    failing_disk d(area_begin + area_bytes_min);
    roomy_writer w(d, made(d), quiet(), home_is_safe);
    d.error = error;
    std::byte const bytes[1] = {};
    std::uint64_t safe = 0, lost = 0, later = 0;
    REQUIRE(w.append(data_record(bytes), safe) == 0);
    REQUIRE(w.commit(safe) == 0);
    REQUIRE(w.append(data_record(bytes), lost) == 0);
    d.good_writes = 0;
    CHECK(w.commit(lost) == error);
    d.good_writes = 1 << 30;  // the disk is well again: too late
    CHECK(w.commit(lost) == error);
    CHECK(w.append(data_record(bytes), later) == error);
    CHECK(w.checkpoint() == error);
    CHECK(w.commit(safe) == 0);
  }
}

TEST_CASE("only what was durable when home was looked at is freed", "[order]") {
  simulated_disk d(area_begin + area_bytes_min);
  roomy_writer w(d, made(d), quiet(), home_is_safe);
  std::byte const bytes[1] = {};
  std::uint64_t first = 0, second = 0;
  REQUIRE(w.append(data_record(bytes), first) == 0);
  REQUIRE(w.commit(first) == 0);
  std::uint64_t const then = w.durable();
  REQUIRE(w.append(data_record(bytes), second) == 0);
  REQUIRE(w.commit(second) == 0);
  unsigned syncs = 0;
  auto const sync = [&] { return ++syncs, 0; };
  CHECK(w.checkpoint(then, sync) == 0);
  CHECK(w.head() == then);
  CHECK(w.checkpoint(then, sync) == 0);  // nothing to free, nothing to sync
  CHECK(syncs == 1);
  CHECK(w.checkpoint(~std::uint64_t{0}, sync) == 0);
  CHECK(w.in_use() == 0);
}

TEST_CASE("a home that cannot be synced frees nothing ever, and the log says so", "[order]") {
  simulated_disk d(area_begin + area_bytes_min);
  superblock const s = made(d);
  int home = EIO;
  roomy_writer w(d, s, quiet(), [&] { return home; });
  std::vector<std::byte> bytes(3000);
  std::uint64_t lsn = 0;
  int failed = 0;
  for (int i = 0; i < 100 && failed == 0; ++i) failed = w.append(data_record(bytes), lsn);
  CHECK(failed == EIO);
  CHECK(w.head() == 0);
  CHECK(w.durable() <= area_bytes_min);
  // The records are still there. That the next sync works says nothing: the kernel shows the pages
  // that it lost as clean.
  auto const records = [&] {
    std::uint64_t found = 0;
    scan(d, read_slots(d).in_force,
         [&](auto const& h, auto) { return found += kind(h.kind) == kind::data, true; });
    return found;
  };
  CHECK(records() >= 15);
  home = 0;
  CHECK(w.append(data_record(bytes), lsn) == EIO);
  CHECK(w.checkpoint() == EIO);
  CHECK(w.head() == 0);
  superblock next = read_slots(d).in_force;
  CHECK(next.home_error == EIO);
  CHECK(records() >= 15);
  REQUIRE(continue_log(d, next, w.durable(), 43) == 0);
  CHECK(read_slots(d).in_force.home_error == 0);
}

TEST_CASE("an error that somebody else met at home keeps the log, also during a checkpoint",
          "[order]") {
  for (bool const during : {false, true}) {
    simulated_disk d(area_begin + area_bytes_min);
    writer* at = nullptr;
    std::thread other;
    auto const sync_home = [&] {
      if (!during) return 0;
      other = std::thread([&] { at->home_failed(EIO); });
      while (at->home_error() == 0) usleep(1000);
      return 0;
    };
    roomy_writer w(d, made(d), quiet(), sync_home);
    at = &w;
    std::byte const bytes[1] = {};
    std::uint64_t lsn = 0;
    REQUIRE(w.append(data_record(bytes), lsn) == 0);
    REQUIRE(w.commit(lsn) == 0);
    if (!during) w.home_failed(EIO);
    CHECK(w.checkpoint() == EIO);
    if (other.joinable()) other.join();
    CHECK(w.head() == 0);
    CHECK(read_slots(d).in_force.head == 0);
    CHECK(read_slots(d).in_force.home_error == EIO);
    CHECK(w.commit(lsn) == 0);
  }
}

TEST_CASE("a log that lost its name acknowledges nothing more", "[order]") {
  struct : simulated_disk {
    using simulated_disk::simulated_disk;
    bool is_there = true;
    bool has_name() const override { return is_there; }
  } d(area_begin + area_bytes_min);
  roomy_writer w(d, made(d), quiet(), home_is_safe);
  std::byte const bytes[1] = {};
  std::uint64_t lsn = 0;
  REQUIRE(w.append(data_record(bytes), lsn) == 0);
  REQUIRE(w.commit(lsn) == 0);
  REQUIRE(w.append(data_record(bytes), lsn) == 0);
  d.is_there = false;
  SECTION("it is seen at the next commit") { CHECK(w.commit(lsn) == ENOENT); }
  SECTION("it is looked for") { w.look(); }
  CHECK(w.failed() == ENOENT);
  CHECK(w.append(data_record(bytes), lsn) == ENOENT);
}

TEST_CASE("a rotten block in the middle is told from a torn tail", "[order]") {
  simulated_disk d(area_begin + area_bytes_min);
  superblock const s = made(d);
  roomy_writer w(d, s, quiet(), home_is_safe);
  std::vector<std::byte> bytes(5000, std::byte{3});
  std::uint64_t lsn = 0;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(w.append(data_record(bytes), lsn) == 0);
    REQUIRE(w.commit(lsn) == 0);
  }
  auto const all = [](auto const&, auto) { return true; };
  scanned const whole = scan(d, s, all);
  CHECK(whole.end == w.durable());
  CHECK(whole.damaged_before == 0);
  block_buffer const zeros(block_bytes, std::byte{0});
  auto const rot = [&](std::uint64_t at) {
    simulated_disk other = d;
    REQUIRE(other.write_through(area_begin + at, zeros) == 0);
    return scan(other, s, all);
  };
  CHECK(rot(0).damaged_before == 2 * block_bytes);
  CHECK(rot(2 * block_bytes).damaged_before == 4 * block_bytes);
  CHECK(rot(3 * block_bytes).end == 2 * block_bytes + batch_head_bytes);
  CHECK(rot(3 * block_bytes).damaged_before == 4 * block_bytes);
  // The last batch may be torn: nothing says that it was acknowledged.
  CHECK(rot(4 * block_bytes).damaged_before == 0);
  CHECK(rot(5 * block_bytes).damaged_before == 0);
}

TEST_CASE("a record that can never fit is refused at once", "[order]") {
  simulated_disk d(area_begin + area_bytes_min);
  roomy_writer w(d, made(d), quiet(), home_is_safe);
  std::vector<std::byte> bytes(area_bytes_min);
  std::uint64_t lsn = 0;
  CHECK(w.append(data_record(bytes), lsn) == EFBIG);
  bytes.resize(data_bytes_max + 1);
  CHECK(w.append(data_record(bytes), lsn) == EFBIG);
}
