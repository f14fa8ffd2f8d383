#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In another time namespace the daemon's times mean nothing: a program runs there without limits,
# and `sluice run` says so.
set -u
. test/lib/node.bash
[ "$(id -u)" = 0 ] || skip 'needs root'
unshare -T --monotonic -10 --fork true 2>/dev/null || skip 'there are no time namespaces'
policy 2k/s
start_node
work='import os, sys
for _ in range(300): os.stat(sys.argv[1])
print("done")'
timeout -s KILL 60 unshare -T --monotonic -2000 --fork $S run -q --limit "stat=20/s@$DATA" -- \
  python3 -c "$work" "$DATA" >"$SCRATCH/out" 2>"$SCRATCH/err" || fail "status $?"
grep -qx done "$SCRATCH/out" || fail "$(cat "$SCRATCH/out")"
grep -q 'its clock is not that of the daemon' "$SCRATCH/err" || fail "$(cat "$SCRATCH/err")"
exit 0
