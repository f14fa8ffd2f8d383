#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# starves
# One step of a job after another, with less than a second between them: each finds the job, also
# when the daemon clears up behind others meanwhile, and none goes without the policy.
set -u
. test/lib/node.bash
policy 1000/s
start_node
end=$((SECONDS + 12)) # the daemon clears up every 5 s
while [ "$SECONDS" -lt "$end" ]; do
  "$SLUICE" --run-dir "$RUN" run --no-summary --job steps -- true 2>>"$SCRATCH/said" ||
    fail "a step failed: $(cat "$SCRATCH/said")"
  sleep 0.3
done
[ ! -s "$SCRATCH/said" ] || fail "a step said: $(cat "$SCRATCH/said")"
[ "$(grep -c 'job made' "$SCRATCH/log")" = 1 ] || fail "not one job: $(cat "$SCRATCH/log")"
