#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# beside
# The lease protocol in virtual time: 300,000 control cycles under faults keep the sum of what
# nodes may use below the capacity, and each rule turned off is missed.
# timeout: 900
set -eu
simulate=$BUILD/test/simulate
[ -x "$simulate" ] || { echo "no $simulate: make build/test/simulate"; exit 1; }
"$simulate" lease --cycles 300000
"$simulate" lease --break all --cycles 1000000  # some are rare
