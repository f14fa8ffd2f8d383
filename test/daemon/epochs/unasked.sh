#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that lives by another clock passes gates unasked, and the report says so.
set -u
. test/daemon/epochs/manifests.bash
cat >"$SCRATCH/p.py" <<'END'
import ctypes, os, sys
new_user, new_time = 0x10000000, 0x80
is_refused = sys.argv[2] != "0" and ctypes.CDLL(None).unshare(new_user | new_time) != 0
if is_refused:
    sys.exit(77)
open(sys.argv[1], "w").close()
END
run() { # NAME CLOCK
  "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run --summary --policy "$SCRATCH/policy.json" -- \
    python3 "$SCRATCH/p.py" "$SCRATCH/data/MANIFEST-$1" "$2" 2>"$SCRATCH/said"
  local status=$?
  [ "$status" != 77 ] || skip 'cannot make a time namespace'
  [ "$status" = 0 ] || fail "it ended with $status: $(cat "$SCRATCH/said")"
}
run own 0
grep -q 'gates: 1 opened' "$SCRATCH/said" || fail "$(cat "$SCRATCH/said")"
grep -q 'unasked' "$SCRATCH/said" && fail "$(cat "$SCRATCH/said")"
run other 1
grep -q 'gates: passed unasked in .* time namespace, entered 1 times' "$SCRATCH/said" ||
  fail "$(cat "$SCRATCH/said")"
exit 0
