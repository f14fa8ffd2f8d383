#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Threads are cancelled while they wait, and in a blocking read of a pipe.
. test/libinterpose/common.bash

guest read=50/s "$PROGRAMS/cancel" "$DIR"
counted 5 1000000 channel read delayed

# Who was cancelled in a wait waits no more.
JOB=stay limited read=1/min "$PROGRAMS/cancel" "$DIR" stay >"$SCRATCH/log" &
job=$!
for i in $(seq 200); do [ -s "$SCRATCH/log" ] && break; sleep 0.02; done
"$SLUICE" --run-dir "$SCRATCH/run" --json explain "$(cat "$SCRATCH/log")" >"$SCRATCH/explained" ||
  fail "explain"
[ "$(json "$SCRATCH/explained" 'd["waiting"]')" = '[]' ] ||
  fail "still waiting: $(cat "$SCRATCH/explained")"
wait $job || fail "status $?"
