#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A daemon that ran in a time namespace, days ahead, has kept until when a job stands. The next one
# runs outside: the job stands until the same time of day.
set -u
. test/lib/node.bash
need unshare
ahead="unshare -T --boottime 1000000"
[ "$($ahead cut -d. -f1 /proc/uptime 2>/dev/null || echo 0)" -ge 1000000 ] ||
  skip 'no time namespace for us here'
policy 5k/s
mkdir "$SCRATCH/state"
printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$ahead" "$SLUICED" >"$SCRATCH/ahead"
chmod +x "$SCRATCH/ahead"
usual=$SLUICED SLUICED=$SCRATCH/ahead
start_node --state-dir "$SCRATCH/state"
job=
trap 'kill ${job:-} 2>/dev/null; end_node' EXIT
$S run --job work --no-summary -- sleep 600 &
job=$!
until_true 30 is True "[j['job'] for j in d] == ['work']" || fail "no job: $(cat "$SCRATCH/log")"
$S pause work --for 1h || fail 'pause'
ends="d[0]['override']['pause']['until']"
end=$(field "$ends") || fail "no end: $(field d)"
end_node
SLUICED=$usual
start_node --state-dir "$SCRATCH/state"
until_true 30 is True "abs($ends - $end) < 60" || fail "it ended at $end, now $(field "$ends")"
