// SPDX-License-Identifier: Apache-2.0
// What a user keeps of the files of a job that is over: nothing.
#include "segment/tidy.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "lib/scratch.h"

using namespace sluice;
namespace fs = std::filesystem;

TEST_CASE("tidy: a file that its user has given another name is emptied", "[segment]") {
  test::scratch const at;
  std::string const job = at.dir + "/job", elsewhere = at.dir + "/his", other = job + "/other";
  fs::create_directory(job);
  std::ofstream(job + "/segment") << std::string(100'000, 's');
  std::ofstream(other) << "o";
  fs::create_hard_link(job + "/segment", elsewhere);

  CHECK_FALSE(segment::tidy(job, {.is_over = false, .has_let_go = true, .sizes = {}}).is_gone);
  CHECK(fs::file_size(elsewhere) == 100'000);
  segment::tidied const done =
      segment::tidy(job, {.is_over = true, .has_let_go = true, .sizes = {}});
  CHECK(done.is_gone);
  CHECK_FALSE(fs::exists(job));
  CHECK(fs::file_size(elsewhere) == 0);
}
