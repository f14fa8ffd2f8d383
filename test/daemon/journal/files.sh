#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The log daemon holds many files, and its loop never waits for its table of them to grow.
. test/lib/order.bash
mkfifo "$SCRATCH/end"
"$SLUICE" --run-dir "$SCRATCH/run" run --order "durable@$DATA" --no-summary -- \
  cat "$SCRATCH/end" &
daemon=$(log_daemon $!) || exit 1
# It is ready when the program runs, which waits for this:
exec {held}>"$SCRATCH/end"
table=$(awk '/^FDSize/ {print $2}' "/proc/$daemon/status")
limit=$(awk '/^Max open files/ {print $4 < 16384 ? $4 : 16384}' "/proc/$daemon/limits")
exec {held}>&-
wait $! || fail "status $?"
[ "$table" -ge "$limit" ] || fail "room for $table descriptors of $limit"
