#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon is killed or stopped: programs are started and end as ever, those that run go on, and
# a new daemon knows them again.
set -u
. test/lib/node.bash
job=
trap 'kill $job 2>/dev/null; [ -z "$NODE" ] || kill -9 $NODE; rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/tree"
echo x >"$SCRATCH/tree/f"
cat >"$SCRATCH/policy.json" <<P
{"targets": {"scratch": {"path": "$SCRATCH/tree", "capacity": {"metadata": "1k/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 4}}}},
 "control": {"default_class": "gold"}}
P
runs() { # STATUS WORDS...: a program ends as it does alone
  local want=$1
  shift
  $S run "$@" -- sh -c "cat $SCRATCH/tree/f; exit $want" >"$SCRATCH/out" 2>"$SCRATCH/err"
  local got=$?
  [ $got = "$want" ] || fail "status $got, wanted $want: $(cat "$SCRATCH/err")"
  [ "$(cat "$SCRATCH/out")" = x ] || fail "output: $(cat "$SCRATCH/out")"
}
start_node
runs 4 --report "$SCRATCH/r.json"
[ "$(json "$SCRATCH/r.json" '[c["name"] for c in d["channels"]]')" = "['metadata@scratch']" ] ||
  fail "report: $(cat "$SCRATCH/r.json")"
$S run --job long -- sh -c "while :; do : <$SCRATCH/tree/f; done" &
job=$!
until_true is "['long']" '[j["job"] for j in d]' || fail "jobs: $(field d)"

kill -STOP "$NODE"
runs 5 --limit open=1000/s
grep -q 'warning: running without a daemon' "$SCRATCH/err" || fail "hung: $(cat "$SCRATCH/err")"
kill -CONT "$NODE"
kill_node
runs 6
[ ! -s "$SCRATCH/err" ] || fail "a dead daemon is told: $(cat "$SCRATCH/err")"
runs 7 --class gold --summary
grep -q 'warning: no daemon .*QoS class gold has no limits here' "$SCRATCH/err" ||
  fail "no word about the class: $(cat "$SCRATCH/err")"
kill -0 $job 2>/dev/null || fail "the job that ran has ended"
$S jobs >"$SCRATCH/out" 2>&1 || fail "jobs without the daemon: $(cat "$SCRATCH/out")"
$S top --batch -n 1 >"$SCRATCH/out" 2>&1 || fail "top without the daemon: $(cat "$SCRATCH/out")"
grep -q ' no daemon ' "$SCRATCH/out" && grep -q '^long ' "$SCRATCH/out" ||
  fail "top without the daemon: $(cat "$SCRATCH/out")"

start_node
until_true is "['gold']" '[j["class"] for j in d if j["job"] == "long"]' ||
  fail "the job is not known again: $(field d)"
runs 8
