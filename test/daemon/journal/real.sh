#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The real log daemon below the real stage: alive, killed, stopped for a second. The program never
# fails or hangs, its files are what it wrote, and nothing is left of the log behind it.
. test/lib/order.bash
need pgrep
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
python3 -c 'import os, sys
os.setxattr(sys.argv[1], "user.sluice.test", b"")' "$DATA" 2>/dev/null ||
  skip 'the file system has no extended attributes for users'

for what in left_alone killed stopped; do
  loop $what
  [ "$(json "$SCRATCH/report.json" 'd["order"]["answered"] + d["order"]["sent_back"]')" -gt 0 ] ||
    fail "$what: the daemon answered nothing"
  [ ! -e "$DATA/.sluice-order.$(id -u).log" ] ||
    fail "$what: the log is still there: $(cat "$SCRATCH/said")"
  for file in "$DATA"/loop*; do
    [ "$(tr -d b <"$file" | tr -d x | wc -c)" = 0 ] || fail "$what: $file holds other bytes"
  done
done
