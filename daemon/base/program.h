// SPDX-License-Identifier: Apache-2.0
// The end of every program of ours: an exception becomes one line and the exit status.
#pragma once

#include <cstdio>
#include <exception>
#include <new>

#include "base/error.h"

namespace sluice {

/// The status that `run()` returns, or the one of what it throws, told as `NAME: …` on standard
/// error.
template <class Run>
int guarded(char const* name, Run&& run) {
  try {
    return run();
  } catch (error const& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return e.status();
  } catch (std::bad_alloc const&) {
    std::fprintf(stderr, "%s: not enough memory\n", name);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
  }
  return exit_sluice;
}

}  // namespace sluice
