#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No daemon begins in a time namespace whose clock is another: the next one outside of it would take
# the jobs of the machine for dead, and let a pause of an hour last for days.
set -u
. test/lib/node.bash
need unshare
unshare -T --boottime 1000 true 2>/dev/null || skip 'no time namespace for us here'
policy 5k/s
for clock in boottime monotonic; do
  unshare -T --$clock 1000 --fork "$SLUICED" --role node --name n1 --run-dir "$RUN" \
    --policy "$SCRATCH/policy.json" --metrics none >"$SCRATCH/log" 2>&1
  [ $? = 125 ] || fail "$clock: status $?: $(cat "$SCRATCH/log")"
  grep -q "the $clock clock of this time namespace is 1000 s beside" "$SCRATCH/log" ||
    fail "$clock: $(cat "$SCRATCH/log")"
done
# One without an offset has the same clock.
unshare -T "$SLUICED" --role node --name n1 --run-dir "$RUN" \
  --policy "$SCRATCH/policy.json" --metrics none >"$SCRATCH/log" 2>&1 &
NODE=$!
trap 'end_node' EXIT
until_true $S policy get || fail "the daemon does not serve: $(cat "$SCRATCH/log")"
