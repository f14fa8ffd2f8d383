# SPDX-License-Identifier: Apache-2.0
# For tests of the command with a real node daemon in $RUN that has no parent: `start_node POLICY`
# and `kill_node`; `until_true COMMAND...` waits for a condition; `field EXPR` evaluates Python over
# `jobs --json`, `d`.
SLUICED=${SLUICED:-$(dirname "$SLUICE")/sluiced}
[ -x "$SLUICED" ] || skip "needs sluiced"
need python3
RUN=$SCRATCH/run
S="$SLUICE --run-dir $RUN"
node=

until_true() {
  for _ in $(seq 300); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.05
  done
  return 1
}

start_node() {
  "$SLUICED" --role node --name n1 --run-dir "$RUN" --policy "$1" --metrics none \
    >>"$SCRATCH/log" 2>&1 &
  node=$!
  until_true $S policy get || fail "the daemon does not start: $(tail "$SCRATCH/log")"
}

kill_node() {
  kill -9 "$node"
  wait "$node" 2>/dev/null
  node=
}

field() {
  $S --json jobs >"$SCRATCH/jobs.json" && json "$SCRATCH/jobs.json" "$1"
}

is() { # WANTED EXPR
  [ "$(field "$2")" = "$1" ]
}
