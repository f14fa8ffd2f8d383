# SPDX-License-Identifier: Apache-2.0
# A node daemon without parent, for the tests beside this file.
. test/lib/lib.sh
SLUICED="$(dirname "$SLUICE")/sluiced"
LOOP="$PROGRAMS/loop"
[ -x "$SLUICED" ] && [ -x "$LOOP" ] || skip "needs $SLUICED and $LOOP"
RUN="$SCRATCH/run"
DATA="$SCRATCH/data"
mkdir -p "$RUN" "$DATA"

# policy RATE: one target, one supply, two classes.
policy() {
  cat >"$SCRATCH/policy.json" <<END
{"targets": {"scratch": {"path": "$DATA", "capacity": {"metadata": "$1"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 4}}},
             "bronze": {"scratch": {"metadata": {"weight": 1}}}},
 "control": {"default_class": "bronze"}}
END
}

# start_node FLAGS…
start_node() {
  "$SLUICED" --role node --name n1 --run-dir "$RUN" --policy "$SCRATCH/policy.json" \
    --metrics "${METRICS_AT:-none}" "$@" >>"$SCRATCH/log" 2>&1 &
  NODE=$!
  local i
  for i in $(seq 100); do
    [ -S "$RUN/sluiced.sock" ] && "$SLUICE" --run-dir "$RUN" jobs >/dev/null 2>&1 && return 0
    sleep 0.05
  done
  fail "the daemon does not serve: $(cat "$SCRATCH/log")"
}

end_node() {
  [ -n "${NODE:-}" ] && kill "$NODE" 2>/dev/null && wait "$NODE" 2>/dev/null
  NODE=
}
trap 'end_node' EXIT

# until SECONDS COMMAND: true as soon as the command is.
until_true() {
  local end=$((SECONDS + $1))
  shift
  while [ "$SECONDS" -lt "$end" ]; do
    "$@" && return 0
    sleep 0.05
  done
  "$@"
}

no_jobs() {
  [ -z "$(ls -A "$RUN/jobs")" ]
}
