#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# jobs, set, pause, resume, explain, policy and top ask the daemon, and act directly on a job that
# is not the daemon's.
set -u
. test/lib/lib.sh
. test/daemon/commands/cli/fake.bash
fake= job=
trap 'kill $fake $job 2>/dev/null; rm -rf "$SCRATCH"' EXIT
S="$SLUICE --run-dir $RUN"
good() { # ARGS...: status 0, output in out
  $S "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" || fail "$*: $? $(cat "$SCRATCH/err")"
}
bad() { # STATUS TEXT ARGS...
  local want=$1 text=$2
  shift 2
  $S "$@" >"$SCRATCH/out" 2>"$SCRATCH/err"
  local got=$?
  [ $got = "$want" ] || fail "$*: status $got, wanted $want: $(cat "$SCRATCH/err")"
  grep -q -- "$text" "$SCRATCH/err" || fail "$*: says $(cat "$SCRATCH/err"), wanted $text"
}
says() { grep -q -- "$1" "$SCRATCH/out" || fail "no \"$1\" in: $(cat "$SCRATCH/out")"; }

bad 125 'no daemon answers: .*sluiced.sock.*Start one' top
bad 125 'no daemon answers' policy get
hydro='{"job": "hydro", "user": "ann", "uid": 1234, "class": "gold", "nodes": 2, "processes": 9,
  "escaped": [{"pid": 7, "name": "x", "why": "static"}], "state": "running", "override": null,
  "streams": [{"supply": "metadata@scratch", "demand": null, "grant": 20000, "served": 19500.5,
               "waiting": 30, "waiters": 3, "blocked": 0.9},
              {"supply": "data@scratch", "demand": 1048576, "grant": 2097152, "served": 1048576,
               "waiting": 0, "waiters": 0, "blocked": 0}]}'
ice='{"job": "ice", "user": "bob", "class": "bronze", "nodes": 1, "processes": 1, "escaped": [],
  "state": "paused", "streams": []}'
supplies='[{"supply": "metadata@scratch", "capacity": 40000, "budget": 40000, "granted": 30000,
  "served": 20000, "demand": null}]'
nodes='[{"name": "n1", "role": "node", "state": "live", "age_s": 0.05, "jobs": 2,
  "served": {"metadata@scratch": 19500}, "granted": {"metadata@scratch": 20000}},
  {"name": "n2", "role": "node", "state": "silent", "age_s": 7, "jobs": 0}]'
answer hello '{"role": "node", "name": "n1"}'
answer jobs "[{\"jobs\": [$hydro], \"next\": 1}, {\"jobs\": [$ice], \"next\": null}]"
answer top "[{\"cycle\": 77, \"supplies\": $supplies, \"nodes\": $nodes, \"jobs\": [$hydro],
  \"next\": 1}, {\"jobs\": [$ice], \"next\": null}]"
answer explain '{"error": "no job mine", "status": 2}'
start_fake
$S run --no-daemon --job mine --limit open=1000/s -- sleep 100 &
job=$!
for _ in $(seq 100); do $S --no-daemon stat mine >/dev/null 2>&1 && break; sleep 0.05; done

good jobs
says '^hydro .* ann .* gold .* running .* 2 .* 9 .* 1 .*metadata@scratch 19.5k of 20k/s'
says 'data@scratch 1Mi of 2MiB/s'
says '^ice .* paused'
says '^mine .* live .*open=1k/s'
good --json jobs
[ "$(json "$SCRATCH/out" '[j["job"] for j in d], all(j["live"] for j in d)')" = \
  "(['hydro', 'ice', 'mine'], True)" ] || fail "jobs --json: $(cat "$SCRATCH/out")"

good set mine open=2k/s
says 'open 2k/s'
bad 2 'runs without a daemon' set mine open=2k/s --for 10m
bad 2 'are not kept: set its limits (it has: open)' set mine class=gold
good explain --job mine
says 'limit "open" at most 2k/s'
bad 2 'no job mine' set other open=1/s # the daemon's words

