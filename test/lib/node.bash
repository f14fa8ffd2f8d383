# SPDX-License-Identifier: Apache-2.0
# A node's daemon without a parent, in $RUN: `start_node FLAGS...` with $SCRATCH/policy.json, which
# `policy RATE` writes; `end_node` by SIGTERM, `kill_node`. $S asks it. `field EXPR` evaluates
# Python over its `jobs --json`, d. With METRICS_AT=127.0.0.1:0 `metrics_at` says where it answers,
# and `metric NAME` what it was handed over last (once a second).
. test/lib/lib.sh
need python3
SLUICED="$(dirname "$SLUICE")/sluiced"
LOOP="$PROGRAMS/loop"
[ -x "$SLUICED" ] && [ -x "$LOOP" ] || skip "needs $SLUICED and $LOOP"
RUN="$SCRATCH/run"
S="$SLUICE --run-dir $RUN"
DATA="${DATA:-$SCRATCH/data}"
NODE=
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
  until_true $S policy get || fail "the daemon does not serve: $(cat "$SCRATCH/log")"
}

# start_small_node SIZE: RUN/jobs is mounted as the unit does it, with that much memory, and $bob
# can speak to the daemon by himself ($python). Needs own_mounts and two_users. $RUN/jobs is to be
# unmounted at the end.
start_small_node() {
  python=/usr/bin/python3
  as $bob "$python" -c 'import json' 2>/dev/null || skip "needs $python"
  mkdir "$RUN/jobs"
  local options
  options=$(sed -n 's/^Options=//p' daemon/systemd/run-sluice-jobs.mount)
  mount -t tmpfs -o "$options,size=$1" none "$RUN/jobs" || skip 'cannot mount a tmpfs'
  policy 5k/s
  start_node
}

# job UID NAME COMMAND…: a job of that user's, until it ends.
job() {
  local uid=$1 name=$2
  shift 2
  as "$uid" "$SLUICE" --run-dir "$RUN" run --no-summary --job "$name" -- "$@"
}

# end_programs UID…: those users' programs of this test; others have the same uids.
end_programs() {
  for whose in "$@"; do pkill -9 -u "$whose" -f "$SCRATCH/"; done
}

# $SCRATCH/ask.py SOCKET sends each line that it reads to a daemon, and prints the answer. $python
# runs it, as whoever is to ask.
write_asker() {
  cat >"$SCRATCH/ask.py" <<'END'
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
for line in sys.stdin:
    s.send(line.encode())
    print(json.dumps(json.loads(s.recv(1 << 17))), flush=True)
END
}
ask() { echo "$1" | "$python" "$SCRATCH/ask.py" "$RUN/sluiced.sock"; }

end_node() {
  [ -n "$NODE" ] && kill "$NODE" 2>/dev/null && wait "$NODE" 2>/dev/null
  NODE=
}
trap 'end_node' EXIT

kill_node() {
  kill -9 "$NODE"
  wait "$NODE" 2>/dev/null
  NODE=
}

metrics_at() { sed -n 's/.*metrics=\(127[0-9.:]*\).*/\1/p' "$SCRATCH/log" | tail -1; }

# metric NAME[{LABELS}]
metric() { curl -sf "http://$(metrics_at)/metrics" | sed -n "s/^sluice_$1 //p"; }

field() {
  $S --json jobs >"$SCRATCH/jobs.json" && json "$SCRATCH/jobs.json" "$1"
}

is() { # WANTED EXPR
  [ "$(field "$2")" = "$1" ]
}

no_jobs() {
  [ -z "$(ls -A "$RUN/jobs")" ]
}
