#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An error of the daemon is the error of fsync; options that make no sense are told before anything
# runs.
. test/lib/order.bash
need python3

with_fake eio
durable -- python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(fd, b"x")
try:
    os.fsync(fd)
except OSError as e:
    sys.exit(0 if e.errno == 5 else 3)
sys.exit(4)' "$DATA/file" || fail "EIO did not arrive: $?"

[ "$(json "$SCRATCH/report.json" 'd["order"]["answered"]')" = 1 ] || fail 'not counted'

refused() {
  local words=$1
  shift
  "$SLUICE" --run-dir "$SCRATCH/run" run "$@" -- touch "$SCRATCH/ran" 2>"$SCRATCH/said"
  [ $? = 2 ] || fail "not refused: $*"
  grep -q -- "$words" "$SCRATCH/said" || fail "$*: said $(cat "$SCRATCH/said")"
  [ ! -e "$SCRATCH/ran" ] || fail "the program ran: $*"
}
refused 'is no order' --order "durabel@$DATA"
refused 'write durable@DIR or ordered@DIR' --order ordered
refused 'no-such' --order "durable@$DATA/no-such"
refused 'no target is durable' --order-journal "$SCRATCH/log"

cat >"$SCRATCH/policy.json" <<END
{"targets": {"data": {"path": "$DATA", "order": "orderd"}}}
END
refused 'policy.json:1:.*did you mean "ordered"' --policy "$SCRATCH/policy.json"
sed -i 's/orderd/durable/' "$SCRATCH/policy.json"
"$SLUICE" --run-dir "$SCRATCH/run" run --policy "$SCRATCH/policy.json" \
  --order-journal "$SCRATCH/kept" \
  -- true || fail "a durable policy does not run: $?"
[ -e "$SCRATCH/kept" ] || fail 'the log that was named is gone'
