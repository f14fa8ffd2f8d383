#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A user changes words of the memory of his job, in all its areas, between two looks at them, while
# the daemon meters, explains, forgets, sweeps and starts again, and while root asks about it: the
# daemon lives, no question ends in a signal, and the figures of another user are right.
set -u
. test/lib/node.bash
need curl
two_users
cat >"$SCRATCH/policy.json" <<END
{"targets": {"scratch": {"path": "$DATA", "capacity": {"metadata": "50k/s"}, "order": "durable",
                         "after": {"write": "*/MANIFEST*", "durable": "*/rank*"}}}}
END
port=$(free_port)
METRICS_AT=127.0.0.1:$port
mkdir -m 777 "$DATA/hers"
as $ann "$LOOP" prepare 1 "$DATA/hers" >/dev/null
start_node --metrics-jobs
mkfifo "$SCRATCH/hold"
exec 9<>"$SCRATCH/hold"
alive() { kill -0 "$NODE" 2>/dev/null || fail "$1: the daemon died: $(tail -n 20 "$SCRATCH/log")"; }

# counted NAME: the daemon says of another user's job what it did: 700 opens and closes.
counted() {
  as $ann "$SLUICE" --run-dir "$RUN" run --job "$1" --no-summary -- sh -c \
    '"$1" open 700 "$2" >/dev/null && echo done; read -r _' sh "$LOOP" "$DATA/hers" \
    <"$SCRATCH/hold" >"$SCRATCH/$1" 2>&1 9>&- &
  runner=$!
  until_true 60 grep -q 'done' "$SCRATCH/$1" || fail "$1: $(cat "$SCRATCH/$1")"
  served() {
    curl -s -m 20 "http://$METRICS_AT/metrics" |
      sed -n "s/^sluice_job_served_operations_total{job_id=\"$1\".*} //p" | grep .
  }
  is_right() { [ "$(served "$1")" = 1400 ]; }
  until_true 60 is_right "$1" || fail "$1: the daemon says $(served "$1"), not 1400"
  echo >&9
  wait "$runner" 2>/dev/null
}
counted quiet

# His own, with noted paths, so that there are all four areas. Root asks about a process that has
# its stage, and began before the flips.
as $bob "$SLUICE" --run-dir "$RUN" run --job his --paths --no-summary -- \
  "$PROGRAMS/steady" 600 "$DATA" >"$SCRATCH/steady" 2>&1 9>&- &
pids=$!
trap 'kill -9 $pids 2>/dev/null; end_node' EXIT
explained() {
  for member in $(pgrep -u $bob steady); do $S explain "$member" && return 0; done
  false
}
until_true 60 explained || fail "root is told nothing of his process: $(cat "$SCRATCH/steady")"
as $bob "$SLUICE" --run-dir "$RUN" run --job his --no-summary -- \
  "$PROGRAMS/flip_words" "$RUN/jobs/$bob@his" 1 >"$SCRATCH/said" 2>"$SCRATCH/err" 9>&- &
pids+=" $!"
until_true 60 grep -q flips "$SCRATCH/said" || fail "no flips: $(cat "$SCRATCH/err")"

ask() { # a question of root: it may be refused, but it ends, and not by a signal
  timeout 60 "$SLUICE" --run-dir "$RUN" "$@" >"$SCRATCH/out" 2>&1
  local status=$?
  [ $status -lt 124 ] || [ $status = 125 ] || fail "$*: status $status: $(tail -n 3 "$SCRATCH/out")"
}
for round in 1 2 3 4 5; do
  for _ in 1 2 3 4 5 6 7 8; do
    ask jobs
    ask explain --job "$bob@his"
    ask explain --job his
    ask order
    for _ in 1 2 3 4 5 6 7 8 9 10; do ask explain "$member"; done
    curl -s -m 60 -o /dev/null "http://$METRICS_AT/metrics" || fail 'no metrics'
    alive "round $round"
  done
  counted "hers$round"
  kill_node
  start_node --metrics-jobs
  alive "start $round"
done
grep -qi 'sanitizer' "$SCRATCH/log" && fail "$(cat "$SCRATCH/log")"
exit 0
