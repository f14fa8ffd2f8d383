// SPDX-License-Identifier: Apache-2.0
// The recovery of a user's log has that user's rights and no more. Needs root and loop devices.
#include "journal/opener.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "journal/boot.h"
#include "journal/left_behind.h"
#include "lib/held_lock.h"
#include "lib/in_a_child.h"
#include "lib/named_process.h"
#include "recover_bench.h"

using namespace sluice::journal;
using sluice::test::bench;
using sluice::test::held_lock;
using sluice::test::in_a_child;
using sluice::test::named_process;

namespace {

/// As `sluice recover` does that root runs. What stopped it; empty: nothing.
std::string recovered_as_owner(bench const& b, bool keep_home = false) {
  return in_a_child([&](int) {
    recover_options o;
    o.log = b.log;
    o.keep_home = keep_home;
    auto const files = become_owner(o.log);
    REQUIRE(files != nullptr);
    o.files = files.get();
    recover(o);
  });
}

constexpr unsigned user = 65534, his_group = 65534, others = 64999;

/// As the keeper of a node has it done: what was left as it is, then the journal of that.
std::string recovered_for_node(std::string const& log) {
  return in_a_child([&](int to) {
    recover_options o;
    o.log = log;
    o.set_aside = true;
    auto const files = become_owner(log);
    REQUIRE(files != nullptr);
    o.files = files.get();
    recovered const r = recover(o);
    for (auto const& one : r.aside) dprintf(to, "%s: %s\n", one.why.c_str(), one.name.c_str());
    for (auto const& one : r.done.kept_names) dprintf(to, "%s\n", one.c_str());
    for (auto const& one : r.done.regrouped) dprintf(to, "without its group: %s\n", one.c_str());
    if (r.is_running) dprintf(to, "running\n");
    if (!r.aside_log.empty()) dprintf(to, "log %s", r.aside_log.c_str());
  });
}

std::string aside_log_of(std::string const& said) {
  auto const at = said.find("log ");
  return at == said.npos ? "" : said.substr(at + 4);
}

bool begin_of_user(bench& b) {
  return b.begin() && chmod(b.at.holder.dir.c_str(), 0755) == 0 &&
         chmod(b.at.dir.c_str(), 01777) == 0;
}

void lose(bench& b, record const& r, std::string const& path) {
  b.tell(r);
  b.tell_new(r.file, "text");
  unlink(path.c_str());  // as if the power had failed before its name was durable
}

}  // namespace

TEST_CASE("of a user's log recovery makes nothing but his own files", "[order]") {
  struct made {
    unsigned uid, gid, mode;
    bool may;
    unsigned has;  // its mode then
  };
  for (made const& m :
       {made{0, 0, S_IFREG | 0644, false, 0}, made{user, others, S_IFREG | 0660, true, 0600},
        made{user, 0, S_IFREG | 02674, true, 0644}, made{user, 0, S_IFREG | 0607, true, 0600},
        made{user, his_group, S_IFREG | 04755, true, 0755},
        made{user, his_group, S_IFREG | 0200, true, 0200},
        made{user, his_group, S_IFREG | 0640, true, 0640}}) {
    bench b;
    if (!begin_of_user(b)) return;
    b.write("lost", "x");
    record r = b.about(kind::create, "lost");
    r.uid = m.uid;
    r.gid = m.gid;
    r.mode = m.mode;
    lose(b, r, b.path("lost"));
    b.crash();
    CAPTURE(m.uid, m.gid, m.mode);
    REQUIRE(chown(b.log.c_str(), user, user) == 0);
    CHECK_THROWS_WITH(b.recover_it(), Catch::Contains("belongs to uid 65534"));
    CHECK(recovered_as_owner(b).empty() == m.may);
    CHECK(b.read("lost") == (m.may ? "text" : "no file"));
    struct stat st = {};
    if (!m.may) continue;
    REQUIRE(stat(b.path("lost").c_str(), &st) == 0);
    CHECK((st.st_uid == user && st.st_gid == his_group && (st.st_mode & 07777) == m.has));
    CHECK(recovered_as_owner(b).empty());
  }
}

