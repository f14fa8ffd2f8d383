#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What users left in the place of their journals cannot be recovered, again and again. It takes no
# room of others: a user who comes later has his journal.
set -u
. test/lib/journals.bash
left=(64101 64102 64103)
mkdir "$SCRATCH/log"
for uid in "${left[@]}"; do
  mkdir -m 700 "$SCRATCH/log/$uid"
  echo garbage >"$SCRATCH/log/$uid/journal"
  chown -R "$uid" "$SCRATCH/log/$uid"
done
start node --role node --name n1 --run-dir "$RUN" --policy "$SCRATCH/policy.json" \
  --journal "$SCRATCH/log" --journal-size 4MiB --journal-total 8MiB
is() { # EXPRESSION VALUE: of all journals
  "$SLUICE" --run-dir "$RUN" --json order >"$SCRATCH/order" 2>/dev/null &&
    [ "$(json "$SCRATCH/order" "$1")" = "$2" ]
}
until_true 20 is '[" is too short to be a journal" in j["why"] for j in d["journals"]]' \
  '[True, True, True]' || fail "left: $(cat "$SCRATCH/order")"

# It runs until the test ends, and with it the writer of its pipe.
mkfifo "$SCRATCH/hold"
exec 9<>"$SCRATCH/hold"
as $bob "$SLUICE" --run-dir "$RUN" run --job his --no-summary -- cat \
  <"$SCRATCH/hold" 9>&- 2>"$SCRATCH/err" &
pids+=("$!")
his="[j['state'] for j in d['journals'] if j['uid'] == $bob]"
until_true 20 is "$his" "['serving']" ||
  fail "his is not served: $(cat "$SCRATCH/err" "$SCRATCH/order")"
stop "$PID"
for uid in "${left[@]}"; do
  [ "$(cat "$SCRATCH/log/$uid/journal")" = garbage ] || fail "what uid $uid left is gone"
done
