#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# Cluster epochs beside a node and a relay of an older version, which cannot answer gates: a gate of
# a job that the old node has stays shut, with its name; that of another job opens; while an old
# relay is there none does. One that left keeps nobody waiting, one that is silent does.
set -u
. test/lib/lib.sh
OLD="${BUILD:-${SLUICE%/bin/*}}/bench/old_child"
[ -x "$OLD" ] || skip 'no build/bench/old_child'
. test/daemon/epochs/after.bash
begin_old() { # NAME ROLE JOB...
  local name=$1 role=$2
  shift 2
  "$OLD" "tcp://127.0.0.1:$port" "$name" "$role" 2 "$@" 2>>"$SCRATCH/err" &
  old=$!
  pids="$pids $old"
}
end_old() {
  kill "$old"
  wait "$old"
}
opens() { [ "$(on 1 "$1" open "$DATA/MANIFEST-$1-$RANDOM")" = ok ]; }
is_shut() { # JOB TEXT
  [ "$(on 1 "$1" open "$DATA/MANIFEST-shut")" = EIO ] && reason | grep -q "$2"
}

start_cluster
start_one 1
until_true opens free || fail "alone: $(reason)"
begin_old n2 node busy
until_true is_shut busy 'node n2 is too old to know of epochs' || fail "old node: $(reason)"
[ ! -e "$DATA/MANIFEST-shut" ] || fail 'the file is there'
opens free || fail "another job: $(reason)"
is_shut busy 'node n2 is too old to know of epochs' || fail "a second time: $(reason)"

# It leaves: what it wrote for its job nobody knows, and no other job waits for it.
end_old
opens free || fail "it has left: $(reason)"
is_shut busy 'node n2 was too old to know of epochs' || fail "it has left: $(reason)"

# It dies: it may have begun any job meanwhile.
begin_old n2 node
until_true opens free || fail "it is back: $(reason)"
kill -KILL "$old"
is_shut free 'node n2 is silent' || fail "it is dead: $(reason)"
begin_old n2 node
until_true opens free || fail "it is back again: $(reason)"
end_old

# A relay.
opens free || fail "before the relay: $(reason)"
begin_old r1 relay
until_true is_shut free 'relay r1 is too old to know of epochs' || fail "old relay: $(reason)"
end_old
until_true opens free || fail "the relay has left: $(reason)"
exit 0
