// SPDX-License-Identifier: Apache-2.0
// build: -static
// hold_lease FOLDER: what a hostile user does with the files of his own job. No library is loaded
// into it. It says `there`, takes a lease on FOLDER/segment as soon as nobody else has it, says
// `held`, and then changes a word of the head of FOLDER/after for ever.
#include <signal.h>
#include <sys/mman.h>

#include "check.h"

int main(int argc, char** argv) {
  CHECK(argc == 2);
  std::string const folder = argv[1];
  signal(SIGIO, SIG_IGN);
  int const after = open((folder + "/after").c_str(), O_RDWR | O_CLOEXEC);
  CHECK(after >= 0);
  void* const at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, after, 0);
  CHECK(at != MAP_FAILED);
  auto* const rules = static_cast<uint32_t volatile*>(at) + 3;  // after_header::rules
  puts("there");
  fflush(stdout);
  int const segment = open((folder + "/segment").c_str(), O_RDWR | O_CLOEXEC);
  CHECK(segment >= 0);
  while (fcntl(segment, F_SETLEASE, F_WRLCK) != 0) nap_ms(5);
  puts("held");
  fflush(stdout);
  for (;;)
    for (uint32_t const count : {0u, 1u, 0x80000000u}) *rules = count;
}
