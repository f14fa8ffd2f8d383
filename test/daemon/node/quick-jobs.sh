#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A user who runs one short program after the other has each of them metered: where those that are
# over still take his places, the next one waits. Where all his jobs live it does not wait long.
set -u
. test/lib/node.bash
two_users
policy 500/s
start_node

run() { as $bob "$SLUICE" --run-dir "$RUN" run --no-summary -- "$@"; }
for _ in $(seq 120); do run true || fail "status $?"; done 2>"$SCRATCH/said"
grep 'without a daemon' "$SCRATCH/said" &&
  fail "so many were not metered: $(wc -l <"$SCRATCH/said")"

# 32 that live. Whoever waits for a place does so for seconds only, so the others are to be gone.
none_is_left() { [ "$($S --json jobs | grep -c '"job"')" = 0 ]; }
until_true 100 none_is_left || fail "jobs that are over stay: $($S jobs)"
mkfifo "$SCRATCH/open"
chmod a+rx "$SCRATCH" && chmod a+r "$SCRATCH/open"
run cat "$SCRATCH/open" 2>"$SCRATCH/said" &
exec 8>"$SCRATCH/open"  # when it is there
for _ in $(seq 31); do run cat "$SCRATCH/open" 2>>"$SCRATCH/said" 8>&- & done
jobs_live() { [ "$($S --json jobs | grep -o '"processes": *1' | wc -l)" = 32 ]; }
until_true 100 jobs_live || fail "not 32 jobs: $($S jobs; cat "$SCRATCH/said")"
run true 2>"$SCRATCH/said" || fail "status $?"
grep -q 'without a daemon: .*too many jobs' "$SCRATCH/said" ||
  fail "33 jobs: $(cat "$SCRATCH/said")"
grep -q 'waiting' "$SCRATCH/said" && fail "it waited: $(cat "$SCRATCH/said")"
exec 8>&-
end_node
wait
