#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A daemon that is killed does not prolong what it lent: the lease ends in the segment, the rate
# after it holds, then the job's own; four processes with waiters notice without being told.
. test/libinterpose/common.bash

guest='for i in 1 2 3 4; do "$0" 4 "$1" & done; wait'
JOB=lent limited read=1/s bash -c "$guest" "$PROGRAMS/steady" "$DIR" >"$SCRATCH/reads" &
job=$!
segment=$SCRATCH/run/jobs/lent/segment
for i in $(seq 100); do [ -e "$segment" ] && break; sleep 0.02; done
sleep 0.1
"$PROGRAMS/lender" "$segment" 1000 0 100 &
lender=$!
amount() {
  "$SLUICE" --run-dir "$SCRATCH/run" --json stat lent |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["channels"][0]["amount"])'
}
sleep 1
lent=$(amount)
kill -KILL $lender || fail 'the lender had ended'
wait $lender 2>/dev/null
killed=$(amount)
sleep 0.5  # the lease is over, nothing is paid
over=$(amount)
sleep 0.2
paused=$(amount)
wait $job || fail "the guests: $?"
all=$(awk '{ n += $1 } END { print n }' "$SCRATCH/reads")
[ "$lent" -ge 300 ] || fail "only $lent reads while lent"
# 300 ms of 1000/s at most, what idle time was worth, one for each reader
between 0 $((over - killed)) 360 'reads after the lender was killed'
between 0 $((paused - over)) 40 'reads between the lease and the own share'
# over two seconds at 100/s
between 100 $((all - paused)) 360 'reads by the own share'
