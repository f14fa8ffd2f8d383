// SPDX-License-Identifier: Apache-2.0
// What is said of input that is refused, which is always a usage error.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "base/error.h"

namespace sluice::test {

/// "accepted" when nothing was refused.
template <class Read>
std::string refusal_of(Read read) {
  try {
    read();
  } catch (error const& e) {
    CHECK(e.status() == exit_usage);
    return e.what();
  }
  return "accepted";
}

}  // namespace sluice::test
