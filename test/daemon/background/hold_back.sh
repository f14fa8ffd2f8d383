#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# Without a daemon the `sluice run` that made a job holds its background work back: while the
# foreground has room, not when it wants all, and not for longer than somebody keeps it so.
. test/lib/lib.sh
. test/lib/background.bash
DATA=$SCRATCH/data JOB=store
S="$SLUICE --run-dir $SCRATCH/run"
mkdir "$DATA"
background_policy "$DATA" >"$SCRATCH/p.json"
run="$S run --policy $SCRATCH/p.json --class kv --job $JOB"

foreground little
guest $run --summary --report "$SCRATCH/report.json" -- 2>"$SCRATCH/out" &
runner=$!
trap 'foreground; kill $runner 2>/dev/null' EXIT
until_true is_held 100 || fail "it is not held back: $(told b)"
until_true says $S stat "$JOB" \
  'now background work has what the foreground leaves: data:flush@s' ||
  fail "stat: $($S stat "$JOB")"
until_true says $S explain --job "$JOB" 'background work, tail-latency on data@s: .*holding' ||
  fail "explain: $($S explain --job "$JOB")"

foreground much
until_true is_saturated || fail "no guard: $(told b)"
foreground none # and the others are as busy as ever
until_true holds "b.get('sign') == 'quiet'" || fail "it is not quiet: $(told b)"
foreground little
until_true is_held 100 || fail "it is not held back again: $(told b)"

# A pause holds all; its end brings back what holds at that time, not what held before.
$S pause "$JOB" >/dev/null || fail 'pause'
for _ in 1 2 3 4 5; do
  channels 'max(c.values()) == 0' || fail "it does not stay paused: $($S stat "$JOB")"
done
$S resume "$JOB" >/dev/null || fail 'resume'
foreground much
until_true is_saturated || fail "after the pause: $(told b)"
until_true is_lifted || fail "limits stay: $($S stat "$JOB")"

foreground
wait "$runner" || fail "status $?: $(cat "$SCRATCH/out")"
trap - EXIT
grep -Eq 'background work, tail-latency on data@s: .*saturation [0-9.]+ %' "$SCRATCH/out" ||
  fail "summary: $(cat "$SCRATCH/out")"
[ "$(json "$SCRATCH/report.json" 'd["background"][0]["algorithm"]')" = tail-latency ] ||
  fail 'report'
[ "$(json "$SCRATCH/report.json" 'd["background"][0]["seconds"]["holding"] > 0')" = True ] ||
  fail 'report: no time'

# One that is not asked for a summary is held back all the same, and the foreground never.
foreground little
guest $run --no-summary -- &
runner=$!
trap 'foreground; kill $runner 2>/dev/null' EXIT
until_true is_held 100 || fail "without a summary: $(told b)"
delayed() { $S --json stat "$JOB" | python3 -c 'import json, sys
print(sum(r["delayed"] for r in json.load(sys.stdin)["roles"] if r["role"] == sys.argv[1]))' "$1"; }
waits() { [ "$(delayed db.compaction-high)" -gt 0 ]; }
until_true waits || fail 'nobody is held back'
[ "$(delayed db.foreground)" = 0 ] || fail 'the foreground waited'
foreground
wait "$runner" || fail "status $?"
trap - EXIT

# Nobody keeps the limits of a job that another `sluice run` has left: they end by themselves.
foreground little
guest $run --no-summary -- sh -c '(setsid "$@" &) ; while [ ! -e "$0" ]; do sleep 0.1; done' \
  "$SCRATCH/go" &
runner=$!
trap 'foreground; kill $runner 2>/dev/null' EXIT
until_true is_held 100 || fail "in a child: $(told b)"
touch "$SCRATCH/go"
wait "$runner" || fail "status $?"
until_true is_lifted || fail "limits outlive who sets them: $($S stat "$JOB")"
foreground
trap - EXIT
exit 0
