#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# Who a job is must not hang on a hash that users can meet. The name that bob chooses here and ann's
# "hydro" have the same FNV-1a of "UID/NAME", which was the key of a job once. What bob does to his
# job does nothing to hers, an operator's pause of hers stays, and in a cluster both have grants.
set -u
. test/lib/node.bash
two_users
met=aodmPSQrqiUW1S_ITgCAeUEjb
python3 - "$ann/hydro" "$bob/$met" <<'P' || fail "the two names do not meet: nothing is tested"
import sys
def fnv(text):
    h = 0xcbf29ce484222325
    for c in text.encode(): h = (h ^ c) * 0x100000001b3 % 2**64
    return h
sys.exit(fnv(sys.argv[1]) != fnv(sys.argv[2]))
P
pids=()
trap 'kill -9 "${pids[@]}" $NODE 2>/dev/null; rm -rf "$SCRATCH"' EXIT
policy 600/s
begin() { # UID RUN JOB: its pid is PID
  setpriv --reuid="$1" --regid="$1" --clear-groups env HOME=/ "$SLUICE" --run-dir "$2" \
    run --no-summary --job "$3" -- "$PROGRAMS/steady" 900 "$DATA" >/dev/null 2>&1 &
  PID=$!
  pids+=("$PID")
}
begin_both() { # RUN
  begin $ann "$1" hydro
  hers=$PID
  begin $bob "$1" $met
  his=$PID
}
bobs() { as $bob $S "$@" >"$SCRATCH/out" 2>&1 || fail "bob: $*: $(cat "$SCRATCH/out")"; }
of() { echo "[j['$2'] for j in d if j['job'] == '$1'][0]"; } # JOB FIELD
both="['$met', 'hydro']"

# ---- a node ----
start_node
begin_both "$RUN"
until_true is "$both" 'sorted(j["job"] for j in d)' || fail "jobs: $(field d)"
bobs pause $met
is paused "$(of $met state)" || fail "bob's own pause: $(field d)"
is running "$(of hydro state)" || fail "bob has paused ann's job: $(field d)"
bobs resume $met
bobs set $met metadata=10/s
is None "$(of hydro override)" || fail "bob has limited ann's job: $(field d)"
bobs set $met metadata=policy
$S pause hydro >/dev/null || fail "an operator cannot pause"
bobs pause $met
bobs resume $met
is paused "$(of hydro state)" || fail "bob has undone an operator's pause: $(field d)"
is running "$(of $met state)" || fail "bob's job has ann's pause: $(field d)"

# It stays when the daemon starts again, and when his job has ended.
kill_node
start_node
is paused "$(of hydro state)" || fail "an operator's pause is lost: $(field d)"
kill "$his"
until_true 60 is "['hydro']" '[j["job"] for j in d]' || fail "his job stays: $(field d)"
is paused "$(of hydro state)" || fail "the end of bob's job undid a pause: $(field d)"
kill "$hers"
until_true 60 is '[]' '[j["job"] for j in d]' || fail "her job stays: $(field d)"
end_node

# ---- a cluster, both jobs on one node ----
mkdir -m 755 "$SCRATCH/n1"
port=$(free_port)
"$SLUICED" --role cluster --name ctl --run-dir "$RUN" --policy "$SCRATCH/policy.json" --plain \
  --listen "tcp://127.0.0.1:$port" --metrics none >>"$SCRATCH/log" 2>&1 &
NODE=$!
until_true $S policy get || fail "the cluster's daemon does not start: $(tail "$SCRATCH/log")"
"$SLUICED" --role node --name n1 --run-dir "$SCRATCH/n1" --plain \
  --parent "tcp://127.0.0.1:$port" --metrics none >>"$SCRATCH/log1" 2>&1 &
pids+=("$!")
until_true "$SLUICE" --run-dir "$SCRATCH/n1" policy get || fail "n1: $(tail "$SCRATCH/log1")"
begin_both "$SCRATCH/n1"
until_true is "$both" 'sorted(j["job"] for j in d)' || fail "the cluster's jobs: $(field d)"
granted() { # at the node, which has them from the cluster
  "$SLUICE" --run-dir "$SCRATCH/n1" --json jobs >"$SCRATCH/jobs.json" &&
    [ "$(json "$SCRATCH/jobs.json" \
      'sorted((j["job"], j["streams"][0]["grant"] > 200) for j in d)')" = "$1" ]
}
until_true granted "[('$met', True), ('hydro', True)]" ||
  fail "grants: $(cat "$SCRATCH/jobs.json")"
$S pause hydro >/dev/null || fail "an operator cannot pause in the cluster"
until_true is True "$(of hydro streams)[0]['grant'] == 0" || fail "not paused: $(field d)"
is running "$(of $met state)" || fail "bob's job is paused with ann's: $(field d)"
until_true granted "[('$met', True), ('hydro', False)]" ||
  fail "grants beside a pause: $(cat "$SCRATCH/jobs.json")"
exit 0
