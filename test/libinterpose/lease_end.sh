#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A daemon that is killed does not prolong what it lent: the lease ends in the segment, the rate
# after it holds, then the job's own; four processes with waiters notice without being told.
. test/libinterpose/common.bash

guest='for i in 1 2 3 4; do "$0" 8 "$1" & done; wait'
JOB=lent limited read=1/s bash -c "$guest" "$PROGRAMS/steady" "$DIR" >"$SCRATCH/reads" &
job=$!
at_work lent
"$PROGRAMS/lender" "$SCRATCH/run/jobs/lent/segment" 1000 0 100 &
lender=$!
now_ms() { echo $(($(date +%s%N) / 1000000)); }
amount() {
  "$SLUICE" --run-dir "$SCRATCH/run" --json stat lent >"$SCRATCH/stat.json" || fail "stat: $?"
  json "$SCRATCH/stat.json" 'd["channels"][0]["amount"]'
}
reach() { # AMOUNT: until all have read so much; says how much it was
  local i so_far
  for i in $(seq 400); do
    so_far=$(amount)
    [ "$so_far" -ge "$1" ] && echo "$so_far" && return
    sleep 0.02
  done
  fail "only $so_far reads of $1"
}
# own_by MS: what the own share may have paid until then, at 100/s from 900 ms after the last loan,
# which was at most 50 ms old when the lender was killed.
own_by() {
  local since=$(($1 - killed_ms - 850))
  echo $((since > 0 ? since / 10 : 0))
}

reach 300 >"$SCRATCH/lent" || fail 'while lent'
kill -KILL $lender || fail 'the lender had ended'
killed_ms=$(now_ms)
wait $lender 2>/dev/null
killed=$(amount)
sleep 0.5  # the lease is over, nothing is paid
over=$(amount) over_ms=$(now_ms)
sleep 0.2
paused=$(amount) paused_ms=$(now_ms)
# 300 ms of 1000/s at most, what idle time was worth, one for each reader
between 0 $((over - killed)) $((360 + $(own_by "$over_ms"))) 'reads after the lender was killed'
between 0 $((paused - over)) $((40 + $(own_by "$paused_ms"))) \
  'reads between the lease and the own share'
paid=$(reach $((paused + 100))) || fail 'by the own share'
most=$(($(own_by "$(now_ms)") - $(own_by "$paused_ms")))
between 100 $((paid - paused)) $((most + 60)) 'reads by the own share'
wait $job || fail "the guests: $?"
