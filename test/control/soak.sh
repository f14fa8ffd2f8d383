#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Jobs come and go while daemons are restarted, for a minute; `make soak` does it for longer.
[ -x "${BUILD:-build}/bench/curves" ] || exit 77
exec python3 "$(dirname "$0")/soak.py" --minutes 1
