#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# rows
# On a node of a cluster a user asks at all gates of her jobs, and each answer takes as long as she
# has patience. Her questions are more than the controller has places for from one node, whether she
# waits for the answers or takes the questions back. Another user's gates on that node open
# meanwhile.
set -u
if [ "${1-}" = --rows ]; then
  printf '%s\n' stay taken-back
  exit 0
fi
export HOW="${1:-${HOW:-stay}}" # the script begins again in a namespace, without arguments
. test/daemon/epochs/two.bash
cat >"$SCRATCH/site.json" <<END
{"targets": {"data": {"path": "$DATA", "order": "durable", $AFTER: "600s"}}},
 "control": {"nodes": "n1"}}
END
start_below
jobs h 10
case $HOW in
taken-back) ask h --no-heart --all --take-back ;;
*) ask h --no-heart --all ;;
esac
for i in {1..120}; do
  (of_bob "$i" && echo opened || echo failed) >"$SCRATCH/bob" &
  until_true 60 test -s "$SCRATCH/bob" || fail "bob waits for her questions ($i)"
  grep -q opened "$SCRATCH/bob" || fail "bob: $(cat "$SCRATCH/err") $(tail "$SCRATCH/log")"
  rm "$SCRATCH/bob"
done
grep -q 'too many gates' "$SCRATCH/log" && fail "the controller was asked too much"
exit 0
