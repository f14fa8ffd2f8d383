#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# starves
# waits
# timeout: 240
# A standby takes over from a cluster controller that is killed, stopped, cut off: see standby.py.
[ -x "${BUILD:-build}/bench/curves" ] || { echo "skip: no build/bench/curves"; exit 77; }
exec python3 "$(dirname "$0")/standby.py"
