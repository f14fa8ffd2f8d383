#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Cluster epochs of targets that have an order as well: the gate goes through the log of each node,
# and leaves it empty of what the job wrote. A log daemon that is killed is waited for, one that
# stands still is an error with a reason within bounded time; never is a gate open before.
set -u
. test/lib/lib.sh
own_mounts
need pgrep
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
DATA="$SCRATCH/tree"
own_ext4 "$DATA" || skip 'needs root and a file system of its own: another has no log'
ORDER=durable
. test/daemon/epochs/after.bash
trap 'kill -CONT $pids $stopped 2>/dev/null; kill $pids 2>/dev/null; wait; umount "$DATA"
  rm -rf "$SCRATCH"' EXIT
stopped=
keeper() { pgrep -P "$n2" -x sluiced-journal; }
log_daemon() { pgrep -P "$(keeper)" -x sluice-order; }
served() { [ "$(grep -c 'the journal is served' "$SCRATCH/log-n2")" -ge "$1" ]; }
order_of() { # EXPR over the row of the job
  "$SLUICE" --run-dir "$SCRATCH/n2" --json order >"$SCRATCH/order.json" &&
    json "$SCRATCH/order.json" "[$1 for j in d['jobs'] if j['job'] == 'all'][0]"
}
in_log() { tell sync && [ "$(order_of 'j["durable"]["files"] > 0')" = True ]; }
opens() { [ "$(on 1 all open "$DATA/MANIFEST-again")" = ok ]; }
set_order() { # ORDER: the cluster has it in its policy
  "$SLUICE" --run-dir "$RUN" policy get >"$SCRATCH/got.json"
  grep -q "\"order\": *\"$1\"" "$SCRATCH/got.json" || fail "no order: $(cat "$SCRATCH/got.json")"
}

start_cluster
set_order durable
start_one 1 --journal "$SCRATCH/order1" --journal-size 4MiB
start_one 2 --journal "$SCRATCH/order2" --journal-size 4MiB

# What the log has, and what was never synced: both are at home when the manifest can be opened.
begin_data 2 all
until_true served 1 || fail "the log is not served: $(tail "$SCRATCH/log-n2")"
for i in 1 2 3; do
  until_true in_log || fail "nothing in the log: $(order_of j)"
  tell more
  got=$(on 1 all open "$DATA/MANIFEST-$i")
  [ "$got" = ok ] || fail "open: $got, $(reason)"
  left=$(order_of 'j["durable"]["files"]')
  [ "$left" = 0 ] || fail "the gate is open, and the log has $left files that are not at home"
  tell dirty
  [ "$said" -le 0 ] || fail "the gate is open, and $said pages are dirty"
done

# Killed: the next one is waited for.
until_true in_log || fail "nothing in the log: $(order_of j)"
kill -KILL "$(log_daemon)"
got=$(on 1 all open "$DATA/MANIFEST-killed")
tell dirty
case "$got" in
  ok) [ "$said" -le 0 ] || fail "killed: the gate is open, and $said pages are dirty" ;;
  EIO) [ ! -e "$DATA/MANIFEST-killed" ] || fail 'killed: an error, and the file is there' ;;
  *) fail "killed: $got" ;;
esac
until_true served 2 || fail "not started again: $(tail "$SCRATCH/log-n2")"
until_true opens || fail "its log is back, and no gate opens: $(reason)"

# Standing still: an error, and what waits is the gate alone.
until_true in_log || fail "nothing in the log: $(order_of j)"
stopped=$(log_daemon)
kill -STOP "$stopped"
[ "$(on 1 all open "$DATA/MANIFEST-stopped")" = EIO ] || fail 'opened without the log daemon'
[ ! -e "$DATA/MANIFEST-stopped" ] || fail 'and it is there'
tell sync
kill -CONT "$stopped"
until_true opens || fail "its log goes on, and no gate opens: $(reason)"
reason |
  grep -q 'node n2: \(the daemon of its journal does not answer\|its disks take too long\)' ||
  reason | grep -q 'node n2 has not acknowledged in time' || fail "reason: $(reason)"

# Killed in the middle of it, and nobody there to start another: an error.
until_true in_log || fail "nothing in the log: $(order_of j)"
stopped=$(keeper)
kill -STOP "$stopped"
on 1 all open "$DATA/MANIFEST-gone" >"$SCRATCH/got" &
waits=$!
kill -KILL "$(log_daemon)"
wait "$waits"
tell dirty
[ "$(cat "$SCRATCH/got")" = EIO ] || [ "$said" -le 0 ] || fail "open, and $said pages are dirty"
[ "$(on 1 all open "$DATA/MANIFEST-none")" = EIO ] || fail 'opened without a log daemon'
kill -CONT "$stopped"
until_true opens || fail "its log is back, and no gate opens: $(reason)"
end_data

# Ordered: what a barrier has not made durable yet is by the gate.
sed -i 's/"order": "durable"/"order": "ordered"/' "$SCRATCH/site.json"
"$SLUICE" --run-dir "$RUN" policy apply "$SCRATCH/site.json" >"$SCRATCH/set" 2>&1 ||
  fail "policy: $(cat "$SCRATCH/set")"
set_order ordered
nodes_have() {
  "$SLUICE" --run-dir "$SCRATCH/n2" policy get | grep -q '"order": *"ordered"'
}
until_true nodes_have || fail 'the nodes do not hear of the policy'
gone() { ! "$SLUICE" --run-dir "$SCRATCH/n2" jobs | grep -q all; }
until_true gone || fail 'the job does not end'
begin_data 2 barriers
for i in 1 2 3; do
  tell sync
  tell more
  got=$(on 1 barriers open "$DATA/MANIFEST-o$i")
  [ "$got" = ok ] || fail "ordered: $got, $(reason)"
  tell dirty
  [ "$said" -le 0 ] || fail "ordered: the gate is open, and $said pages are dirty"
done
end_data
exit 0
