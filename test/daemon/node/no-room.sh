#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job of the scheduler finds no room on the node, because its user has as many jobs as he may
# have. It is made when one of these has gone, and its note says so.
set -u
. test/lib/node.bash
two_users
python=/usr/bin/python3  # one that everybody can reach
as $ann "$python" -c 'import json' 2>/dev/null || skip "needs $python"
policy 500/s
start_node
write_asker
chmod a+rx "$SCRATCH" && chmod a+r "$SCRATCH/ask.py"
mkfifo "$SCRATCH/words"
as $ann "$python" "$SCRATCH/ask.py" "$RUN/sluiced.sock" <"$SCRATCH/words" >"$SCRATCH/said" 2>&1 &
asker=$!
exec 8>"$SCRATCH/words"
for i in $(seq 32); do echo "{\"verb\":\"join\",\"job\":\"j$i\"}" >&8; done
are_made() { [ "$(grep -c '"preload"' "$SCRATCH/said")" = 32 ]; }
until_true 60 are_made || fail "not 32 jobs: $(tail -n 2 "$SCRATCH/said")"

mkdir -m 700 "$RUN/scheduler"
echo "{\"job\":\"4242\",\"uid\":$ann}" >"$RUN/scheduler/4242"
until_true grep -q 'announced job waits for room' "$SCRATCH/log" || fail "nothing waits for room"
register='{"verb":"register","job":"4242"}'
ask "$register" | grep -q 'job 4242 waits for room: too many jobs' || fail "$(ask "$register")"
[ "$(grep -c 'waits for room' "$SCRATCH/log")" = 1 ] || fail "it is told more than once"

exec 8>&-  # the end of all 32
wait "$asker"
is_noted() { ask "$register" | grep -q '"note": "made .* after it was announced: .* no room'; }
until_true 20 is_noted || fail "not made late: $(ask "$register"); $(tail -n 3 "$SCRATCH/log")"
$S --json jobs | grep -q '"job": "4242"' || fail "it is not listed"
