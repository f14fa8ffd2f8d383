#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job that began while no daemon was there: later steps join it as it is, with a warning, and the
# daemon clears away what it leaves behind.
set -u
. test/lib/node.bash
policy 1000/s

# It runs until the pipe has no writer.
mkfifo "$SCRATCH/hold"
exec 9<>"$SCRATCH/hold"
"$SLUICE" --run-dir "$RUN" run --job early --limit open=500/s -- cat <"$SCRATCH/hold" 9>&- &
first=$!
until_true test -d "$RUN/jobs/early" || fail "no job"
start_node 9>&-
"$SLUICE" --run-dir "$RUN" run --job early --class bronze -- true 2>"$SCRATCH/said" ||
  fail "a step of a job that began alone was refused: $(cat "$SCRATCH/said")"
grep -q "began before" "$SCRATCH/said" || fail "nothing said: $(cat "$SCRATCH/said")"
"$SLUICE" --run-dir "$RUN" run --job late -- true || fail "another job"
exec 9>&-
wait "$first" || fail "the first step failed"
until_true no_jobs || fail "left over: $(ls -A "$RUN/jobs")"
