#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Cluster epochs with real daemons: a file like a manifest is opened, renamed onto or linked when
# the data of all nodes of its job is durable, and not before; a node that is killed, stopped or cut
# off, and a controller that is not there, are an error with a reason within bounded time. One node
# alone, with a daemon and without, does it by itself.
set -u
. test/lib/lib.sh
. test/daemon/epochs/after.bash

start_cluster
start_one 1
start_one 2

# All nodes: what the other one wrote is durable when the manifest can be opened.
begin_data 2 all
tell dirty
before=$said
i=0
for how in open rename link stream; do
  i=$((i + 1))
  tell more
  got=$(on 1 all "$how" "$DATA/MANIFEST-$i")
  [ "$got" = ok ] || fail "$how: $got, $(reason)"
  [ -e "$DATA/MANIFEST-$i" ] || fail "$how made nothing"
  tell dirty
  [ "$before" -le 0 ] || [ "$said" = 0 ] || fail "$how: $said pages of the other node are dirty"
done
[ "$(on 1 all read "$DATA/MANIFEST-1")" = ok ] || fail 'reading'

# A program that asks by itself, of the tree and of files in it.
says() { # WANTED PATH...
  local wanted=$1
  shift
  "$SLUICE" --run-dir "$SCRATCH/n1" run --no-summary --job all -- \
    "$PROGRAMS/epoch_wait" "$@" >"$SCRATCH/got" 2>>"$SCRATCH/err"
  [ "$(tr '\n' ' ' <"$SCRATCH/got")" = "$wanted " ] ||
    fail "sluice_epoch_wait: $(tr '\n' ' ' <"$SCRATCH/got")for $wanted, $(reason)"
}
mkdir -p "$DATA/deep"
tell more
says 'ok ok ok' "$DATA" "$DATA/deep" "$DATA/rank-2.dat"
tell dirty
[ "$before" -le 0 ] || [ "$said" = 0 ] || fail "waited, and $said pages of the other are dirty"
says EOPNOTSUPP "$SCRATCH"
[ "$("$PROGRAMS/epoch_wait" "$DATA")" = EOPNOTSUPP ] || fail 'sluice_epoch_wait without sluice'
[ "$(json "$SCRATCH/report" 'd["after"]["known"]')" = True ] || fail "$(cat "$SCRATCH/report")"

# Nobody answers it: its daemon stands still when it asks for the second time.
mkfifo "$DATA/deep/first" "$DATA/deep/second"
"$SLUICE" --run-dir "$SCRATCH/n1" run --no-summary --job all -- \
  "$PROGRAMS/epoch_wait" "$DATA/deep/first" "$DATA/deep/second" >"$SCRATCH/got" &
waits=$!
: >"$DATA/deep/first"
until_true grep -q ok "$SCRATCH/got" || fail "sluice_epoch_wait of a pipe: $(cat "$SCRATCH/got")"
kill -STOP "$n1"
: >"$DATA/deep/second"
until_true grep -q ETIMEDOUT "$SCRATCH/got" || fail "nobody answers: $(cat "$SCRATCH/got")"
kill -CONT "$n1"
wait "$waits"

# It waits for the other node: stopped for a while, it is asked again and all goes on.
kill -STOP "$n2"
on 1 all open "$DATA/MANIFEST-wait" >"$SCRATCH/got" &
waits=$!
sleep 2
[ -e "$DATA/MANIFEST-wait" ] && fail 'it did not wait for the other node'
waiting_for() {
  "$SLUICE" --run-dir "$SCRATCH/n1" --json order >"$SCRATCH/order.json" &&
    [ "$(json "$SCRATCH/order.json" \
      '[w["for"] for g in d["gates"] for w in g["waiting"]]')" = "$1" ]
}
until_true waiting_for "['n2']" || fail "order: $(cat "$SCRATCH/order.json")"
"$SLUICE" --run-dir "$SCRATCH/n1" order all >"$SCRATCH/order.txt"
grep -q '^gates of all: .* 1 waiting,' "$SCRATCH/order.txt" &&
  grep -q 'waits for n2, ' "$SCRATCH/order.txt" || fail "order: $(cat "$SCRATCH/order.txt")"
kill -CONT "$n2"
wait "$waits"
[ "$(cat "$SCRATCH/got")" = ok ] || fail "after a while: $(cat "$SCRATCH/got") $(reason)"

