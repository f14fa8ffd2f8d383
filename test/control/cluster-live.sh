#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# The cluster's promises to people, with real daemons; see cluster-live.py.
# timeout: 180
set -u
. "$(dirname "$0")/../lib.sh"
need python3
exec python3 "$(dirname "$0")/cluster-live.py"
