#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# waits
# timeout: 240
# One minute of the soak: jobs come and go, daemons are restarted.
[ -x "${BUILD:-build}/bench/curves" ] || exit 77
exec python3 "$(dirname "$0")/soak.py" --minutes 1
