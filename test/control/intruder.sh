#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A peer with a key that does not keep to the protocol: see intruder.py.
[ -x "${BUILD:-build}/bench/intruder" ] || { echo "skip: no build/bench/intruder"; exit 77; }
exec python3 "$(dirname "$0")/intruder.py"