# Stopped for good: an error, a reason, and no file.
"$SLUICE" --run-dir "$SCRATCH/n1" run --no-summary --job all -- sleep 100 &
stays=$!
pids="$pids $stays"
kill -STOP "$n2"
says EIO "$DATA"
[ "$(on 1 all open "$DATA/MANIFEST-stopped")" = EIO ] || fail 'opened without the stopped node'
[ ! -e "$DATA/MANIFEST-stopped" ] || fail 'and it is there'
failed_with 'node n2 is silent'
"$SLUICE" --run-dir "$SCRATCH/n1" order all >"$SCRATCH/order.txt"
grep -q '^gates of all: .* [23] stayed shut, ' "$SCRATCH/order.txt" &&
  grep -q 'reason of the last one that stayed shut: node n2 is silent' "$SCRATCH/order.txt" ||
  fail "order: $(cat "$SCRATCH/order.txt")"
kill "$stays"
[ "$(on 1 all rename "$DATA/MANIFEST-stopped")" = EIO ] || fail 'renamed without that node'
[ ! -e "$DATA/MANIFEST-stopped" ] || fail 'and it is there by another name'
kill -CONT "$n2"
opens() { [ "$(on 1 all open "$DATA/MANIFEST-again")" = ok ]; }
until_true opens || fail "the node is back, and no gate opens: $(reason)"

# A program that goes on after the error hears of it from fsync.
mkfifo "$SCRATCH/go"
on 1 all goes-on "$DATA/MANIFEST-again" <"$SCRATCH/go" >"$SCRATCH/got" &
waits=$!
exec 7>"$SCRATCH/go"
until_true grep -q open "$SCRATCH/got" || fail 'not open'
kill -STOP "$n2"
echo go >&7
exec 7>&-
wait "$waits"
kill -CONT "$n2"
[ "$(tr '\n' ' ' <"$SCRATCH/got")" = 'open EIO EIO ' ] || fail "goes on: $(cat "$SCRATCH/got")"

# The controller starts again: it knows whom to ask.
kill "$ctl"
wait "$ctl"
start_cluster
until_true opens || fail "the controller is back, and no gate opens: $(reason)"
kill -STOP "$n2"
[ "$(on 1 all open "$DATA/MANIFEST-known")" = EIO ] || fail 'a new controller forgot the other node'
kill -CONT "$n2"

# Killed in the middle.
kill -STOP "$n2"
on 1 all open "$DATA/MANIFEST-killed" >"$SCRATCH/got" &
waits=$!
sleep 1
kill -KILL "$n2"
wait "$waits"
[ "$(cat "$SCRATCH/got")" = EIO ] || fail "killed: $(cat "$SCRATCH/got")"
failed_with 'node n2'
# Its daemon is back, and the job lives: what it wrote is in memory still.
start_one 2
until_true opens || fail "its daemon is back, and no gate opens: $(reason)"

# A job that ended is synced before it is forgotten, and then not asked.
end_data
gone() { ! "$SLUICE" --run-dir "$SCRATCH/n2" jobs | grep -q all; }
until_true gone || fail 'the job does not end'
kill -STOP "$n2"
opens_now() { [ "$(on 1 all open "$DATA/MANIFEST-ended")" = ok ]; }
opens_now || fail "it asks a node where the job has ended: $(reason)"
kill -CONT "$n2"

# No controller.
kill -STOP "$ctl"
[ "$(on 1 all open "$DATA/MANIFEST-alone")" = EIO ] || fail 'opened without the controller'
[ "$(on 1 new open "$DATA/rank-1.dat")" = EIO ] || fail 'data of a node that nobody knows of'
[ "$(json "$SCRATCH/report" 'd["after"]["unknown"]')" = 1 ] || fail "$(cat "$SCRATCH/report")"
kill -CONT "$ctl"

# One node without a parent, and none.
kill "$n1"
wait "$n1" 2>/dev/null
"$SLUICED" --role node --name n3 --run-dir "$SCRATCH/n3" --policy "$SCRATCH/site.json" \
  --metrics none >>"$SCRATCH/log-n3" 2>&1 &
pids="$pids $!"
until_true "$SLUICE" --run-dir "$SCRATCH/n3" policy get || fail "n3: $(tail "$SCRATCH/log-n3")"
begin_data 3 one
[ "$(on 3 one open "$DATA/MANIFEST-one")" = ok ] || fail 'a node by itself'
tell dirty
[ "$before" -le 0 ] || [ "$said" = 0 ] || fail "by itself: $said pages are dirty"
end_data
got=$("$SLUICE" --run-dir "$SCRATCH/n4" --no-daemon run --no-summary --policy "$SCRATCH/site.json" \
  --report "$SCRATCH/report" -- python3 "$SCRATCH/p.py" open "$DATA/MANIFEST-none")
[ "$got" = ok ] || fail "without a daemon: $got"
[ "$(json "$SCRATCH/report" 'd["after"]["opened"]')" = 1 ] || fail "$(cat "$SCRATCH/report")"
exit 0