TEST_CASE("of a uid without a name recovery brings home files of its group", "[order]") {
  bench b;
  if (!begin_of_user(b)) return;
  b.write("lost", "x");
  record r = b.about(kind::create, "lost");
  r.uid = r.gid = others;
  r.mode = S_IFREG | 0640;
  lose(b, r, b.path("lost"));
  b.crash();
  REQUIRE(chmod(b.at.dir.c_str(), 0777) == 0);
  REQUIRE(chown(b.log.c_str(), others, others) == 0);
  CHECK_THAT(recovered_for_node(b.log), Catch::Contains("without its group: lost in the "
                                                        "directory with inode ") &&
                                            !Catch::Contains("log "));
  CHECK(b.read("lost") == "text");
  struct stat st = {};
  REQUIRE(stat(b.path("lost").c_str(), &st) == 0);
  CHECK((st.st_uid == others && (st.st_mode & 07777) == 0600u));
}

TEST_CASE("a name service that fails makes nobody unknown", "[order]") {
  if (geteuid() != 0) return;
  std::string const said = in_a_child([&](int) {
    REQUIRE(unshare(CLONE_NEWNS) == 0);
    REQUIRE(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
    REQUIRE(mount("none", "/etc", "tmpfs", 0, nullptr) == 0);
    std::ofstream("/etc/nsswitch.conf") << "passwd: files\n";  // which are not there
    become_user(others);
  });
  CHECK_THAT(said, Catch::Contains("does not say who uid 64999 is"));
}

TEST_CASE("of a user's log recovery leaves alone what is another's", "[order]") {
  bench b;
  if (!begin_of_user(b)) return;
  b.write("his", "home");
  b.write("roots", "home");
  for (auto const* name : {"his", "roots"}) b.tell_data(b.id_of(b.path(name)), 0, "LOGS");
  b.crash();
  for (auto const& path : {b.log, b.path("his")}) REQUIRE(chown(path.c_str(), user, user) == 0);
  REQUIRE(chmod(b.path("roots").c_str(), 0666) == 0);  // he could write it, and it is not his
  CHECK_THAT(recovered_as_owner(b), Catch::Contains("belongs to somebody else since"));
  CHECK(b.read("his") == "home");
  CHECK(recovered_as_owner(b, true).empty());
  CHECK(b.read("his") == "LOGS");
  CHECK(b.read("roots") == "home");
}

TEST_CASE("of a user's log recovery makes nothing where he cannot go", "[order]") {
  bench b;
  if (!begin_of_user(b)) return;
  std::string const inner = b.path("shut/open");
  REQUIRE(mkdir(b.path("shut").c_str(), 0700) == 0);
  REQUIRE((mkdir(inner.c_str(), 0777) == 0 && chmod(inner.c_str(), 0777) == 0));
  b.write("shut/open/lost", "x");
  record r = b.about(kind::create, "shut/open/lost");
  r.directory = b.id_of(inner);
  r.name = "lost";
  r.uid = user;
  r.gid = his_group;
  lose(b, r, inner + "/lost");
  b.crash();
  REQUIRE(chown(b.log.c_str(), user, user) == 0);
  CHECK_THAT(recovered_as_owner(b), Catch::Contains("its user cannot open it, or the directory"));
  CHECK(b.read("shut/open/lost") == "no file");
  REQUIRE(chmod(b.path("shut").c_str(), 0711) == 0);
  CHECK(recovered_as_owner(b).empty());
  CHECK(b.read("shut/open/lost") == "text");
}

namespace {

/// Another user's directory, in which the user has files, and a file of his elsewhere.
struct shared_box {
  bench b;
  std::string const box = b.path("box");
  bool is_mounted_over = false;

  bool begin() {
    if (!begin_of_user(b)) return false;
    REQUIRE((mkdir(box.c_str(), 0777) == 0 && chmod(box.c_str(), 0777) == 0));
    REQUIRE(chown(box.c_str(), others, others) == 0);
    for (auto const* name : {"free", "box/lost", "box/there", "box/away"}) {
      b.write(name, "home");
      REQUIRE(chown(b.path(name).c_str(), user, his_group) == 0);
    }
    return true;
  }
  ~shared_box() { open_again(); }

  record of(kind what, std::string const& name) const {
    record r = b.about(what, name);
    r.directory = b.id_of(name.starts_with("box/") ? box : b.at.dir);
    r.name = name.substr(name.find('/') + 1);
    r.uid = user;
    r.gid = his_group;
    return r;
  }
  void tell_all() {
    b.tell(of(kind::unlink, "box/away"));
    b.tell_data(b.id_of(b.path("box/there")), 0, "LOGS");
    lose(b, of(kind::create, "box/lost"), b.path("box/lost"));
    lose(b, of(kind::create, "free"), b.path("free"));
    b.crash();
    REQUIRE(chown(b.log.c_str(), user, user) == 0);
  }
  void shut(unsigned mode) {
    if (mode == 0)
      is_mounted_over = sluice::test::shell("mount -t tmpfs -o mode=777 none " + box);
    else
      REQUIRE(chmod(box.c_str(), mode) == 0);
  }
  void open_again() {
    if (is_mounted_over) is_mounted_over = !sluice::test::shell("umount " + box);
    chmod(box.c_str(), 0777);
  }
};

constexpr unsigned mounted_over = 0;

}  // namespace

TEST_CASE("a directory's owner keeps no other file of a user from coming home", "[order]") {
  for (unsigned const mode : {0733u, 0700u, 0555u, mounted_over}) {
    shared_box s;
    if (!s.begin()) return;
    s.tell_all();
    s.shut(mode);
    CAPTURE(mode);
    std::string const said = recovered_for_node(s.b.log), log = aside_log_of(said);
    CAPTURE(said);
    CHECK(s.b.read("free") == "text");
    CHECK_THAT(said, Catch::Contains("directory that it is in: lost\n"));
    CHECK_THAT(said, Catch::Contains("of away: its user"));
    REQUIRE_FALSE(log.empty());
    s.open_again();
    CHECK(s.b.read("box/there") == "LOGS");
    CHECK(s.b.read("box/lost") == "no file");
    CHECK(aside_log_of(recovered_for_node(log)).empty());
    CHECK(s.b.read("box/lost") == "text");
  }
}

TEST_CASE("a directory that is shut lacks nothing while the machine runs", "[order]") {
  for (unsigned const mode : {0733u, 0700u, 0555u, mounted_over}) {
    shared_box s;
    if (!s.begin()) return;
    superblock super = read_slots(*s.b.disk).in_force;
    REQUIRE(continue_log(*s.b.disk, super, super.head, random_salt(), {}, boot_id()) == 0);
    s.b.open_writer();
    for (auto const* name : {"box/there", "free"})
      s.b.tell_data(s.b.id_of(s.b.path(name)), 0, "LOGS");
    s.b.tell(s.of(kind::create, "box/lost"));
    s.b.tell_new(s.b.id_of(s.b.path("box/lost")), "text");
    s.b.crash();
    REQUIRE(chown(s.b.log.c_str(), user, user) == 0);
    s.shut(mode);
    CAPTURE(mode);
    CHECK(recovered_for_node(s.b.log) == "running\n");
  }
}

TEST_CASE("the process with a user's rights has no more, and is not his to look into", "[order]") {
  bench b;
  if (!begin_of_user(b)) return;
  b.write("his", "x");
  b.write("roots", "x");
  REQUIRE(mkfifo(b.path("fifo").c_str(), 0666) == 0);
  for (auto const* name : {"his", "fifo"}) REQUIRE(chown(b.path(name).c_str(), user, user) == 0);
  std::string const said = in_a_child([&](int to) {
    std::map<std::string, file_id> id;
    for (auto const* name : {"his", "roots"}) id[name] = b.id_of(b.path(name));
    sluice::descriptor const fifo(open(b.path("fifo").c_str(), O_RDWR));
    REQUIRE(identify(fifo.get(), id["fifo"]) == 0);
    auto const files = become_user(user);
    files->keep_only({id["his"].fs});
    sluice::descriptor const his(files->open(id["his"], O_RDWR));
    sluice::descriptor const roots(open(b.path("roots").c_str(), O_RDONLY));
    hands by;
    dprintf(to, "%d ", his && files->set_mark(his.get(), "m", by) == 0);
    dprintf(to, "%d ", files->is_marked(his.get(), "m") && !files->is_marked(his.get(), "n"));
    dprintf(to, "%d ", -files->open(id["roots"], O_RDONLY) == of_somebody_else);
    dprintf(to, "%d ", -files->open(id["roots"], O_PATH) == of_somebody_else);
    dprintf(to, "%d ", files->open(id["fifo"], O_RDONLY) == -EINVAL);
    dprintf(to, "%d ", roots && files->set_mark(roots.get(), "m", by) == EPERM);
    dprintf(to, "%d ", setresuid(0, 0, 0) != 0 && chown(b.path("his").c_str(), 0, 0) != 0);
    std::string const self = "/proc/" + std::to_string(getpid()) + "/fd";
    pid_t const other = fork();
    if (other == 0) {
      prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
      _exit(access(self.c_str(), R_OK) != 0 && ptrace(PTRACE_ATTACH, getppid(), 0, 0) != 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(other, &status, 0);
    dprintf(to, "%d", status == 0);
  });
  CHECK(said == "1 1 1 1 1 1 1 1");
}

TEST_CASE("a forged journal tells its user no name that he cannot find", "[order]") {
  bench b;
  if (!begin_of_user(b)) return;
  std::string const secret = b.path("home/secret-merger"), inner = secret + "/open";
  REQUIRE((mkdir(b.path("home").c_str(), 0755) == 0 && mkdir(secret.c_str(), 0700) == 0));
  REQUIRE((mkdir(inner.c_str(), 0777) == 0 && chmod(inner.c_str(), 0777) == 0));
  b.write("his", "home");
  b.write("home/secret-merger/his", "home");
  for (auto const* name : {"his", "home/secret-merger/his"})
    REQUIRE(chown(b.path(name).c_str(), user, user) == 0);
  std::string const target = GENERATE(as<std::string>(), "", "/open", "/his");
  kind const what = GENERATE(kind::create, kind::unlink, kind::data);
  bool const is_data = what == kind::data;
  record r = b.about(what == kind::create ? kind::unlink : what, "his");
  r.what = what;
  r.uid = user;
  r.gid = his_group;
  file_id const found = b.id_of(secret + target);
  if (target == "/his" || is_data)
    r.file = found;
  else
    r.directory = found;
  if (is_data) b.tell_data(r.file, 0, "LOGS");
  if (!is_data && what == kind::create) lose(b, r, b.path("his"));
  if (!is_data && what != kind::create) b.tell(r);
  b.crash();
  REQUIRE(chown(b.log.c_str(), user, user) == 0);
  if (target == "/his") REQUIRE(chmod((secret + target).c_str(), 0400) == 0);
  CAPTURE(target, what);
  std::string const refused = recovered_as_owner(b), left = recovered_for_node(b.log);
  CHECK_THAT(refused, !Catch::Contains("secret") && !Catch::Contains("/open"));
  CHECK_THAT(left, !Catch::Contains("secret") && !Catch::Contains("/open"));
}

TEST_CASE("root's opener says the same of all that is not the user's", "[order]") {
  bench b;
  if (!begin_of_user(b)) return;
  for (auto const* name : {"shut", "shut/open"}) REQUIRE(mkdir(b.path(name).c_str(), 0755) == 0);
  REQUIRE(chmod(b.path("shut").c_str(), 0700) == 0);
  REQUIRE(mkfifo(b.path("shut/fifo").c_str(), 0666) == 0);
  b.write("shut/file", "x");
  b.write("his", "x");
  REQUIRE(chown(b.path("his").c_str(), user, user) == 0);
  std::vector<file_id> all;
  for (auto const* name : {"shut", "shut/open", "shut/file", "shut/fifo"}) {
    sluice::descriptor const fd(open(b.path(name).c_str(), O_RDONLY | O_NONBLOCK));
    REQUIRE(identify(fd.get(), all.emplace_back()) == 0);
  }
  file_id his = b.id_of(b.path("his"));
  his.handle.replace(4, 4, 4, '\0');  // no generation: ext4 takes any
  std::string const said = in_a_child([&](int to) {
    auto const files = become_user(user);
    files->keep_only({his.fs});
    for (int const flags : {O_RDONLY, O_RDWR, O_PATH, O_RDONLY | O_DIRECTORY})
      for (auto const& id : all)
        dprintf(to, "%s", files->open(id, flags) == -of_somebody_else ? "" : "another answer ");
    dprintf(to, "%s", files->open(his, O_RDONLY) == -ESTALE ? "" : "opened ");
  });
  CHECK(said.empty());
}

namespace {

/// Nobody else's at the same time.
uid_t const alone = 3'200'000'000u + static_cast<uid_t>(getpid());

/// A directory with two others, one that is shut, and a file.
struct his_places {
  bench b;
  std::map<std::string, file_id> id;

  bool begin() {
    if (!begin_of_user(b)) return false;
    for (auto const* name : {"p", "p/a", "p/b", "own"}) {
      REQUIRE(mkdir(b.path(name).c_str(), 0755) == 0);
      REQUIRE(chown(b.path(name).c_str(), alone, alone) == 0);
      id[name] = b.id_of(b.path(name));
    }
    REQUIRE(chmod(b.path("own").c_str(), 0700) == 0);
    b.write("file", "x");
    REQUIRE(chown(b.path("file").c_str(), alone, alone) == 0);
    id["file"] = b.id_of(b.path("file"));
    b.crash();
    // The kernel knows no names of any.
    return b.at.mount_again("");
  }
};

std::string word_of(int opened) {
  if (opened >= 0) return close(opened) == 0 ? "opened " : "? ";
  return opened == -held ? "held " : opened == -unasked ? "unasked " : "? ";
}

lock_patience few() {
  lock_patience p;
  p.first_ns = p.next_ns = p.last_ns = p.least_ns = p.ends_ns = 3'000'000'000;
  p.most_shared = 1;
  p.most_private = 2;
  return p;
}

constexpr int as_directory = O_RDONLY | O_DIRECTORY;

}  // namespace

TEST_CASE("who holds a user's directories keeps no other of his from being opened", "[order]") {
  his_places s;
  if (!s.begin()) return;
  held_lock const somebody(s.b.path("p"), true);
  if (!somebody) return;
  std::string const said = in_a_child([&](int to) {
    auto const files = become_user(alone, {}, few());
    files->keep_only({s.id["p"].fs});
    for (auto const* name : {"p/a", "p/b", "own"})
      dprintf(to, "%s", word_of(files->open(s.id[name], as_directory)).c_str());
    dprintf(to, "%s", word_of(files->open(s.id["file"], O_RDWR)).c_str());
  });
  CHECK(said == "held held opened opened ");
}

TEST_CASE("openers that earlier recoveries left behind count for directories first", "[order]") {
  his_places s;
  if (!s.begin()) return;
  auto const recovery = [&] {
    return in_a_child([&](int to) {
      auto const files = become_user(alone, {}, few());
      files->keep_only({s.id["p"].fs});
      for (auto const* name : {"own", "p"})
        dprintf(to, "%s", word_of(files->open(s.id[name], as_directory)).c_str());
      dprintf(to, "%s", word_of(files->open(s.id["file"], O_RDWR)).c_str());
    });
  };
  CHECK(recovery() == "opened opened opened ");
  named_process const one(0, opener_name(alone));
  CHECK(recovery() == "unasked unasked opened ");
  named_process const another(0, opener_name(alone));
  CHECK(recovery() == "unasked unasked unasked ");
}
