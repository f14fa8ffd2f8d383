// SPDX-License-Identifier: Apache-2.0
// sluice-order with --bounded: journals that their users forged to take much of the machine.
#include "journal/recovery_bounds.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "journal/file_disk.h"
#include "journal/slots.h"
#include "journal/writer.h"
#include "lib/scratch.h"

// The memory of a sanitizer itself is above the bound.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

using namespace sluice::journal;
using sluice::test::scratch;

namespace {

constexpr std::uint64_t window_ns = 1'000'000'000;

struct ended {
  int status;
  std::string said;
};

/// sluice-order as the keeper starts it for what was left of a user.
class recovering {
 public:
  /// `data_bytes`: what it may have already.
  recovering(std::string const& dir, std::string const& journal, unsigned mib,
             std::uint64_t data_bytes = RLIM_INFINITY) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    std::string const program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
        "bin/sluice-order";
    std::vector<std::string> const words = {
        program,    "serve",         "--only-recover", "--bounded",         "--jobs",    dir,
        "--status", dir + "/status", "--journal-mib",  std::to_string(mib), "--journal", journal};
    pid_ = fork();
    if (pid_ == 0) {
      std::vector<char*> argv;
      for (auto const& word : words) argv.push_back(const_cast<char*>(word.c_str()));
      argv.push_back(nullptr);
      dup2(ends[1], STDERR_FILENO);
      rlimit const bound = {data_bytes, RLIM_INFINITY};
      setrlimit(RLIMIT_DATA, &bound);
      execv(program.c_str(), argv.data());
      _exit(127);
    }
    close(ends[1]);
    said_ = ends[0];
  }

  ended end() {
    ended out = {};
    char some[512];
    for (ssize_t got = 0; (got = read(said_, some, sizeof some)) > 0;)
      out.said.append(some, static_cast<std::size_t>(got));
    close(said_);
    waitpid(pid_, &out.status, 0);
    return out;
  }

  /// It is about to read all of the journal.
  void wait_for_read(std::uint64_t bytes) const {
    for (;;) {
      std::ifstream io("/proc/" + std::to_string(pid_) + "/io");
      std::string word;
      std::uint64_t had = 0;
      REQUIRE((io >> word >> had && word == "rchar:"));
      if (had >= bytes) return;
      usleep(1'000);
    }
  }

  /// What it may have, as the kernel says.
  std::uint64_t data_bytes() const {
    std::ifstream limits("/proc/" + std::to_string(pid_) + "/limits");
    std::string line;
    std::string const begin = "Max data size";
    while (std::getline(limits, line))
      if (line.starts_with(begin)) return std::stoull(line.substr(begin.size()));
    return 0;
  }

  void tell_to_end() const { kill(pid_, SIGTERM); }

 private:
  pid_t pid_ = 0;
  int said_ = -1;
};

/// Full of records, each of which names two files that no other does.
void forge(std::string const& path, std::uint64_t bytes) {
  make_log_file(path, bytes, window_ns);
  file_disk disk(path, file_disk::use::write);
  writer to(disk, read_slots(disk).in_force,
            {[] { return std::uint64_t{1}; }, [] { return std::uint64_t{1}; }});
  std::uint32_t files = 0;
  std::uint64_t lsn = 0;
  auto const other = [&] {
    ++files;
    return std::string(reinterpret_cast<char const*>(&files), sizeof files);
  };
  record r;
  r.what = kind::create;
  r.name = "n";
  r.mode = S_IFREG;
  for (int count = 0;; ++count) {
    for (auto* const one : {&r.file, &r.directory}) one->handle = other();
    if (int const error = to.try_append(r, lsn); error == ENOSPC) break;
    if (count % 4096 == 0) REQUIRE(to.commit(lsn) == 0);
  }
  REQUIRE(to.commit(lsn) == 0);
}

}  // namespace

TEST_CASE("a journal that makes recovery remember too much is refused", "[journal]") {
  scratch const at;
  std::string const journal = at.dir + "/journal";
  forge(journal, 64 << 20);
  {
    INFO("with little memory");
    ended const how = recovering(at.dir, journal, 64, 48 << 20).end();
    CAPTURE(how.said);
    CHECK(WIFEXITED(how.status));
    CHECK(WEXITSTATUS(how.status) == sluice::exit_sluice);
    CHECK(how.said.find("needs more memory") != std::string::npos);
  }
  {
    INFO("larger");
    ended const how = recovering(at.dir, journal, 32).end();
    CAPTURE(how.said);
    CHECK(WEXITSTATUS(how.status) == sluice::exit_sluice);
    CHECK(how.said.find("has 64 MiB, and a journal here has 32 at most") != std::string::npos);
  }
}

TEST_CASE("a recovery ends when it is told to, however much there is to read", "[journal]") {
  scratch const at;
  std::string const journal = at.dir + "/journal";
  constexpr std::uint64_t bytes = std::uint64_t{64} << 30;
  {
    int const fd = open(journal.c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(ftruncate(fd, bytes) == 0);
    close(fd);
    file_disk disk(journal, file_disk::use::write);
    std::byte const id[16] = {};
    REQUIRE(make_log(disk, first_superblock(bytes - area_begin, 1, id, window_ns)) == 0);
  }
  recovering one(at.dir, journal, 65536);
  one.wait_for_read(16 << 20);
  CHECK(one.data_bytes() == recovery_memory_bytes(bytes));
  one.tell_to_end();
  ended const how = one.end();
  CAPTURE(how.said);
  CHECK(WIFEXITED(how.status));
  CHECK(WEXITSTATUS(how.status) == sluice::exit_sluice);
  CHECK(how.said.find("told to end before") != std::string::npos);
}

#endif
