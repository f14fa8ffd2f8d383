// SPDX-License-Identifier: Apache-2.0
// build: -shared -fPIC
// A library, to be preloaded, that shows programs a clock which stands still. Like others of its
// kind it makes calls of its own to find out what time it is, and these come to the stage again.
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

namespace {

constexpr time_t shown_s = 1'000'000'000;

void look_for_settings() {
  struct stat s;
  if (stat("/", &s) != 0) abort();
}

}  // namespace

extern "C" int clock_gettime(clockid_t, timespec* to) noexcept {
  look_for_settings();
  *to = {shown_s, 0};
  return 0;
}

extern "C" int gettimeofday(timeval* to, void*) noexcept {
  look_for_settings();
  *to = {shown_s, 0};
  return 0;
}

extern "C" time_t time(time_t* to) noexcept {
  if (to != nullptr) *to = shown_s;
  return shown_s;
}

extern "C" int clock_nanosleep(clockid_t, int, timespec const*, timespec*) { return 0; }
