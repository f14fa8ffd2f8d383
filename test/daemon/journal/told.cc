// SPDX-License-Identifier: Apache-2.0
// What people are told of durable writes: the daemon's sums, and who reads areas and status files
// that others wrote.
#include "journal/told.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "commands/cli/order_rows.h"
#include "order_served.h"
#include "segment/journal_row.h"
#include "segment/order_look.h"

using namespace sluice;
using sluice::test::lacks_root;
using sluice::test::served;

namespace {

constexpr std::uint64_t ms = 1'000'000;

/// An area that is none of a daemon's, in a file.
struct area_file {
  test::scratch at;
  std::string path = at.dir + "/order";
  std::unique_ptr<abi::order_area> words = std::make_unique<abi::order_area>();

  area_file() {
    abi::order_header& h = words->head;
    h.layout = abi::order_layout_version;
    h.total_bytes = sizeof(abi::order_area);
    h.set_bytes = sizeof(abi::order_set);
    h.slot_bytes = sizeof(abi::order_slot);
    h.magic_word = abi::order_magic;
  }
  abi::order_inode& note(std::uint64_t inode) {
    std::uint64_t const key = abi::order_key(*words, 8ull << 32, inode);
    abi::order_set& set = abi::set_of(*words, key);
    return set.way[abi::find_or_claim(set, key)];
  }
  std::optional<segment::order_job> look(std::size_t bytes = sizeof(abi::order_area)) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<char const*>(words.get()), static_cast<std::streamsize>(bytes));
    return segment::look_at_order(path);
  }
};

}  // namespace

TEST_CASE("the states of a job's files are read out of its area", "[order]") {
  area_file a;
  abi::order_inode& open = a.note(1);
  core::add(open.written, {10, 2});
  a.note(2).state |= abi::order_logged;
  abi::order_inode& asked = a.note(3);
  core::add(asked.written, {0, 1});
  asked.state |= abi::order_logged;
  a.note(4).state |= abi::order_bypass;
  a.note(5);  // of which nothing is left to say
  a.words->slot[7].device = 8ull << 32;
  a.words->slot[7].inode = 3;
  a.words->slot[7].since_ns = steady_count_ns() - 2'000 * ms;
  a.words->slot[7].word = 5 << 3 | static_cast<std::uint32_t>(abi::order_slot_state::taken);
  a.words->head.said.is_in_journal = 1;
  a.words->head.count[static_cast<unsigned>(abi::order_count::absent)] = 3;
  a.words->head.incarnation = 1;
  auto const look = a.look();
  REQUIRE(look);
  CHECK(look->uid == geteuid());
  CHECK(look->files.size() == 4);
  CHECK_FALSE(look->is_served);  // its heart has never beaten
  auto const row = cli::order_job_row("j", *look);
  CHECK(row["open"] == nlohmann::ordered_json({{"files", 1}, {"bytes", 8192}}));
  CHECK(row["closed"]["files"] == 1);
  CHECK(row["closed"]["bytes"] == 4096);
  CHECK(row["closed"]["requests"] == 1);
  CHECK(row["closed"]["oldest_s"] >= 2);
  CHECK(row["durable"]["files"] == 2);
  CHECK(row["fsync"]["native"]["absent"] == 3);
  // A flag outlasts what it was raised for.
  auto const durable = [&] { return cli::order_job_row("j", *a.look())["durable"]["files"]; };
  a.words->head.said.is_in_journal = 0;
  CHECK(durable() == 0);
  // Nobody serves it, and it was told so: nothing is in a log.
  a.words->head.said.is_in_journal = 1;
  CHECK(durable() == 2);
  a.words->head.incarnation = 0;
  CHECK(durable() == 0);
}

TEST_CASE("an area that is none is refused, and none at all is no error", "[order]") {
  area_file a;
  CHECK_FALSE(segment::look_at_order(a.path));
  CHECK(a.look());
  CHECK_THROWS_AS(a.look(sizeof(abi::order_area) - 1), error);
  CHECK_THROWS_AS(a.look(100), error);
  a.words->head.layout = abi::order_layout_version + 1;
  CHECK_THROWS_AS(a.look(), error);
  REQUIRE(unlink(a.path.c_str()) == 0);
  REQUIRE(mkfifo(a.path.c_str(), 0600) == 0);
  CHECK_FALSE(segment::look_at_order(a.path));
}

