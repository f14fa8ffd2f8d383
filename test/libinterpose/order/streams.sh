#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# Which changes wait for a barrier: those of the process, of the whole job, of threads of that name,
# or of that tree; the others go on, and are not told of its errors. sluice order shows the streams.
. test/lib/order.bash

with_fake gate
mkdir -p "$SCRATCH/tree"
for stream in process job thread path; do
  ORDER=ordered:$stream durable --order "ordered:$stream@$SCRATCH/tree" -- \
    "$PROGRAMS/order_streams" "$DATA" "$SCRATCH/tree" $stream || fail "$stream: status $?"
  rmdir "$SCRATCH/tree/sub"
done

ORDER=ordered:thread durable --job shown -- sh -c \
  "$SLUICE --run-dir $SCRATCH/run --json order shown >$SCRATCH/order.json" || fail "status $?"
grep -q '"streams":{"thread":0}' <(tr -d ' \n' <"$SCRATCH/order.json") ||
  fail "sluice order says $(cat "$SCRATCH/order.json")"
! ORDER=ordered:thred durable true 2>"$SCRATCH/said" || fail 'a stream that is none'
grep -q 'did you mean' "$SCRATCH/said" || fail "says $(cat "$SCRATCH/said")"
