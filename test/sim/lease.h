// SPDX-License-Identifier: Apache-2.0
// simulate lease [--cycles N] [--hours H] [--seed S] [--break NAME|all] [--shape NAME] [--verbose]
#pragma once

namespace sluice::sim {

int lease_main(int argc, char** argv);

}  // namespace sluice::sim