answer explain "{\"job\": \"hydro\", \"class\": \"gold\", \"lines\": [\"weight 4 of 5\"],
  \"streams\": [{\"supply\": \"metadata@scratch\", \"demand\": null, \"grant\": 20000}]}"
answer set '{"job": "hydro", "was": "metadata@scratch=20k/s",
  "now": "metadata@scratch=5k/s", "until": 1800000000}'
good set hydro metadata=5k/s --for 10m
says 'hydro metadata@scratch=5k/s (was metadata@scratch=20k/s), until 2027-01-1'
[ "$(asked 'r[-1]["verb"], r[-1]["assignment"], r[-1]["for_s"]')" = \
  "('set', 'metadata=5k/s', 600)" ] || fail "asked: $(tail -n 1 "$RUN/requests")"
bad 2 'the unit is missing' set hydro metadata=5k/s --for 10
answer pause '{"job": "hydro", "state": "paused"}'
good pause hydro --for 90s
says 'hydro is paused'
[ "$(asked 'r[-1]["verb"], r[-1]["for_s"]')" = "('pause', 90)" ] || fail "pause"
answer resume '{"error": "job hydro is not yours", "status": 2}'
bad 2 'sluice: job hydro is not yours' resume hydro
good explain --job hydro
says 'QoS class gold'
says 'weight 4 of 5'
says 'metadata@scratch .*unbounded .*20k/s'
# What it says of small I/O may be of another version, or nonsense.
answer explain '{"job": "hydro", "small": {"targets": [{"target": "/a\u001b[2J", "modes": ["odd"]},
  7, {"modes": 5}], "gathered": {"writes": "x", "flushes": -1}, "buffered": [1], "hints": 3}}'
good explain --job hydro
says '  small I/O: odd in /a?\[2J$'
says '  gathered: 0 small writes, 0 B in 0 to the kernel$'
bad 2 'wanted one of PID, CALL PATH and --job' explain

echo '{"targets": {}}' >"$SCRATCH/p.json"
answer policy-apply '{"hash": 1, "changes": ["class gold: weight 1 becomes 4"], "warnings": []}'
good policy apply "$SCRATCH/p.json" --dry-run
says 'class gold: weight 1 becomes 4'
says 'not applied'
[ "$(asked 'r[-1]["text"], r[-1]["dry_run"]')" = "('{\"targets\": {}}\\n', True)" ] ||
  fail "asked: $(tail -n 1 "$RUN/requests")"
answer policy-apply '{"error": "p.json:1:2: unknown key", "status": 2}'
bad 2 'sluice: p.json:1:2: unknown key' policy apply "$SCRATCH/p.json"
bad 2 'No such file' policy apply "$SCRATCH/none.json"
answer policy '{"hash": 1, "text": "{\"targets\": {}}"}'
good policy get
[ "$(cat "$SCRATCH/out")" = '{"targets": {}}' ] || fail "policy get"

good top --batch -n 1
says '^sluice top .* node n1  by waiting  3 jobs, 2 nodes (1 silent)  cycle 77'
says '^metadata@scratch \[#\{20\}=\{10\}-\{10\}\] served 20k granted 30k of 40k/s, demand any'
says '^hydro  *ann *gold *metadata@scratch *any *20k *19.5k *30 *90 *1 *2$'
says '^ice P  *bob'
good top -n 1 --nodes
says '^n2 *node *silent'
good top --batch -n 2 -i 0.1 --filter class=bronze
grep -q '^hydro' "$SCRATCH/out" && fail "--filter let hydro through"
[ "$(grep -c '^ice' "$SCRATCH/out")" = 2 ] || fail "-n 2"
good --json top
[ "$(json "$SCRATCH/out" '[j["job"] for j in d["jobs"]], d["cycle"]')" = \
  "(['hydro', 'ice', 'mine'], 77)" ] ||
  fail "top --json"
bad 2 'no order "servd"; did you mean "served"' top --sort servd
TERM=dumb good top -n 1
answer top '{"jobs": 5, "nodes": [7], "supplies": {"a": 1}}'
good top --batch -n 1
kill $job
