#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Only a node whose key was allowed as `login` may ask in the name of users: the root of any other
# node could otherwise pause everybody's jobs.
set -u
. test/lib/site.bash
two_users
need python3
cat >"$SCRATCH/p.json" <<END
{"targets": {"scratch": {"path": "$SCRATCH/data", "capacity": {"metadata": "600/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 3}}}},
 "control": {"nodes": "n1,login1", "default_class": "gold"}}
END
keys() { "$SLUICED" keys "$@" >"$SCRATCH/out" 2>&1 || fail "keys $*: $(cat "$SCRATCH/out")"; }
allow() { keys allow --dir "$SCRATCH/ctl.keys" --role "$2" "$1" "$SCRATCH/$1.keys/public"; }
mkdir -m 755 "$SCRATCH"/{ctl,n1,login1}
for name in ctl n1 login1; do keys new --dir "$SCRATCH/$name.keys" "$name"; done
for name in n1 login1; do cp "$SCRATCH/ctl.keys/public" "$SCRATCH/$name.keys/parent.pub"; done
allow n1 node
allow login1 login
keys list --dir "$SCRATCH/ctl.keys"
grep -q '^node *n1 ' "$SCRATCH/out" && grep -q '^login *login1 ' "$SCRATCH/out" ||
  fail "list: $(cat "$SCRATCH/out")"
"$SLUICED" keys allow --dir "$SCRATCH/ctl.keys" --role root x "$SCRATCH/n1.keys/public" \
  >"$SCRATCH/out" 2>&1 && fail 'a role that there is not'
grep -q 'no role: node, login, relay' "$SCRATCH/out" || fail "role: $(cat "$SCRATCH/out")"

start ctl --role cluster --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/ctl" \
  --listen 'tcp://127.0.0.1:*' --keys "$SCRATCH/ctl.keys"
ctl=$(sed -n 's/.*listening address=\([^ ]*\).*/\1/p' "$LOG" | head -1) controller=$PID
for name in n1 login1; do
  start "$name" --role node --name "$name" --parent "$ctl" --keys "$SCRATCH/$name.keys" \
    --run-dir "$SCRATCH/$name" --view cluster
done
at() { # UID PLACE WORDS…
  local uid=$1 place=$2
  shift 2
  as "$uid" "$SLUICE" --run-dir "$SCRATCH/$place" "$@"
}
at $ann n1 run --job annswork --no-summary -- "$PROGRAMS/steady" 600 "$SCRATCH/data" \
  >"$SCRATCH/work.out" 2>&1 &
pids+=("$!")
sees() { at $ann "$1" jobs 2>"$SCRATCH/err" | grep -q annswork; }
until_true 30 sees login1 || fail "login1: $(cat "$SCRATCH/err")"

# Whoever has the node's key is root there, and takes any uid.
refused() { ! at $ann n1 "$@" >"$SCRATCH/out" 2>&1 && grep -q 'n1 may not ask' "$SCRATCH/out"; }
refused jobs || fail "jobs: $(cat "$SCRATCH/out")"
refused pause annswork || fail "pause: $(cat "$SCRATCH/out")"
refused set annswork metadata=5/s || fail "set: $(cat "$SCRATCH/out")"
"$SLUICE" --run-dir "$SCRATCH/ctl" --json jobs >"$SCRATCH/jobs" || fail 'jobs of the cluster'
[ "$(json "$SCRATCH/jobs" '[j["state"] for j in d]')" = "['running']" ] ||
  fail "held: $(cat "$SCRATCH/jobs")"

# The list of keys counts when it is read, without a restart.
allow n1 login
kill -HUP "$controller"
until_true 20 sees n1 || fail "n1 as login: $(cat "$SCRATCH/err")"
allow n1 node
kill -HUP "$controller"
until_true 20 refused pause annswork || fail "n1 as node again: $(cat "$SCRATCH/out")"
exit 0
