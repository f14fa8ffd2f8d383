// SPDX-License-Identifier: Apache-2.0
// Two controllers with one directory for what is changed by hand: the one that rules writes there.
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/whole_file.h"
#include "cluster/change_keeper.h"
#include "lib/scratch.h"
#include "wire/message.h"

using namespace sluice;
using cluster::change_keeper;
using written = cluster::change_files::written;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr bool owner = true, standby = false;

struct desk {
  std::int64_t now_ns = 1000 * ms;
  std::int64_t unix_s = 0;
  test::scratch place;
  std::string said;
  runtime::logger log{runtime::level::info, [this](std::string_view line) { said += line; },
                      [] { return 0; }};

  change_keeper keeper(char const* name) {
    return change_keeper(cluster::change_files(place.dir, name), log);
  }
  std::string path() const { return place.dir + "/overrides.json"; }
  std::string text() const { return read_file(path()).value_or(""); }
  std::size_t times_said(std::string const& words) const {
    std::size_t times = 0;
    for (auto at = said.find(words); at != said.npos; at = said.find(words, at + 1)) ++times;
    return times;
  }
  change_keeper::standing at(bool has_pool) const { return {now_ns, has_pool, 2000 * ms, unix_s}; }
  /// Turns for a time, each after the work in hand. True: somebody else changed something.
  bool run(change_keeper& k, bool has_pool, std::int64_t for_ms = 3000) {
    bool is_news = false;
    for (std::int64_t const end_ns = now_ns + for_ms * ms; now_ns < end_ns; now_ns += 50 * ms) {
      is_news |= k.turn(at(has_pool));
      pollfd bell = {k.fd(), POLLIN, 0};
      if (k.is_busy()) REQUIRE(poll(&bell, 1, 60'000) == 1);
    }
    return is_news;
  }
};

core::job_id const job = wire::job_key(1000, "wide");

void pause(change_keeper& k) {
  k.book().pause(job, 1000, "wide", {});
  k.kept().hold({0, 0, 0, -1}, [&] { return k.kept().changed(), nlohmann::json::object(); });
}

bool is_paused(change_keeper& k) { return k.book().find(job) != nullptr; }

std::string answer_to(change_keeper& k) {
  auto const told = k.kept().take();
  return told.size() == 1 ? told[0].text : "";
}

}  // namespace

TEST_CASE("shared changes: the one without the pool follows, and takes over", "[cluster]") {
  desk d;
  change_keeper first = d.keeper("c1"), second = d.keeper("c2");
  CHECK_FALSE(first.keeps_changes());
  d.run(first, owner);
  d.run(second, standby);
  REQUIRE(first.keeps_changes());
  CHECK_FALSE(second.keeps_changes());
  pause(first);
  first.set_applied("policy");
  CHECK_FALSE(d.run(first, owner));
  CHECK(answer_to(first) == "{}");
  CHECK(d.run(second, standby));
  CHECK(is_paused(second));
  CHECK(second.applied() == "policy");
  d.run(second, owner);
  REQUIRE(second.keeps_changes());
  CHECK(is_paused(second));
  second.book().resume(job, false);
  second.forget_applied();
  second.kept().changed();
  d.run(second, owner);
  CHECK(d.run(first, standby));
  CHECK_FALSE(is_paused(first));
  CHECK_FALSE(first.applied());
}

TEST_CASE("shared changes: a change waits for a pool that is away for a moment", "[cluster]") {
  desk d;
  change_keeper first = d.keeper("c1"), second = d.keeper("c2");
  d.run(first, owner);
  pause(first);
  first.set_applied("policy");
  SECTION("and is written when it is back") {
    CHECK_FALSE(d.run(first, standby, 1500));
    CHECK(d.text().find("wide") == std::string::npos);
    CHECK(first.kept().take().empty());
    CHECK_FALSE(d.run(first, owner));
    CHECK(answer_to(first) == "{}");
    CHECK(d.run(second, standby));
    CHECK(is_paused(second));
    return;
  }
  SECTION("or is taken back after a while") {}
  SECTION("or when another one has written meanwhile") {
    d.run(second, owner, 1000);
    d.run(first, standby, 100);
    CHECK(d.run(first, owner));
  }
  d.run(first, standby);
  CHECK_FALSE(is_paused(first));
  CHECK_FALSE(first.applied());
  CHECK_THAT(answer_to(first), Catch::Contains("do not count on"));
  CHECK(d.text().find("wide") == std::string::npos);
}

TEST_CASE("shared changes: a write that hung until its controller had lost the pool does not stay",
          "[cluster]") {
  desk d;
  change_keeper first = d.keeper("c1"), second = d.keeper("c2");
  d.run(first, owner);
  pause(first);
  d.run(first, owner);
  auto const known = d.text();
  first.book().pause(wire::job_key(1000, "late"), 1000, "late", {});
  first.set_applied("late");
  d.run(first, owner);
  auto const late = d.text();
  REQUIRE(replace_file(d.path(), known));
  d.run(second, owner);
  second.book().resume(job, false);
  second.set_applied("policy");
  d.run(second, owner);
  auto const newest = d.text();

  bool is_at_second = true;
  SECTION("while another one rules") { REQUIRE(replace_file(d.path(), late)); }
  SECTION("while another one is without the pool for a moment") {
    d.run(second, standby, 500);
    REQUIRE(replace_file(d.path(), late));
  }
  SECTION("while another one is without the pool for long") {
    d.run(second, standby);
    REQUIRE(replace_file(d.path(), late));
    CHECK_FALSE(d.run(second, standby));
    CHECK(second.applied() == "policy");
    CHECK(d.text() == late);  // who does not rule writes nothing
  }
  SECTION("though the other one is gone, if its standby had read what that one wrote") {
    d.run(first, standby);
    REQUIRE(replace_file(d.path(), late));
    is_at_second = false;
  }
  change_keeper& k = is_at_second ? second : first;
  change_keeper& other = is_at_second ? first : second;
  d.run(k, owner);
  CHECK_FALSE(is_paused(k));
  CHECK(k.applied() == "policy");
  CHECK(d.times_said("all is written again") == 1);
  d.run(other, standby);
  CHECK(other.applied() == "policy");
  change_keeper third = d.keeper("c3");
  CHECK(third.applied() == "policy");
  CHECK_FALSE(is_paused(third));
  CHECK(third.book().is_empty());
}

TEST_CASE("shared changes: a file of a higher term is not replaced", "[cluster]") {
  desk d;
  cluster::change_files const files(d.place.dir, "c1");
  CHECK(files.write(files.file_of({}, "newer", 3), "") == written::yes);
  CHECK(files.write(files.file_of({}, "policy", 3), "") == written::yes);
  CHECK(files.write(files.file_of({}, "late", 2), "") == written::overtaken);
  CHECK(files.read(false).kept.applied == "policy");
  REQUIRE(replace_file(d.path(), "not a book"));
  CHECK(files.write(files.file_of({}, "policy", 1), "") == written::yes);
}

TEST_CASE("shared changes: what another one wrote is replaced only by who had read it",
          "[cluster]") {
  desk d;
  cluster::change_files const files(d.place.dir, "c1"), others(d.place.dir, "c2");
  REQUIRE(files.write(files.file_of({}, "policy", 2), "") == written::yes);
  auto const known = d.text();
  REQUIRE(others.write(others.file_of({}, "newer", 3), known) == written::yes);
  CHECK(files.write(files.file_of({}, "late", 3), known) == written::overtaken);
  CHECK(files.write(files.file_of({}, "late", 4), known) == written::overtaken);
  CHECK(others.read(false).kept.applied == "newer");
  CHECK(files.write(files.file_of({}, "newest", 4), d.text()) == written::yes);
}

TEST_CASE("shared changes: a late claim of a reign ends no other one of the same number",
          "[cluster]") {
  desk d;
  change_keeper first = d.keeper("c1"), second = d.keeper("c2");
  d.run(first, owner);
  auto const known = d.text();
  d.run(second, owner);
  auto const claim = d.text();
  REQUIRE(claim != known);
  REQUIRE(replace_file(d.path(), known));  // its claim hung
  d.run(first, standby, 500);
  d.run(first, owner, 500);
  pause(first);
  d.run(first, owner);
  CHECK(answer_to(first) == "{}");
  SECTION("while the other one rules") { REQUIRE(replace_file(d.path(), claim)); }
  SECTION("while the other one is without the pool for a moment") {
    d.run(first, standby, 500);
    REQUIRE(replace_file(d.path(), claim));
    CHECK_FALSE(d.run(first, standby, 1200));
  }
  SECTION("while the other one is without the pool for long") {
    d.run(first, standby);
    REQUIRE(replace_file(d.path(), claim));
    CHECK_FALSE(d.run(first, standby));
  }
  d.run(first, owner);
  CHECK(is_paused(first));
  d.run(second, standby);
  CHECK(is_paused(second));
  change_keeper third = d.keeper("c3");
  CHECK(is_paused(third));
}

TEST_CASE("shared changes: who could not write in his reign follows what he finds", "[cluster]") {
  desk d;
  change_keeper first = d.keeper("c1"), second = d.keeper("c2");
  d.run(second, owner);
  std::string const obstacle = d.place.dir + "/.overrides.json.c1.new";
  REQUIRE(mkdir(obstacle.c_str(), 0700) == 0);
  d.run(first, owner, 200);
  REQUIRE_THAT(d.said, Catch::Contains("are not saved"));
  d.run(second, standby, 500);
  d.run(second, owner, 1000);
  pause(second);
  second.set_applied("policy");
  bool const tries_first = GENERATE(true, false);  // else it reads before
  d.run(second, owner, tries_first ? 6000 : 1000);
  REQUIRE(answer_to(second) == "{}");
  auto const newest = d.text();
  REQUIRE(rmdir(obstacle.c_str()) == 0);
  CHECK(d.run(first, owner));
  CHECK(is_paused(first));
  CHECK(first.applied() == "policy");
  CHECK(d.text() != newest);
  d.run(second, standby);
  CHECK(is_paused(second));
  first.book().resume(job, false);
  pause(first);
  d.run(first, owner);
  CHECK(answer_to(first) == "{}");
}

TEST_CASE(
    "shared changes: who did not see that another one ruled meanwhile follows what that wrote",
    "[cluster]") {
  desk d;
  change_keeper first = d.keeper("c1"), second = d.keeper("c2");
  d.run(first, owner);
  d.run(second, owner);
  pause(second);
  d.run(second, owner);
  CHECK(answer_to(second) == "{}");
  CHECK(d.run(first, owner));
  CHECK(is_paused(first));
  d.run(second, standby);
  CHECK(is_paused(second));
}

TEST_CASE("shared changes: what is gone or damaged is written again by who had read it",
          "[cluster]") {
  desk d;
  change_keeper first = d.keeper("c1"), second = d.keeper("c2");
  d.run(first, owner);
  pause(first);
  first.set_applied("policy");
  d.run(first, owner);
  d.run(second, standby);
  SECTION("gone") { REQUIRE(unlink(d.path().c_str()) == 0); }
  SECTION("damaged") { REQUIRE(replace_file(d.path(), d.text().substr(0, 50))); }
  SECTION("at the one who rules") {
    REQUIRE(unlink(d.path().c_str()) == 0);
    d.run(first, owner);
  }
  d.run(second, owner);
  CHECK(is_paused(second));
  CHECK(second.applied() == "policy");
  CHECK_THAT(d.said, Catch::Contains("all is written again"));
  change_keeper third = d.keeper("c3");
  CHECK(is_paused(third));
  CHECK(third.applied() == "policy");
}

TEST_CASE("shared changes: a standby that knows more reigns follows who begins without a file",
          "[cluster]") {
  desk d;
  d.unix_s = 1'800'000'000;
  change_keeper first = d.keeper("c1"), second = d.keeper("c2");
  d.run(first, owner);
  auto const oldest = d.text();
  d.run(second, owner);
  d.run(first, owner);
  d.run(second, standby);
  SECTION("it is gone") { REQUIRE(unlink(d.path().c_str()) == 0); }
  SECTION("it is damaged") { REQUIRE(replace_file(d.path(), "not a book")); }
  SECTION("an older one was restored") { REQUIRE(replace_file(d.path(), oldest)); }
  change_keeper again = d.keeper("c1");
  d.unix_s += 60;
  d.run(again, owner);
  pause(again);
  d.run(again, owner);
  CHECK(answer_to(again) == "{}");
  CHECK(d.run(second, standby));
  CHECK(is_paused(second));
  d.run(second, owner);
  CHECK(is_paused(second));
}

TEST_CASE("shared changes: who comes after a reign with a large number can be read", "[cluster]") {
  desk d;
  cluster::change_files const files(d.place.dir, "c1");
  REQUIRE(files.write(files.file_of({}, "policy", 1'000'000'000'000), "") == written::yes);
  change_keeper first = d.keeper("c1"), second = d.keeper("c2");
  d.run(first, owner);
  pause(first);
  d.run(first, owner);
  CHECK(d.run(second, standby));
  CHECK(is_paused(second));
  CHECK(second.applied() == "policy");
  CHECK_THAT(d.said, !Catch::Contains("cannot be read"));
}

TEST_CASE("shared changes: an applied policy whose file was edited goes when its controller rules",
          "[cluster]") {
  desk d;
  change_keeper first = d.keeper("c1"), second = d.keeper("c2");
  d.run(first, owner);
  first.set_applied("policy");
  d.run(first, owner);
  d.run(second, standby);
  SECTION("and not before") {
    second.forget_applied();
    d.run(second, standby);
    d.run(first, owner);
    CHECK(first.applied() == "policy");
    d.run(second, owner);
    CHECK_FALSE(second.applied());
    d.run(first, standby);
    CHECK_FALSE(first.applied());
    d.run(first, owner);
    first.set_applied("policy");  // once more: another one than that
    d.run(first, owner);
    d.run(second, standby);
    d.run(second, owner);
    CHECK(second.applied() == "policy");
  }
  SECTION("when it has taken over and not yet read") {
    d.now_ns += 50 * ms;
    second.turn(d.at(owner));
    REQUIRE_FALSE(second.keeps_changes());
    second.forget_applied();
    d.run(second, owner);
    CHECK_FALSE(d.keeper("c3").applied());
  }
  SECTION("though the pool was away before that was written") {
    first.forget_applied();
    CHECK(d.run(first, standby));
    CHECK(first.applied() == "policy");
    d.run(first, owner);
    CHECK_FALSE(d.keeper("c3").applied());
  }
  SECTION("nor does the one come back that was written, when a newer one waited") {
    first.set_applied("file\nolder");
    d.run(first, owner);
    first.set_applied("file\nnewer");
    SECTION("for the next write") {}
    SECTION("for the write in hand") {
      first.turn(d.at(owner));
      REQUIRE(first.is_busy());
      first.set_applied("file\nnewest");
    }
    first.forget_applied();
    SECTION("and its file was edited once more") { first.forget_applied(); }
    SECTION("and one was applied over the edited file") { first.set_applied("edited\npolicy"); }
    d.run(first, standby);
    CHECK(first.applied() != "policy");
    d.run(first, owner);
    CHECK_FALSE(first.applied());
    CHECK_FALSE(d.keeper("c3").applied());
  }
  SECTION("but one over another file comes back") {
    first.set_applied("newer");
    first.forget_applied();
    d.run(first, standby);
    d.run(first, owner);
    CHECK(first.applied() == "policy");
  }
  SECTION("not one that was applied later") {
    second.forget_applied();
    first.set_applied("newer");
    d.run(first, owner);
    d.run(second, standby);
    d.run(second, owner);
    CHECK(second.applied() == "newer");
  }
  SECTION("not one that was applied later, though it was written before") {
    first.set_applied("file\nolder");
    d.run(first, owner);
    d.run(second, owner);
    second.set_applied("file\nnewer");
    d.run(second, owner);
    d.run(first, standby);
    first.forget_applied();
    second.set_applied("file\nolder");
    d.run(second, owner);
    d.run(first, standby);
    d.run(first, owner);
    CHECK(first.applied() == "file\nolder");
  }
  SECTION("not one whose file is as it was again") {
    second.forget_applied();
    second.keep_applied();
    d.run(second, owner);
    CHECK(second.applied() == "policy");
  }
}

TEST_CASE("changes: files of earlier versions are read, and one follows them", "[cluster]") {
  desk d;
  verbs::override_book book;
  book.pause(job, 1000, "wide", {});
  std::string const applied = d.place.dir + "/applied-policy";
  REQUIRE(replace_file(d.path(), book.to_text("")));
  REQUIRE(replace_file(applied, "policy"));
  {
    change_keeper k = d.keeper(GENERATE("", "c1"));
    d.run(k, owner);
    CHECK(is_paused(k));
    CHECK(k.applied() == "policy");
    k.kept().changed();
    d.run(k, owner);
  }
  CHECK_FALSE(read_file(applied));
  change_keeper again = d.keeper(GENERATE("", "c1"));
  CHECK(is_paused(again));
  CHECK(again.applied() == "policy");
}

TEST_CASE("shared changes: what ends at a standby ends nowhere else", "[cluster]") {
  desk d;
  change_keeper first = d.keeper("c1"), second = d.keeper("c2");
  cluster::roster const nobody{cluster::policy_table{}};
  d.run(first, owner);
  dated_moment const today = {1000, 1000};
  first.book().pause(job, 1000, "wide", verbs::ends_after({}, 3600, today));
  first.kept().changed();
  d.run(first, owner);
  d.run(second, standby);
  REQUIRE(is_paused(second));
  CHECK(second.take_back(nobody, d.now_ns, {9000, 9000}));
  CHECK_FALSE(is_paused(second));  // for who obeys it, and where nobody rules for all
  d.run(second, standby);
  CHECK(d.run(second, owner));
  CHECK(is_paused(second));
  CHECK_FALSE(second.take_back(nobody, d.now_ns, today));
  CHECK(is_paused(second));
  CHECK(second.take_back(nobody, d.now_ns, {9000, 9000}));
  CHECK_FALSE(is_paused(second));
}

TEST_CASE("shared changes: who rules again and cannot read takes no change", "[cluster]") {
  desk d;
  change_keeper k = d.keeper("c1");
  d.run(k, owner);
  d.run(k, standby, 500);
  REQUIRE(chmod(d.place.dir.c_str(), 0770) == 0);
  SECTION("and takes back the one that waits") {
    pause(k);
    d.run(k, owner);
    CHECK_THAT(answer_to(k), Catch::Contains("do not count on"));
    CHECK_FALSE(is_paused(k));
  }
  d.run(k, owner, 500);
  CHECK_THAT(k.why_closed(), Catch::Contains("writable by nobody else"));
  REQUIRE(chmod(d.place.dir.c_str(), 0700) == 0);
  d.run(k, owner);
  CHECK(k.why_closed().empty());
}

TEST_CASE("shared changes: what ends while the pool is away for a moment", "[cluster]") {
  desk d;
  change_keeper k = d.keeper("c1");
  cluster::roster const nobody{cluster::policy_table{}};
  d.run(k, owner);
  dated_moment const today = {1000, 1000};
  k.book().pause(job, 1000, "wide", verbs::ends_after({}, 5, today));
  k.kept().changed();
  k.set_applied("policy");
  d.run(k, owner);
  REQUIRE(d.text().find("wide") != std::string::npos);
  d.run(k, standby, 500);
  k.take_back(nobody, d.now_ns, {1006, 1006});
  k.forget_applied();
  d.run(k, owner);
  CHECK(d.text().find("wide") == std::string::npos);
  CHECK_FALSE(d.keeper("c2").applied());
}

TEST_CASE("shared changes: a write that ends while the pool is away", "[cluster]") {
  desk d;
  change_keeper k = d.keeper("c1");
  d.run(k, owner);
  pause(k);
  k.turn(d.at(owner));
  REQUIRE(k.is_busy());
  SECTION("is acknowledged when the pool is back") {
    pollfd bell = {k.fd(), POLLIN, 0};
    REQUIRE(poll(&bell, 1, 60'000) == 1);
    d.run(k, standby, 100);
    CHECK(k.kept().take().empty());
    d.run(k, owner);
    CHECK(answer_to(k) == "{}");
    CHECK(is_paused(k));
  }
  SECTION("is not at an end") {
    k.finish([&] { return d.at(standby); });
    CHECK_THAT(answer_to(k), Catch::Contains("do not count on"));
  }
  SECTION("and at an end without a cable all is well") {
    k.finish([&] { return d.at(owner); });
    CHECK(answer_to(k) == "{}");
  }
}

TEST_CASE("shared changes: only the one with the pool sets a damaged file aside", "[cluster]") {
  desk d;
  change_keeper k = d.keeper("c1");
  REQUIRE(replace_file(d.path(), "not a book"));
  d.run(k, standby);
  CHECK(d.text() == "not a book");
  d.run(k, owner);
  CHECK(k.why_closed().empty());
  CHECK(read_file(d.path() + ".unreadable") == "not a book");
  CHECK_THAT(d.said, Catch::Contains("changes by hand lost"));
}

TEST_CASE("shared changes: a directory of others, or none, is not believed", "[cluster]") {
  desk d;
  change_keeper first = d.keeper("c1"), k = d.keeper("c2");
  d.run(first, owner);
  pause(first);
  d.run(first, owner);
  REQUIRE(chmod(d.place.dir.c_str(), 0770) == 0);
  d.run(k, owner);
  CHECK_FALSE(is_paused(k));
  CHECK_THAT(k.why_closed(), Catch::Contains("writable by nobody else"));
  REQUIRE(chmod(d.place.dir.c_str(), 0700) == 0);
  d.run(k, owner);
  CHECK(is_paused(k));
  CHECK(k.why_closed().empty());
}
