// SPDX-License-Identifier: Apache-2.0
// The book of epochs on a disk: what was said to be kept is there after a kill at any moment, and
// what is damaged is not taken for a book.
#include "epochs/gate_log.h"

#include <signal.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/error.h"
#include "base/whole_file.h"
#include "gate_desk.h"
#include "lib/scratch.h"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

/// What a book says, whatever the order.
std::set<std::string> rows_of(gate_book const& book) {
  std::set<std::string> out;
  auto const whole = nlohmann::json::parse(book.to_text());
  for (auto const& job : whole["jobs"]) {
    out.insert(job["job"].dump() + job.value("boot", ""));
    for (auto const& node : job["nodes"]) out.insert(job["job"].dump() + node.dump());
  }
  return out;
}

struct kept_book {
  test::scratch at;
  std::string path = at.dir + "/gates.json";
  bool is_relay;
  gate_book book;
  epochs::gate_log disk;
  std::mt19937 random{7};

  explicit kept_book(bool relay = false)
      : is_relay(relay), book(relay, 5, second), disk(path, relay) {}

  /// Somebody comes, ends, is lost or begins anew.
  void change() {
    std::uint32_t const child = random() % 5;
    bool const is_over = random() % 3 == 0;
    book.heard(child, "n" + std::to_string(child), wire::role::node, 1, second);
    wire::gate_member const m = {random() % 4 + 1, 1 + random() % 2, is_over,
                                 is_over && random() % 2 == 0};
    book.join(child, {random() % 16 == 0, {m}});
  }
  void change_and_keep() {
    do change();
    while (!book.is_dirty());
    REQUIRE(disk.keep(book));
    book.kept();
  }
  std::set<std::string> recalled(std::string const& from) const {
    gate_book other(is_relay, 9, second);
    epochs::gate_log(from, is_relay).recall(other);
    return rows_of(other);
  }
  std::string log(unsigned number = 1) const { return path + "-" + std::to_string(number); }
};

