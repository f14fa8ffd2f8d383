// SPDX-License-Identifier: Apache-2.0
// Lines of strace, taken apart: what is in quotes, brackets and names of descriptors ends nothing.
#include <catch2/catch.hpp>

#include "commands/trace/convert.h"
#include "commands/trace/paths.h"
#include "commands/trace/strace_line.h"

using namespace sluice;
using trace::strace_line;

namespace {

strace_line parsed(std::string_view text) {
  strace_line line;
  char const* why = trace::parse(text, line);
  INFO(text);
  CHECK((why == nullptr ? "" : std::string(why)) == "");
  return line;
}

}  // namespace

TEST_CASE("strace: the forms of a line", "[trace][strace]") {
  auto const call =
      parsed(R"(12 1795231330.036642 openat(AT_FDCWD</a(b>, "x)\"y", O_RDONLY) = 3</r = x> <0.1>)");
  CHECK(call.is == strace_line::kind::call);
  CHECK(call.pid == 12);
  CHECK(call.unix_s == Approx(1795231330.036642));
  CHECK(call.name == "openat");
  CHECK(call.arguments == R"(AT_FDCWD</a(b>, "x)\"y", O_RDONLY)");
  CHECK(call.result == "3</r = x> <0.1>");
  CHECK(parsed("1795231330.03 close(3) = 0").pid == 0);
  CHECK(parsed("[pid  77] 1795231330.03 close(3)     = 0").pid == 77);
  CHECK(parsed("7 1.5 read(3</x>,  <unfinished ...>").is == strace_line::kind::begun);
  auto const resumed = parsed("7 1.6 <... read resumed>\"a\", 10) = 1");
  CHECK(resumed.is == strace_line::kind::resumed);
  CHECK(resumed.name == "read");
  CHECK(resumed.arguments == "\"a\", 10");
  CHECK(parsed("7 1.6 --- SIGCHLD {si_signo=SIGCHLD} ---").is == strace_line::kind::other);
  CHECK(parsed("strace: Process 7 attached").is == strace_line::kind::other);
  CHECK(parsed("7 1.6 exit_group(0) = ?").result == "?");
}

TEST_CASE("strace: lines that were cut are refused", "[trace][strace]") {
  strace_line line;
  std::string const whole = R"(12 1795231330.036642 openat(AT_FDCWD</a>, "x", 0) = 3)";
  for (std::size_t n = 0; n < whole.size() - 1; ++n) {
    INFO(whole.substr(0, n));
    CHECK(trace::parse(std::string_view(whole).substr(0, n), line) != nullptr);
  }
  CHECK(std::string(trace::parse("12 12:00:01.5 close(3) = 0", line)).find("-ttt") !=
        std::string::npos);
}

TEST_CASE("strace: arguments and descriptors", "[trace][strace]") {
  std::string_view rest = R"(3</a,b>, [{"c,d"}, 1], "e\"f,", 0)";
  CHECK(trace::take_argument(rest) == "3</a,b>");
  CHECK(trace::take_argument(rest) == R"([{"c,d"}, 1])");
  CHECK(trace::unquoted(trace::take_argument(rest)) == "e\"f,");
  CHECK(trace::take_argument(rest) == "0");
  CHECK(rest.empty());
  CHECK(trace::descriptor_of("3</dev/null<char 1:3>>").path == "/dev/null");
  CHECK(trace::descriptor_of("AT_FDCWD</x>").path == "/x");
  CHECK_FALSE(trace::descriptor_of("1<<2").is_named);
  CHECK(trace::unquoted(R"("a\101\n")") == "aA\n");
}

TEST_CASE("trace: files of real file systems below a directory", "[trace]") {
  trace::path_filter const any("");
  CHECK(any.counts("/scratch/x", ""));
  CHECK(any.counts("x", ""));
  CHECK_FALSE(any.counts("/proc/self/maps", ""));
  CHECK_FALSE(any.counts("null", "/dev"));
  trace::path_filter const below("/scratch/me/");
  CHECK(below.counts("/scratch/me", ""));
  CHECK(below.counts("a/../b", "/scratch/me/c"));
  CHECK_FALSE(below.counts("../../x", "/scratch/me/c"));
  CHECK_FALSE(below.counts("/scratch/mean", ""));
  CHECK_FALSE(below.counts("x", ""));
}

TEST_CASE("trace: formats are told by their content", "[trace]") {
  auto const is = [](std::string_view text) -> std::string {
    auto const* found = trace::detect_in(text);
    return found == nullptr ? "none" : std::string(found->name);
  };
  CHECK(is("# x\n\ntime_s,open\n") == "csv");
  CHECK(is("fio version 3 iolog\n") == "iolog");
  CHECK(is("{\"systemcall\": 1}") == "jsonl");
  CHECK(is("mdt.a-MDT0000.md_stats=\nsnapshot_time 1 secs\n") == "lustre");
  CHECK(is("job_stats:\n- job_id: x\n") == "lustre");
  CHECK(is("12 1795231330.03 close(3) = 0\n") == "strace");
  CHECK(is(std::string("3.10\0\0\0\0 aaaaaaaaaaaaa", 20)) == "darshan");
  CHECK(is("hello\n") == "none");
  CHECK(is("") == "none");
}
