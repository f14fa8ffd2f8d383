#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where a lease has run out and the policy says `open`, a large read is free at once: it is not
# asked for in pieces of what the rate was.
. test/libinterpose/common.bash

truncate -s 64M "$DIR/large"
touch "$SCRATCH/wait"
guest='while [ -e "$0" ]; do sleep 0.02; done; exec dd if="$1" of=/dev/null bs=16M'
JOB=free limited "data=1kB/s@$DIR" sh -c "$guest" "$SCRATCH/wait" "$DIR/large" 2>"$SCRATCH/log" &
job=$!
segment=$SCRATCH/run/jobs/free/segment
for i in $(seq 200); do [ -e "$segment" ] && break; sleep 0.02; done
"$PROGRAMS/lender" "$segment" open || fail 'cannot end the lease'
rm "$SCRATCH/wait"
wait $job || fail "status $?: $(cat "$SCRATCH/log")"
counted 5 5 op read calls
counted 1 20 passthrough lease_over calls