void write(std::string const& path, std::string const& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("gate log: a start knows all that was kept", "[gates][gate_log]") {
  kept_book k(GENERATE(false, true));
  for (int i = 0; i < 200; ++i) {
    k.change_and_keep();
    REQUIRE(k.recalled(k.path) == rows_of(k.book));
  }
  CHECK(read_file(k.log())->size() > 1000);
}

TEST_CASE("gate log: a change is written, and not the book", "[gates][gate_log]") {
  kept_book k;
  for (std::uint64_t job = 1; job <= 1000; ++job) {
    k.book.heard(0, "n0", wire::role::node, 1, second);
    k.book.join(0, {false, {{100 + job, 1, false, false}}});
  }
  REQUIRE(k.disk.keep(k.book));
  k.book.kept();
  auto const whole = read_file(k.path);
  k.change_and_keep();
  CHECK(read_file(k.path) == whole);
  CHECK(read_file(k.log())->size() < 200);
}

TEST_CASE("gate log: cut anywhere it is as it was before the line", "[gates][gate_log]") {
  kept_book k(GENERATE(false, true));
  std::vector<std::set<std::string>> states;
  for (int i = 0; i < 12; ++i) {
    k.change_and_keep();
    states.push_back(rows_of(k.book));
  }
  std::string const lines = read_file(k.log()).value();
  std::string const tail = GENERATE(std::string(), std::string(3, 0), std::string("[{\"job\":"));
  for (std::size_t cut = 0; cut <= lines.size(); ++cut) {
    bool const is_whole = cut == 0 || lines[cut - 1] == '\n';
    if (!is_whole && !tail.empty()) continue;
    write(k.log(), lines.substr(0, cut) + tail);
    auto const before = std::count(lines.begin(), lines.begin() + std::ptrdiff_t(cut), '\n');
    REQUIRE(k.recalled(k.path) == states[std::size_t(before)]);
  }
}

TEST_CASE("gate log: a book that goes on after a torn line loses nothing", "[gates][gate_log]") {
  kept_book k;
  for (int i = 0; i < 5; ++i) k.change_and_keep();
  write(k.log(), *read_file(k.log()) + "[{\"job");
  gate_book next(false, 9, second);
  epochs::gate_log disk(k.path, false);
  disk.recall(next);
  for (std::uint64_t job = 50; job < 55; ++job) {
    next.heard(0, "n0", wire::role::node, 1, second);
    next.join(0, {false, {{job, 1, false, false}}});
    REQUIRE(disk.keep(next));
    next.kept();
    REQUIRE(k.recalled(k.path) == rows_of(next));
  }
  CHECK_FALSE(fs::exists(k.log()));
}

TEST_CASE("gate log: what is damaged is no book, and changes none", "[gates][gate_log]") {
  kept_book k;
  for (int i = 0; i < 6; ++i) k.change_and_keep();
  std::string lines = read_file(k.log()).value();
  SECTION("a line before others") { write(k.log(), "x" + lines); }
  SECTION("a line that is no change") { write(k.log(), lines + "[{\"job\": 7}]\n"); }
  SECTION("the file") { write(k.path, read_file(k.path)->substr(5)); }
  SECTION("a log between others") {
    fs::rename(k.log(), k.log(3));
    write(k.log(1), "");
  }
  gate_book other(false, 9, second);
  other.heard(0, "n0", wire::role::node, 1, second);
  other.join(0, {false, {{88, 1, false, false}}});
  auto const before = rows_of(other);
  epochs::gate_log disk(k.path, false);
  CHECK_THROWS_AS(disk.recall(other), error);
  CHECK(rows_of(other) == before);
  // The one that is begun instead has nothing of it.
  REQUIRE(disk.keep(other));
  CHECK(k.recalled(k.path) == before);
}

TEST_CASE("gate log: lines are folded into the file, and a kill leaves either",
          "[gates][gate_log]") {
  kept_book k(GENERATE(false, true));
  k.disk.fold_from(1);
  bool const waits = GENERATE(true, false);
  for (int i = 0; i < 100; ++i) {
    k.change_and_keep();
    if (waits) k.disk.finish_fold();
  }
  k.disk.finish_fold();
  REQUIRE(k.recalled(k.path) == rows_of(k.book));
  unsigned logs = 0;
  for (auto const& file : fs::directory_iterator(k.at.dir)) logs += file.path() != k.path;
  CHECK(logs <= 2);
  std::uint64_t const first = nlohmann::json::parse(*read_file(k.path))["log"];
  CHECK(first > 1);
  // Killed before the old lines were removed, or before a log was begun.
  write(k.log(unsigned(first) - 1), "[]\nold and damaged\n[]\n");
  CHECK(k.recalled(k.path) == rows_of(k.book));
}

TEST_CASE("gate log: a full disk keeps nothing that it said, and loses nothing",
          "[gates][gate_log]") {
  kept_book k;
  for (int i = 0; i < 5; ++i) k.change_and_keep();
  auto const before = rows_of(k.book);
  auto const limit_to = [](rlim_t bytes) {
    rlimit const limit = {bytes, RLIM_INFINITY};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  };
  auto const handler = signal(SIGXFSZ, SIG_IGN);
  limit_to(read_file(k.log())->size() + 10);
  k.book.heard(0, "n0", wire::role::node, 1, second);
  k.book.join(0, {false, {{88, 1, false, false}}});
  bool const is_kept = k.disk.keep(k.book) || k.disk.keep(k.book);
  bool const is_dirty = k.book.is_dirty();
  auto const seen = k.recalled(k.path);
  limit_to(RLIM_INFINITY);
  signal(SIGXFSZ, handler);
  CHECK_FALSE(is_kept);
  CHECK(is_dirty);
  CHECK(seen == before);
  REQUIRE(k.disk.keep(k.book));
  k.book.kept();
  CHECK(k.recalled(k.path) == rows_of(k.book));
  k.change_and_keep();
  CHECK(k.recalled(k.path) == rows_of(k.book));
}
