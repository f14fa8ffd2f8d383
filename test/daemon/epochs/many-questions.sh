#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# On a node of a cluster a user asks at all gates of her jobs, and each answer takes as long as she
# has patience. Her questions are more than the controller has places for from one node. Another
# user's gates on that node open meanwhile.
set -u
. test/daemon/epochs/two.bash
ctl=
over() {
  [ -z "$ctl" ] || kill "$ctl"
  end_two
}
trap over EXIT
cat >"$SCRATCH/site.json" <<END
{"targets": {"data": {"path": "$DATA", "order": "durable", $AFTER: "600s"}}},
 "control": {"nodes": "n1"}}
END
port=$(free_port)
"$SLUICED" --role cluster --name ctl --run-dir "$SCRATCH/ctl" --policy "$SCRATCH/site.json" \
  --plain --listen "tcp://127.0.0.1:$port" --metrics none >"$SCRATCH/log-ctl" 2>&1 &
ctl=$!
until_true "$SLUICE" --run-dir "$SCRATCH/ctl" policy get || fail "$(cat "$SCRATCH/log-ctl")"
"$SLUICED" --role node --name n1 --run-dir "$RUN" --plain --parent "tcp://127.0.0.1:$port" \
  --metrics none >"$SCRATCH/log" 2>&1 &
NODE=$!
until_true $S policy get || fail "$(cat "$SCRATCH/log")"
jobs h 10
ask h --no-heart --all
for i in {1..120}; do
  (of_bob "$i" && echo opened || echo failed) >"$SCRATCH/bob" &
  until_true 60 test -s "$SCRATCH/bob" || fail "bob waits behind her questions ($i)"
  grep -q opened "$SCRATCH/bob" || fail "bob: $(cat "$SCRATCH/err") $(tail "$SCRATCH/log")"
  rm "$SCRATCH/bob"
done
grep -q 'too many gates' "$SCRATCH/log" && fail "the controller was asked too much"
exit 0
