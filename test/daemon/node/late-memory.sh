#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# The process that touches one user's memory is stopped, as it is when that memory does not come.
# Others notice nothing, his next job begins, who changes a limit of his is told that it is not in
# force, and it is when his memory comes. A job that ends meanwhile goes.
set -u
. test/lib/node.bash
two_users
policy 5k/s
start_node
end_all() {
  [ -z "${late:-}" ] || kill -CONT "$late"
  end_programs $ann $bob
}
trap 'end_all; rm -rf "$SCRATCH"' EXIT
while_there() { # UID NAME
  touch "$SCRATCH/$2"
  job "$1" "$2" sh -c "while [ -e '$SCRATCH/$2' ]; do sleep 0.1; done" &
  until_true 20 has_job "$2" || fail "no job $2"
}
has_job() { $S jobs --json 2>/dev/null | grep -q "\"$1\""; }
memory_of() { # UID NAME
  local maker each
  maker=$(pgrep -P "$NODE" -x sluiced-memory)
  for each in $(pgrep -P "$maker"); do
    grep -q "/$1@$2/segment" "/proc/$each/maps" && echo "$each"
  done
}
while_there $bob his
while_there $bob over
while_there $ann hers
late=$(memory_of $bob his)
[ -n "$late" ] || fail 'nobody touches his memory'
[ "$late" = "$(memory_of $bob over)" ] || fail 'two processes touch it'
[ "$(memory_of $ann hers)" != "$late" ] || fail 'it touches hers, too'
grep -q '^CapEff:\s*0000000000000000' "/proc/$late/status" || fail 'it has capabilities'
$S pause his 2>&1 | grep 'does not come' && fail 'it does not come, they say'
$S resume his >/dev/null || fail 'resume'

kill -STOP "$late"
$S pause his >"$SCRATCH/said" 2>&1 || fail "pause: $(cat "$SCRATCH/said")"
grep -q 'memory of the job does not come now' "$SCRATCH/said" ||
  fail "pause does not tell: $(cat "$SCRATCH/said")"
$S pause hers 2>&1 | grep 'does not come' && fail 'hers does not come, they say'
$S resume hers >/dev/null || fail 'resume hers'
job $bob next true || fail 'his next job does not begin'
job $ann after "$PROGRAMS/loop" stat 1000 "$DATA" >/dev/null || fail 'no job of hers begins'
rm "$SCRATCH/over"
until_true 60 eval '! has_job over' || fail 'his job that has ended stays'
has_job his || fail 'his other job has gone'
kill -CONT "$late"
is_paused() { # a call of his waits
  ! timeout 1 setpriv --reuid=$bob --regid=$bob --clear-groups env HOME=/ \
    "$SLUICE" --run-dir "$RUN" run --no-summary --job his -- stat "$DATA/file"
}
until_true 60 is_paused || fail 'it is not paused'
late=
kill -0 "$NODE" || fail "the daemon has ended: $(tail -3 "$SCRATCH/log")"

$S resume his >/dev/null || fail 'resume at the end'
rm "$SCRATCH/his" "$SCRATCH/hers"
until_true 60 eval '! has_job his && ! has_job hers' || fail 'jobs that have ended stay'
nobody_is_left() { [ -z "$(pgrep -P "$(pgrep -P "$NODE" -x sluiced-memory)")" ]; }
until_true 60 nobody_is_left || fail 'processes stay that have no memory to touch'
