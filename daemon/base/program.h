// SPDX-License-Identifier: Apache-2.0
// The end of every program of ours: an exception becomes one line and the exit status.
#pragma once

#include <fcntl.h>

#include <cstdio>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/printable.h"

namespace sluice {

/// All that was printed has left us. Else it throws: who reads it would take a part for the whole.
inline void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw errno_error("standard output cannot be written");
}

/// A program may be started with its standard streams closed. What it opens then must not come to
/// stand there: a message would be written into it. What is put there can be used in the wrong
/// direction only, so that it still fails as a closed one does (EBADF). Programs that it starts
/// find them closed.
inline void keep_standard_places() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/// The status that `run()` returns, or the one of what it throws, told as `NAME: …` on standard
/// error.
template <class Run>
int guarded(char const* name, Run&& run) {
  keep_standard_places();
  try {
    int const status = run();
    if (status == 0) flush_output();
    return status;
  } catch (error const& e) {
    std::fprintf(stderr, "%s: %s\n", name, without_commands(e.what()).c_str());
    return e.status();
  } catch (std::bad_alloc const&) {
    std::fprintf(stderr, "%s: not enough memory\n", name);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s: %s\n", name, without_commands(e.what()).c_str());
  }
  return exit_sluice;
}

}  // namespace sluice
