#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# waits
# timeout: 240
# Gates of cluster epochs while cables are cut, above and below a relay: see after_cut.py.
exec python3 "$(dirname "$0")/after_cut.py"
