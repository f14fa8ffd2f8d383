#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pause stops a job, however long; a resume wakes its waiters at once.
. test/libinterpose/common.bash

JOB=pausing limited read=1000/s "$PROGRAMS/loop" pread 4000 "$DIR" >"$SCRATCH/out" &
command="$SLUICE --run-dir $SCRATCH/run"
at_work pausing
$command pause pausing || fail "pause: $?"
sleep 0.2
one=$($command --json stat pausing | python3 -c 'import json, sys
print(json.load(sys.stdin)["channels"][0]["amount"])')
sleep 1
two=$($command --json stat pausing | python3 -c 'import json, sys
print(json.load(sys.stdin)["channels"][0]["amount"])')
$command resume pausing || fail "resume: $?"
wait $! || fail "the guest: $?"
between 0 $((two - one)) 20 'reads during one second of pause'
[ $two -lt 4000 ] || fail 'the guest was too quick to be paused'
between 4800 "$(cat "$SCRATCH/out")" 60000 'milliseconds for 4000 reads and a pause'
