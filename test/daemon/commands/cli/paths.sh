#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run --paths: what may be asked for, and where it is shown: the summary, the report as text, page
# and JSON.
set -u
. test/lib/lib.sh
need python3
S="$SLUICE --run-dir $SCRATCH/run --no-daemon"

for bad in --paths=0 --paths=x --paths=513 --paths=-1 '--paths=1 '; do
  $S run "$bad" -- touch "$SCRATCH/ran" 2>"$SCRATCH/err"
  [ $? = 2 ] || fail "$bad: status"
  grep -qe '--paths' "$SCRATCH/err" || fail "$bad: $(cat "$SCRATCH/err")"
done
for bad in 0 17 x; do
  $S run --paths --paths-depth $bad -- touch "$SCRATCH/ran" 2>"$SCRATCH/err"
  [ $? = 2 ] || fail "--paths-depth $bad: status"
done
[ ! -e "$SCRATCH/ran" ] || fail "a program ran"

deep=$SCRATCH/a/b/c/d/e
mkdir -p "$deep" "$SCRATCH/z"
bell=$SCRATCH/$'be\all'
mkdir "$bell"
for i in 1 2 3; do head -c 1000 /dev/zero >"$deep/$i"; done
depth=$(($(tr -cd / <<<"$SCRATCH/a/b" | wc -c)))
# Where nothing else shows it, the summary does.
$S run --limit "all=1M/s@$SCRATCH" --paths --paths-depth "$depth" -- \
  cat "$deep/1" "$deep/2" "$deep/3" "$bell/none" >"$SCRATCH/out" 2>"$SCRATCH/err"
grep -q " 2.93 KiB  *0  .*  $SCRATCH/a/b\$" "$SCRATCH/err" || fail "summary: $(cat "$SCRATCH/err")"
grep -q " $SCRATCH/be?ll\$" "$SCRATCH/err" || fail "summary of a bell: $(cat "$SCRATCH/err")"
$S run --paths --no-summary -- true 2>"$SCRATCH/err" || fail "--no-summary"
[ ! -s "$SCRATCH/err" ] || fail "--no-summary said $(cat "$SCRATCH/err")"

$S run --limit "all=1M/s@$SCRATCH" --paths=2 --paths-depth 16 --report "$SCRATCH/r.json" -- \
  cat "$deep/1" "$deep/2" "$deep/3" >"$SCRATCH/out" 2>"$SCRATCH/err" || fail "run"
[ ! -s "$SCRATCH/err" ] || fail "with a report it said $(cat "$SCRATCH/err")"
python3 - "$SCRATCH/r.json" "$deep" <<'P' || fail "$(json "$SCRATCH/r.json" 'd["paths"]')"
import json, sys
d = json.load(open(sys.argv[1]))
row = d["paths"][0]
assert len(d["paths"]) <= 2 and row["path"] == sys.argv[2], d["paths"]
assert row["bytes"] == 3000 and row["calls"] >= 9 and row["over"] == 0, row
assert sum(p["calls"] for p in d["paths"]) + d["paths_other_calls"] == \
    sum(c["calls"] for c in d["calls"])
P
$S report "$SCRATCH/r.json" | grep -q "2.93 KiB  *-  .*  $deep\$" ||
  fail "text: $($S report "$SCRATCH/r.json")"
$S report "$SCRATCH/r.json" -o "$SCRATCH/r.html" || fail "page"
grep -q "Paths that were used most" "$SCRATCH/r.html" && grep -qF "<code>$deep</code>" \
  "$SCRATCH/r.html" || fail "no paths in the page"
$S report "$SCRATCH/r.json" --json >"$SCRATCH/s.json"
[ "$(json "$SCRATCH/s.json" 'd[0]["paths"][0]["path"]')" = "$deep" ] || fail "summary as JSON"

# Without it nothing is noted, and no file is made.
$S run --report "$SCRATCH/n.json" -- ls "$SCRATCH/run/jobs" >"$SCRATCH/out" || fail "without"
$S run --report "$SCRATCH/n.json" -- sh -c "ls $SCRATCH/run/jobs/*" >"$SCRATCH/out"
grep -q segment "$SCRATCH/out" && ! grep -q paths "$SCRATCH/out" ||
  fail "files: $(cat "$SCRATCH/out")"
[ "$(json "$SCRATCH/n.json" '"paths" in d')" = False ] || fail "paths that nobody asked for"
# Who joins a job may ask for it later.
$S run --job j --no-summary -- sh -c "$S run --job j --paths=3 --report $SCRATCH/j.json -- \
  cat $deep/1 $deep/2" >"$SCRATCH/out" || fail "join"
json "$SCRATCH/j.json" 'any(p["bytes"] >= 2000 for p in d["paths"])' | grep -q True ||
  fail "joined: $(json "$SCRATCH/j.json" 'd["paths"]')"
exit 0
