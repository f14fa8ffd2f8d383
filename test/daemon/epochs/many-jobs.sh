#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A user's jobs ask at their gates all the time, and their areas say that a journal is there which
# nobody serves. So each sync of theirs lasts as long as its patience. Only so many are under way
# for one user, and the gate of another opens meanwhile.
set -u
. test/daemon/epochs/two.bash
cat >"$SCRATCH/policy.json" <<END
{"targets": {"data": {"path": "$DATA", "order": "durable", $AFTER: "600s"}}}}
END
start_node
at_rest=$(children)
jobs h 10
ask h --no-heart
waits() { [ "$(syncs)" -ge 4 ]; }
until_true 60 waits || fail "nothing is being synced: $(syncs)"

(of_bob 1 && echo opened || echo failed) >"$SCRATCH/bob" &
until_true 60 test -s "$SCRATCH/bob" || fail "bob waits for $(syncs) syncs of hers"
grep -q opened "$SCRATCH/bob" || fail "bob: $(cat "$SCRATCH/err") $(tail "$SCRATCH/log")"
[ "$(syncs)" -le 4 ] || fail "$(syncs) syncs of one user"
exit 0
