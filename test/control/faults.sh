#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# waits
# timeout: 240
# Daemons are killed, stopped and cut off under load: see faults.py.
[ -x "${BUILD:-build}/bench/curves" ] || exit 77
exec python3 "$(dirname "$0")/faults.py"
