#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job under a node's daemon: limited from its first call by the class it asked for; changed,
# paused and given another class while it runs; and what was changed for a time comes back.
set -u
. test/lib/node.bash
job=
trap 'kill $job 2>/dev/null; [ -z "$NODE" ] || kill -9 $NODE; rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/tree"
for i in $(seq 60); do echo x >"$SCRATCH/tree/$i"; done
cat >"$SCRATCH/policy.json" <<P
{"targets": {"scratch": {"path": "$SCRATCH/tree", "capacity": {"metadata": "10k/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 4}}},
             "bronze": {"scratch": {"metadata": {"weight": 1, "limit": "60/s"}}}},
 "control": {"default_class": "bronze"}}
P
start_node

$S run --report "$SCRATCH/r.json" -- sh -c 'stat "$@" >/dev/null; exit 3' - "$SCRATCH"/tree/* \
  2>"$SCRATCH/err"
[ $? = 3 ] || fail "status: $(cat "$SCRATCH/err")"
[ ! -s "$SCRATCH/err" ] || fail "run said: $(cat "$SCRATCH/err")"
python3 - "$SCRATCH/r.json" <<'P' || fail "not limited from the first call"
import json, sys
c = {c["name"]: c for c in json.load(open(sys.argv[1]))["channels"]}["metadata@scratch"]
print(c)
assert c["calls"] >= 60 and c["delayed"] >= c["calls"] - 10, c
assert c["rate_per_s"] <= 60.001, c
P

$S run --class gold --paths=1 --report "$SCRATCH/r.json" --no-summary -- \
  sh -c 'stat "$@" >/dev/null' - "$SCRATCH"/tree/* 2>"$SCRATCH/err" || fail "--paths"
[ ! -s "$SCRATCH/err" ] || fail "run --paths said: $(cat "$SCRATCH/err")"
json "$SCRATCH/r.json" '[(p["path"], p["calls"] >= 60) for p in d["paths"]]' |
  grep -qF "[('$SCRATCH/tree', True)]" || fail "paths: $(json "$SCRATCH/r.json" 'd["paths"]')"

$S run --job hydro --class gold -- sh -c "while :; do : <$SCRATCH/tree/1; done" &
job=$!
until_true is "['gold']" '[j["class"] for j in d if j["job"] == "hydro"]' ||
  fail "hydro: $(field d)"
of='[s for j in d if j["job"] == "hydro" for s in j["streams"]][0]'
until_true is True "$of['served'] > 200" || fail "gold is not served: $(field "$of")"
$S set hydro metadata=100/s --for 3s >"$SCRATCH/out" || fail "set"
grep -q '^hydro metadata@scratch=100/s (was .*), until 20.*, then as the policy says$' \
  "$SCRATCH/out" ||
  fail "set says $(cat "$SCRATCH/out")"
is 100.0 "$of['limit']" || fail "the limit is $(field "$of")"
until_true is True "$of['served'] < 120" || fail "the limit is not kept: $(field "$of")"
until_true is None "[j['override'] for j in d if j['job'] == 'hydro'][0]" ||
  fail "not taken back: $(field d)"
until_true is True "$of['served'] > 200" || fail "not served as before: $(field "$of")"

# What was set by hand is withdrawn, and a job that waits for a limit of 0 says so.
$S set hydro metadata=policy 2>"$SCRATCH/err"
[ $? = 2 ] && grep -q 'follows the policy already' "$SCRATCH/err" ||
  fail "nothing was withdrawn: $(cat "$SCRATCH/err")"
$S set hydro metadata=0 >/dev/null || fail "set to 0"
$S resume hydro 2>"$SCRATCH/err"
[ $? = 2 ] && grep -q 'is not paused; metadata@scratch is 0: set it to a rate' "$SCRATCH/err" ||
  fail "resume of a limit of 0: $(cat "$SCRATCH/err")"
$S set hydro metadata=1/h 2>"$SCRATCH/err"
[ $? = 2 ] && grep -q '"1/h" is less than 0.001/s, the least there is' "$SCRATCH/err" ||
  fail "a rate that comes to none: $(cat "$SCRATCH/err")"
$S set hydro metadata=policy --for 3s 2>/dev/null && fail "withdrawn for a time"
$S set hydro metadata=policy >"$SCRATCH/out" || fail "set =policy"
grep -q '^hydro metadata@scratch=policy (was metadata@scratch=0)$' "$SCRATCH/out" ||
  fail "set =policy says $(cat "$SCRATCH/out")"
is None "[j['override'] for j in d if j['job'] == 'hydro'][0]" || fail "still set: $(field d)"
until_true is True "$of['served'] > 200" || fail "not served after set =policy: $(field "$of")"

calls() {
  $S --json stat hydro >"$SCRATCH/s.json"
  json "$SCRATCH/s.json" 'sum(c["calls"] for c in d["calls"])'
}
$S pause hydro | grep -q 'hydro is paused' || fail "pause"
is paused "[j['state'] for j in d if j['job'] == 'hydro'][0]" || fail "not paused: $(field d)"
sleep 0.3
before=$(calls)
sleep 0.5
[ "$(calls)" -le $((before + 1)) ] || fail "calls go on in a paused job"
$S top --batch -n 1 | grep -q '^hydro P .* gold .*metadata@scratch' ||
  fail "top: $($S top --batch -n 1)"
$S explain $job | grep -q 'waits in .* for "metadata@scratch"' || fail "explain: $($S explain $job)"
one_waits() { $S explain --job hydro | grep -q '1 thread waits now'; }
until_true one_waits || fail "explain --job: $($S explain --job hydro)"
goes_on() { [ "$(calls)" -gt $((before + 50)) ]; }
$S resume hydro | grep -q 'hydro is running' || fail "resume"
until_true goes_on || fail "nothing goes on after resume"
asked=$(date +%s.%N)
$S --json pause hydro --for 1s >"$SCRATCH/p.json" || fail "pause --for"
between 1 "$(json "$SCRATCH/p.json" "d['until'] - $asked")" \
  "$(python3 -c "import time; print(time.time() - $asked + 1)")" 'the seconds of pause --for 1s'
until_true is running "[j['state'] for j in d if j['job'] == 'hydro'][0]" || fail "pause --for 1s"

$S set hydro class=bronze | grep -q ', until it is changed$' || fail "set class"
is bronze "[j['class'] for j in d if j['job'] == 'hydro'][0]" || fail "class: $(field d)"
until_true is True "$of['served'] < 80" || fail "bronze has more than its limit: $(field "$of")"
$S explain --job hydro | grep -q 'bronze' || fail "explain --job: $($S explain --job hydro)"
$S set hydro class=policy >/dev/null || fail "set class=policy"
is gold "[j['class'] for j in d if j['job'] == 'hydro'][0]" || fail "class=policy: $(field d)"
$S set hydro class=tin 2>"$SCRATCH/err"
[ $? = 2 ] || fail "an unknown class was set"
$S run --class tin -- true 2>"$SCRATCH/err"
[ $? = 2 ] || fail "an unknown class was accepted"
grep -q 'sluice: .*tin' "$SCRATCH/err" || fail "unknown class: $(cat "$SCRATCH/err")"

sed 's/"10k\/s"/"20k\/s"/' "$SCRATCH/policy.json" >"$SCRATCH/new.json"
$S policy apply "$SCRATCH/new.json" --dry-run | grep -q '20k/s' || fail "policy apply --dry-run"
$S policy get | grep -q '10k/s' || fail "a dry run changed the policy"
$S policy apply "$SCRATCH/new.json" >/dev/null || fail "policy apply"
$S policy get | diff - "$SCRATCH/new.json" || fail "policy get"
echo '{"targets": 5}' >"$SCRATCH/bad.json"
$S policy apply "$SCRATCH/bad.json" 2>"$SCRATCH/err" && fail 'a bad policy was applied'
grep -q "^sluice: $SCRATCH/bad.json:1" "$SCRATCH/err" || fail "which file: $(cat "$SCRATCH/err")"
python3 - "$SCRATCH/new.json" >"$SCRATCH/bad.json" <<'P' || fail "cannot make a bad policy"
import json, sys
site = json.load(open(sys.argv[1]))
next(iter(site["targets"].values())).update({"order": "durable", "small": "strict"})
print(json.dumps(site))
P
$S policy apply "$SCRATCH/bad.json" 2>"$SCRATCH/err" && fail 'a policy of no job was applied'
grep -q "^sluice: $SCRATCH/bad.json:1.*use one of the two" "$SCRATCH/err" ||
  fail "small I/O with an order: $(cat "$SCRATCH/err")"
by_hand() { grep 'changed by hand.*verb=policy-apply' "$SCRATCH/log"; }
by_hand | grep -q "what=.*$SCRATCH/new.json" || fail "the log does not name the file: $(by_hand)"
$S policy apply "$SCRATCH/new.json" | grep -q 'nothing changes' || fail "policy apply of the same"
[ "$(by_hand | wc -l)" = 1 ] || fail "logged, and nothing has changed: $(by_hand)"

# Versions: what is in force, what changed, and back again; beside them what was set by hand.
$S set hydro metadata@scratch=123/s --for 10m >/dev/null && $S set hydro class=gold >/dev/null &&
  $S pause hydro >/dev/null || fail "changes by hand"
$S policy log >"$SCRATCH/out"
for line in 'metadata@scratch at most 123/s until 20[0-9-]* [0-9:]* (.*min more)' \
  'class gold until it is changed' 'paused until it is changed'; do
  grep -q "^  [a-z0-9]*@hydro  $line\$" "$SCRATCH/out" || fail "policy log: $(cat "$SCRATCH/out")"
done
grep -q '[{}\"]' "$SCRATCH/out" && fail "policy log shows JSON: $(cat "$SCRATCH/out")"
$S --json policy log >"$SCRATCH/out"
[ "$(json "$SCRATCH/out" '[(h["job"], h["override"]["class"]["class"]) for h in d["by_hand"]]')" = \
  "[('hydro', 'gold')]" ] || fail "policy log --json: $(cat "$SCRATCH/out")"
$S resume hydro >/dev/null && $S set hydro class=policy >/dev/null &&
  $S set hydro metadata@scratch=policy >/dev/null || fail "changes by hand withdrawn"
from="sluice policy apply $SCRATCH/new.json, uid $(id -u)"
$S policy log | grep -q "^   2  .*  $from  (in force)\$" ||
  fail "policy log: $($S policy log)"
$S policy log | grep -q "^   1  .*  $SCRATCH/policy.json$" || fail "policy log: $($S policy log)"
$S policy diff | grep -q '10k/s -> 20k/s' || fail "policy diff: $($S policy diff)"
$S policy diff 2 1 | grep -q '20k/s -> 10k/s' || fail "policy diff 2 1: $($S policy diff 2 1)"
$S policy rollback --dry-run | grep -q '20k/s -> 10k/s' || fail "policy rollback --dry-run"
$S policy get | diff - "$SCRATCH/new.json" || fail "a dry run rolled back"
$S policy rollback >/dev/null || fail "policy rollback"
$S policy get | diff - "$SCRATCH/policy.json" || fail "policy rollback gave another policy"
$S policy log | head -n 1 | grep -q "^   3 .*rollback to version 1, uid" ||
  fail "rollback is no version"
$S policy rollback 2 >/dev/null || fail "policy rollback 2"
$S policy get | diff - "$SCRATCH/new.json" || fail "policy rollback 2 gave another policy"
$S policy rollback 77 2>"$SCRATCH/err"
[ $? = 2 ] || fail "a version that is none was taken"
grep -q 'no version 77' "$SCRATCH/err" || fail "rollback 77: $(cat "$SCRATCH/err")"

echo '{"targets": 5}' >"$SCRATCH/bad.json"
$S policy apply "$SCRATCH/bad.json" 2>"$SCRATCH/err"
[ $? = 2 ] || fail "a wrong policy was applied"

kill $job
wait $job 2>/dev/null
gone() { ! $S --json jobs | grep -q hydro; }
until_true gone || fail "the job is there still: $(field d)"
[ -z "$(ls -A "$RUN/jobs")" ] || fail "left behind: $(ls -A "$RUN/jobs")"
