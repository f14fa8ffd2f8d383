#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# beside
# Random calls on a file do what they do without us: every result, error number and byte is the same
# bare, under limits that delay, and where fsync waits for a log.
. test/libinterpose/common.bash

seeds=${SEEDS:-"1 2 3"}
calls=${CALLS:-700}
for seed in $seeds; do
  "$PROGRAMS/random_file" "$DIR" "$seed" "$calls" >"$SCRATCH/bare" || fail "bare, seed $seed"
  limited "all=20000/s,data=200MiB/s" "$PROGRAMS/random_file" "$DIR" "$seed" "$calls" \
    >"$SCRATCH/staged" || fail "under limits, seed $seed: status $?"
  cmp "$SCRATCH/bare" "$SCRATCH/staged" || fail "under limits, seed $seed: another result"
  timeout -s KILL 60 "$SLUICE" --run-dir "$SCRATCH/run" run --order "durable@$DIR" --no-summary \
    "$PROGRAMS/random_file" "$DIR" "$seed" "$calls" >"$SCRATCH/staged" 2>"$SCRATCH/log" ||
    fail "durable, seed $seed: status $?: $(tail -n 3 "$SCRATCH/log")"
  cmp "$SCRATCH/bare" "$SCRATCH/staged" || fail "durable, seed $seed: another result"
done
[ "$(wc -l <"$SCRATCH/bare")" -gt "$calls" ] || fail 'it made too few calls'
