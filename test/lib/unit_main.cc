// SPDX-License-Identifier: Apache-2.0
// The one main of the unit tests. Catch2's own, kept apart because it is slow to compile.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
