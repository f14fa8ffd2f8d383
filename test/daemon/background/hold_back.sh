#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# Without a daemon the `sluice run` that made a job holds its background work back: while the
# foreground has room, not when it wants all, and not for longer than somebody keeps it so.
. test/lib/lib.sh
. test/lib/background.bash
DATA=$SCRATCH/data JOB=store
S="$SLUICE --run-dir $SCRATCH/run"
mkdir "$DATA"
background_policy "$DATA" >"$SCRATCH/p.json"
run="$S run --policy $SCRATCH/p.json --class kv --job $JOB"

foreground 20
guest $run --summary --report "$SCRATCH/report.json" -- 2>"$SCRATCH/out" &
runner=$!
trap 'foreground; kill $runner 2>/dev/null' EXIT
until_true most_is 90 || fail "it is not held back: $(told b)"
$S stat "$JOB" >"$SCRATCH/stat" || fail 'stat'
grep -q 'now background work has what the foreground leaves: data:flush@s' "$SCRATCH/stat" ||
  fail "stat: $(cat "$SCRATCH/stat")"
$S explain --job "$JOB" >"$SCRATCH/explain" || fail 'explain'
grep -q 'background work, tail-latency on data@s: .*holding' "$SCRATCH/explain" ||
  fail "explain: $(cat "$SCRATCH/explain")"

foreground 80
until_true holds "b.get('sign') == 'saturation' and
  all(l['rate_per_s'] is None for l in b['limits'])" || fail "no guard: $(told b)"
foreground 0 # and the device is as busy as ever
until_true holds "b.get('sign') == 'quiet'" || fail "it is not quiet: $(told b)"
foreground 20
until_true most_is 90 || fail "it is not held back again: $(told b)"

# A pause holds all; its end brings back what holds at that time, not what held before.
$S pause "$JOB" >/dev/null || fail 'pause'
$S resume "$JOB" >/dev/null || fail 'resume'
foreground 80
until_true holds "b.get('sign') == 'saturation'" || fail "after the pause: $(told b)"
limits() { $S --json stat "$JOB" | python3 -c 'import json, sys
print(all(c["rate_per_s"] > 1e11 for c in json.load(sys.stdin)["channels"]))'; }
lifted() { [ "$(limits)" = True ]; }
until_true lifted || fail "limits stay: $($S stat "$JOB")"

foreground
wait "$runner" || fail "status $?: $(cat "$SCRATCH/out")"
trap - EXIT
grep -Eq 'background work, tail-latency on data@s: .*saturation [0-9.]+ %' "$SCRATCH/out" ||
  fail "summary: $(cat "$SCRATCH/out")"
[ "$(json "$SCRATCH/report.json" 'd["background"][0]["algorithm"]')" = tail-latency ] ||
  fail 'report'
[ "$(json "$SCRATCH/report.json" 'd["background"][0]["seconds"]["holding"] > 0')" = True ] ||
  fail 'report: no time'

# One that is not asked for a summary is held back all the same.
foreground 20
guest $run --no-summary -- &
runner=$!
trap 'foreground; kill $runner 2>/dev/null' EXIT
until_true most_is 90 || fail "without a summary: $(told b)"
delayed() { $S --json stat "$JOB" | python3 -c 'import json, sys
print(sum(r["delayed"] for r in json.load(sys.stdin)["roles"] if r["role"] == sys.argv[1]))' "$1"; }
waits() { [ "$(delayed db.compaction-high)" -gt 0 ]; }
until_true waits || fail 'nobody is held back'
[ "$(delayed db.foreground)" = 0 ] || fail 'the foreground waited'
foreground
wait "$runner" || fail "status $?"
trap - EXIT

# Nobody keeps the limits of a job that another `sluice run` has left: they end by themselves.
foreground 20
guest $run --no-summary -- sh -c '(setsid "$@" &) ; while [ ! -e "$0" ]; do sleep 0.1; done' \
  "$SCRATCH/go" &
runner=$!
trap 'foreground; kill $runner 2>/dev/null' EXIT
until_true most_is 90 || fail "in a child: $(told b)"
touch "$SCRATCH/go"
wait "$runner" || fail "status $?"
until_true lifted || fail "limits outlive who sets them: $($S stat "$JOB")"
foreground
trap - EXIT
exit 0
