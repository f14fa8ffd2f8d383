#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 120
# What a node does without its parent, with real daemons and a real job: see node-orphan.py.
[ -x "${BUILD:-build}/bin/sluiced" ] || exit 77
exec python3 "$(dirname "$0")/node-orphan.py"
