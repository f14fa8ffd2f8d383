// SPDX-License-Identifier: Apache-2.0
// `simulate compare`: every allocation algorithm on the same recorded demand.
#pragma once

namespace sluice::sim {

int compare_main(int argc, char** argv);

}  // namespace sluice::sim