TEST_CASE("whatever a job scribbles into its area is only shown", "[order]") {
  std::mt19937_64 random(7);
  area_file a;
  auto* const words = reinterpret_cast<std::uint64_t*>(a.words.get());
  for (int round = 0; round < 20; ++round) {
    // Behind the fixed part, which says that it is an area.
    for (std::size_t i = 8; i < sizeof(abi::order_area) / 8; ++i)
      words[i] = random() & random() & (round % 2 == 0 ? ~0ull : random());
    auto const look = a.look();
    REQUIRE(look);
    auto const row = cli::order_job_row("j", *look);
    cli::order_row const picture = {{"journals", cli::order_row::array()},
                                    {"jobs", cli::order_row::array({row})}};
    CHECK(cli::order_table(picture, true).size() > 10);
  }
}

TEST_CASE("a log's status is read back, and one of another version is refused", "[order]") {
  test::scratch at;
  std::string const path = segment::journal_status_path(at.dir);
  CHECK_FALSE(segment::look_at_journal(path));
  {
    journal::status_file status(path, "/var/lib/log");
    struct stat st = {};
    REQUIRE(stat(path.c_str(), &st) == 0);
    CHECK((st.st_mode & 07777) == 0600);
    status.memory().batches = 4;
    status.memory().batch_bytes = 4096;
    status.memory().heart_ns = steady_count_ns();
    auto const log = segment::look_at_journal(path);
    REQUIRE(log);
    CHECK(log->path == "/var/lib/log");
    CHECK(log->is_alive);
    auto const row = segment::journal_row(*log);
    CHECK(row["state"] == "recovering");
    CHECK(row["batch_mean_bytes"] == 1024);
    status.memory().heart_ns = 1;
    CHECK(segment::journal_row(*segment::look_at_journal(path))["state"] == "silent");
    status.memory().layout = abi::order_status_layout + 1;
    CHECK_THROWS_AS(segment::look_at_journal(path), error);
  }
  CHECK_FALSE(segment::look_at_journal(path));  // it went with its daemon
}

TEST_CASE("the daemon tells each job and all what it logged, and whether that is home", "[order]") {
  served s({.log = {}, .checkpoint_every_ns = 3'600'000'000'000});
  if (lacks_root(s)) return;
  journal::status_file status(s.holder.dir + "/order-status", s.log);
  s.know();
  auto const& said = s.program->area().head.said;
  int const fd = s.make("a");
  s.write(fd, 0, std::string(8192, 'a'));
  REQUIRE(s.program->sync(fd) == 0);
  close(fd);
  REQUIRE(s.counts().logged == 1);
  descriptor const directory(open(s.dir.c_str(), O_RDONLY | O_DIRECTORY));
  REQUIRE(s.program->sync(directory.get(), abi::order_request::directory) == 0);
  s.stand_still();
  std::uint64_t synced = 0;  // of all kinds
  s.ask([&](auto& d) {
    d.publish(status.memory());
    synced = d.counts().synced;
  });
  CHECK(said.logged == 1);
  CHECK((said.synced == synced && status.memory().synced == synced));
  CHECK(said.is_in_journal == 1);
  CHECK(status.memory().files_live == 1);
  CHECK(status.memory().batches > 0);
  CHECK(status.memory().batch_bytes >= status.memory().batches * 4096);
  CHECK(status.memory().used_bytes > 8192);
  s.is_stopped = false;
  REQUIRE(s.finish());
  CHECK(said.is_in_journal == 0);
  // The next one goes on with what that one said.
  s.begin();
  s.stand_still();
  s.ask([&](auto& d) { d.publish(status.memory()); });
  CHECK(said.logged == 1);
  CHECK(said.is_in_journal == 0);
  CHECK(status.memory().logged == 0);
  s.is_stopped = false;
}
