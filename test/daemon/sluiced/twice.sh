#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One daemon per run directory, and per state directory: the second says who is there and leaves it
# alone; after a kill -9 the next one starts.
set -u
. test/lib/site.bash
policy "$SCRATCH/p.json"
flags="--role node --policy $SCRATCH/p.json --run-dir $SCRATCH/run"
start first $flags
first=$PID
timeout 20 "$SLUICED" $flags >"$SCRATCH/out" 2>&1
[ $? = 125 ] || fail "started twice: $(cat "$SCRATCH/out")"
grep -q "a sluiced (pid $first) serves $SCRATCH/run already" "$SCRATCH/out" ||
  fail "said: $(cat "$SCRATCH/out")"
timeout 20 "$SLUICED" --role node --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/other" \
  --state-dir "$SCRATCH/run/state" >"$SCRATCH/out" 2>&1
[ $? = 125 ] || fail "two have one state: $(cat "$SCRATCH/out")"
grep -q "a sluiced (pid $first) keeps its state in $SCRATCH/run/state already" "$SCRATCH/out" ||
  fail "said of the state: $(cat "$SCRATCH/out")"
curl -sf "http://$METRICS/health" >/dev/null || fail "the first one suffered"
kill -9 "$first"
wait "$first" 2>/dev/null
start second $flags
[ "$PID" != "$first" ] || fail "no second one"
stop "$PID"
grep -q 'info end status=0' "$LOG" || fail "no last line: $(cat "$LOG")"
