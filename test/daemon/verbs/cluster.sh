#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# At the socket of a cluster's daemon the verbs speak of all nodes: one job on two of them is listed
# once, changed once, and the policy of all is changed there.
set -u
. test/lib/node.bash
pids=
trap 'kill $pids 2>/dev/null; rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/tree"
echo x >"$SCRATCH/tree/f"
cat >"$SCRATCH/site.json" <<P
{"targets": {"scratch": {"path": "$SCRATCH/tree", "capacity": {"metadata": "2k/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 4}}},
             "bronze": {"scratch": {"metadata": {"weight": 1}}}},
 "control": {"nodes": "n[1-2]", "default_class": "bronze"}}
P
port=$(free_port)
"$SLUICED" --role cluster --name ctl --run-dir "$RUN" --policy "$SCRATCH/site.json" --plain \
  --listen "tcp://127.0.0.1:$port" --metrics none >>"$SCRATCH/log" 2>&1 &
pids=$!
until_true $S policy get || fail "the cluster daemon does not start: $(tail "$SCRATCH/log")"
for n in 1 2; do
  "$SLUICED" --role node --name n$n --run-dir "$SCRATCH/n$n" --plain \
    --parent "tcp://127.0.0.1:$port" --metrics none >>"$SCRATCH/log$n" 2>&1 &
  last_node=$!
  pids="$pids $!"
  until_true "$SLUICE" --run-dir "$SCRATCH/n$n" policy get || fail "n$n: $(tail "$SCRATCH/log$n")"
  "$SLUICE" --run-dir "$SCRATCH/n$n" run --job hydro --class gold \
    -- sh -c "while :; do : <$SCRATCH/tree/f; done" &
  pids="$pids $!"
done
until_true is "[('hydro', 'gold', 2)]" '[(j["job"], j["class"], j["nodes"]) for j in d]' ||
  fail "jobs: $(field d)"
of='d[0]["streams"][0]'
until_true is True "$of['served'] > 300" || fail "not served: $(field "$of")"
$S top --batch -n 1 --nodes >"$SCRATCH/out" || fail "top"
grep -q '^n1 *node *live *metadata@scratch' "$SCRATCH/out" || fail "top: $(cat "$SCRATCH/out")"
grep -q '^sluice top .* cluster ctl .* 1 job, 2 nodes' "$SCRATCH/out" ||
  fail "top: $(cat "$SCRATCH/out")"

$S set hydro metadata=100/s --for 5s >"$SCRATCH/out" || fail "set"
until_true is True "$of['served'] < 105" || fail "two nodes have more: $(field "$of")"
until_true is None "d[0]['override']" || fail "not taken back: $(field d)"
$S set hydro metadata=100/s >/dev/null || fail "set for good"
until_true is True "$of['served'] < 105" || fail "not limited for good: $(field "$of")"
$S set hydro metadata=policy >/dev/null || fail "set =policy"
is None "d[0]['override']" || fail "not withdrawn: $(field d)"
until_true is True "$of['served'] > 300" || fail "not served after set =policy: $(field "$of")"
$S set hydro class=bronze >/dev/null || fail "set class"
until_true is bronze 'd[0]["class"]' || fail "class: $(field d)"
$S pause hydro --for 1h | grep -q 'hydro is paused, until 20' || fail "pause"
$S explain --job hydro >"$SCRATCH/out" || fail "explain"
grep -q 'An operator paused it until 20.*-.* (.* more)' "$SCRATCH/out" ||
  fail "explain of a pause: $(cat "$SCRATCH/out")"
asked=$(date +%s.%N)
$S --json pause hydro --for 1s >"$SCRATCH/p.json" || fail "pause --for 1s"
between 1 "$(json "$SCRATCH/p.json" "d['until'] - $asked")" \
  "$(python3 -c "import time; print(time.time() - $asked + 1)")" 'the seconds of pause --for 1s'
until_true is running 'd[0]["state"]' || fail "paused for 1 s, and longer: $(field d)"
$S pause hydro >/dev/null || fail "pause"
until_true is True "$of['grant'] == 0 and d[0]['state'] == 'paused'" || fail "pause: $(field d)"
$S resume hydro >/dev/null || fail "resume"
until_true is True "$of['served'] > 300" || fail "not served after resume: $(field "$of")"
$S explain --job hydro | grep -q bronze || fail "explain: $($S explain --job hydro)"

# A watched job is shown as one: it has more than it would get, and nothing of it waits.
"$SLUICE" --run-dir "$SCRATCH/n1" run -q --monitor --job seen --class gold \
  -- sh -c "while :; do : <$SCRATCH/tree/f; done" &
seen=$!
pids="$pids $seen"
of_seen="[j for j in d if j['job'] == 'seen'][0]"
is_watched() {
  is "('watched', True)" "(lambda j: (j['state'], j['streams'][0]['would_delay'] > 0))($of_seen)" \
    2>/dev/null
}
until_true is_watched || fail "a watched job: $(field d)"
is True "(lambda s: s['waiters'] == s['waiting'] == s['blocked'] == 0)($of_seen['streams'][0])" ||
  fail "a watched job waits: $(field d)"
kill "$seen"
has_one() { is 1 'len(d)'; }
until_true has_one || fail "a watched job stays: $(field d)"

sed 's/"2k\/s"/"1k\/s"/' "$SCRATCH/site.json" >"$SCRATCH/new.json"
$S policy apply "$SCRATCH/new.json" --dry-run | grep -q '1k/s' || fail "dry run"
$S policy apply "$SCRATCH/new.json" >/dev/null || fail "apply"
has_new() { "$SLUICE" --run-dir "$SCRATCH/n1" policy get | diff -q - "$SCRATCH/new.json"; }
until_true has_new || fail "a node has another policy"
"$SLUICE" --run-dir "$SCRATCH/n1" policy apply "$SCRATCH/site.json" 2>"$SCRATCH/err"
[ $? = 2 ] || fail "a node with a parent took a policy"

# A node that is not heard does not learn that it is named no more.
sed 's/n\[1-2\]/n1/' "$SCRATCH/new.json" >"$SCRATCH/less.json"
loses() { $S policy apply "$SCRATCH/less.json" --dry-run 2>&1 | grep -q '1 node: n2'; }
loses && fail 'a node that is heard is warned of'
kill -KILL "$last_node"
until_true loses || fail "no warning: $($S policy apply "$SCRATCH/less.json" --dry-run)"
