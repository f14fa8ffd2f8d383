#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# starves
# The daemon is killed and started again under load: no program fails, the limit holds meanwhile,
# and the job is cleared away when its last process has gone.
set -u
. test/lib/node.bash
policy 1000/s
start_node
"$LOOP" prepare 1 "$DATA" >/dev/null || fail "prepare"

begin=$(date +%s%N)
"$SLUICE" --run-dir "$RUN" run --job work -- "$LOOP" open 4000 "$DATA" >"$SCRATCH/out" 2>&1 &
work=$!
until_true test -d "$RUN/jobs/work" || fail "no job"
for round in 1 2 3; do
  sleep 0.4
  kill -9 "$NODE"
  wait "$NODE" 2>/dev/null
  kill -0 "$work" 2>/dev/null || fail "the program ended with the daemon"
  sleep 0.3
  start_node
  [ -d "$RUN/jobs/work" ] || fail "a restart removed a living job"
done
"$SLUICE" --run-dir "$RUN" --json jobs >"$SCRATCH/jobs.json" || fail "jobs"
grep -q '"work"' "$SCRATCH/jobs.json" || fail "the job was not taken over"
wait "$work" || fail "the program failed: $(cat "$SCRATCH/out")"
took_ms=$((($(date +%s%N) - begin) / 1000000))
# 4000 opens and as many closes at 1000/s.
[ "$took_ms" -ge 7800 ] || fail "the limit did not hold: $took_ms ms"
until_true no_jobs || fail "left over: $(ls -A "$RUN/jobs")"
[ "$(grep -c 'job taken over' "$SCRATCH/log")" -eq 3 ] || fail "not taken over three times"

# A job whose last process ended while no daemon was there goes at the next start. It runs until the
# pipe has no writer.
mkfifo "$SCRATCH/hold"
exec 9<>"$SCRATCH/hold"
"$SLUICE" --run-dir "$RUN" run --job short -- cat <"$SCRATCH/hold" 9>&- &
short=$!
until_true test -d "$RUN/jobs/short" || fail "no job"
kill -9 "$NODE"
wait "$NODE" 2>/dev/null
exec 9>&-
wait "$short" 2>/dev/null
start_node
until_true no_jobs || fail "left over after a restart: $(ls -A "$RUN/jobs")"
