#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run with a daemon: it is joined and says what is preloaded; one that is dead, hung, broken or of
# another role leaves the program as it would be without; a refusal is an error.
set -u
. test/lib/lib.sh
. test/daemon/commands/cli/fake.bash
fake= holder=
trap 'kill $fake $holder 2>/dev/null; rm -rf "$SCRATCH"' EXIT
S="$SLUICE --run-dir $RUN"
run() { # WANTED_STATUS ARGS...
  local want=$1
  shift
  $S run "$@" >"$SCRATCH/out" 2>"$SCRATCH/err"
  local got=$?
  [ $got = "$want" ] || fail "run $*: status $got, wanted $want: $(cat "$SCRATCH/err")"
}
quiet() { [ ! -s "$SCRATCH/err" ] || fail "$1: says $(cat "$SCRATCH/err")"; }

run 7 --class gold -- sh -c 'exit 7'
grep -q 'warning: no daemon .*QoS class gold has no limits here' "$SCRATCH/err" ||
  fail "no word about the class: $(cat "$SCRATCH/err")"
run 2 --no-daemon --class gold -- true
grep -q -- '--class gold: --no-daemon keeps from asking one' "$SCRATCH/err" ||
  fail "--no-daemon --class: $(cat "$SCRATCH/err")"
run 2 --order "durable@$SCRATCH" --class gold -- true
grep -q -- '--class gold: no daemon answers: ' "$SCRATCH/err" || fail "$(cat "$SCRATCH/err")"

# What a daemon would have made.
"$SLUICE" --run-dir "$SCRATCH/other" run --no-daemon --job made --limit open=0 \
  -- sh -c 'read x' < <(sleep 100) &
holder=$!
made=$SCRATCH/other/jobs/made
for _ in $(seq 100); do [ -e "$made/segment" ] && break; sleep 0.05; done
answer hello '{"role": "node", "name": "n1"}'
answer join "{\"job\": \"made\", \"preload\": \"$made/libinterpose.so\",
  \"segment\": \"$made/segment\", \"created\": true, \"class\": \"gold\"}"
start_fake
run 3 --class gold --job made --limit stat=9/s --monitor --report "$SCRATCH/r.json" \
  -- sh -c 'echo $LD_PRELOAD; exit 3'
[ "$(cat "$SCRATCH/out")" = "$made/libinterpose.so" ] || fail "LD_PRELOAD is $(cat "$SCRATCH/out")"
quiet 'a run with a daemon'
[ "$(json "$SCRATCH/r.json" 'd["job"], d["exit"], d["channels"][0]["name"]')" = \
  "('made', {'code': 3}, 'open')" ] || fail "report: $(cat "$SCRATCH/r.json")"
[ -e "$made/segment" ] || fail "the daemon's job was removed"
[ "$(asked '[(q["job"], q["class"], q["limits"], q["monitor"], q["cwd"]) for q in r
  if q["verb"] == "join"]')" = "[('made', 'gold', ['stat=9/s'], True, '$PWD')]" ] ||
  fail "asked: $(cat "$RUN/requests")"
run 143 -- sh -c 'kill -15 $$'
[ "$(asked 'r[-1]["job"], r[-1]["class"]')" = '(None, None)' ] || fail "asked for a name"
LD_PRELOAD=/theirs.so run 0 -- sh -c 'echo $LD_PRELOAD' 2>/dev/null
grep -q "^$made/libinterpose.so:/theirs.so$" "$SCRATCH/out" || fail "$(cat "$SCRATCH/out")"

lines=$(wc -l <"$RUN/requests")
run 0 --no-daemon -- true
run 0 --policy "$top/policies/examples/background-threads.json" -- true
[ "$(wc -l <"$RUN/requests")" = "$lines" ] || fail "--no-daemon or --policy asked the daemon"

answer join '{"error": "class platinum: unknown; known: gold", "status": 2}'
run 2 --class platinum -- touch "$SCRATCH/ran"
grep -q 'sluice: class platinum: unknown; known: gold' "$SCRATCH/err" || fail "refusal"
[ ! -e "$SCRATCH/ran" ] || fail "a refused program was run"
for broken in '{"error": "no room", "status": 125}' '{"job": "x"}' '{"job": 5}' '"words"' \
  '{"job": "x", "preload": "/no/such.so", "segment": "/no"}'; do
  answer join "$broken"
  run 5 -- sh -c 'echo $LD_PRELOAD; exit 5'
  grep -q 'warning: running without a daemon' "$SCRATCH/err" || fail "$broken: no warning"
  grep -q "^$RUN/jobs/run-" "$SCRATCH/out" || fail "$broken: no limits of its own"
  run 5 --class gold -- sh -c 'exit 5'
  grep -q 'warning: the daemon cannot be used .*: QoS class gold has no limits' "$SCRATCH/err" ||
    fail "$broken, with a class: $(cat "$SCRATCH/err")"
done
run 2 --order "durable@$SCRATCH" --class gold -- true
grep -q -- '--class gold: .* keeps no journal, which --order needs' "$SCRATCH/err" ||
  fail "$(cat "$SCRATCH/err")"
answer join '"silence"'
run 5 -- sh -c 'exit 5'
answer hello '"silence"'
run 6 --limit open=1000/s -- sh -c 'echo $LD_PRELOAD; exit 6'
grep -q 'warning: running without a daemon: .*does not answer' "$SCRATCH/err" || fail "hung"
grep -q "^$RUN/jobs/run-" "$SCRATCH/out" || fail "hung: no limits of its own"
answer hello '{"role": "cluster", "name": "ctl"}'
run 4 -- sh -c 'exit 4'
quiet 'a cluster daemon here'
stop_fake
[ -e "$RUN/sluiced.sock" ] || fail "the socket should lie there still"
run 0 -- true
quiet 'a dead daemon'
