#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `sluice run --limit vops` says: errors that help, and VOPs shown as VOPs.
set -u
. test/lib/lib.sh
S="$SLUICE --no-daemon --run-dir $SCRATCH/run"
D=$SCRATCH/dir
mkdir -p "$D" && head -c 65536 /dev/zero >"$D/data"
cat >"$SCRATCH/cost.json" <<'C'
{"version": 1, "max_vops": 8000, "provisionable_vops": 4000,
 "read": [[4096, 1], [65536, 2.5]], "write": [[4096, 1], [65536, 2.5]],
 "ops": {"open": 0.5, "stat": 0.125, "fsync": 20}}
C

refuses() { # TEXT OPTIONS...
  local text=$1
  shift
  $S run "$@" -- true >"$SCRATCH/out" 2>"$SCRATCH/err"
  [ $? = 2 ] || fail "$*: status is not 2: $(cat "$SCRATCH/err")"
  grep -q -- "$text" "$SCRATCH/err" || fail "$*: says $(cat "$SCRATCH/err"), wanted $text"
}
refuses "sluice calibrate $D -o FILE" --limit "vops=5k/s@$D"
refuses 'name the tree, for example vops=5k/s@/scratch' --limit vops=5k/s \
  --cost "$SCRATCH/cost.json"
refuses 'vops is measured in virtual IOPs (VOPs), like 5k/s' --limit "vops=5MB/s@$D" \
  --cost "$SCRATCH/cost.json"
refuses 'no limit in VOPs needs it' --limit open=5/s --cost "$SCRATCH/cost.json"
refuses 'are both of' --limit "vops=5k/s@$D" --cost "$SCRATCH/cost.json" \
  --cost "$SCRATCH/cost.json"
refuses 'nothere.json' --limit "vops=5k/s@$D" --cost "$SCRATCH/nothere.json"
refuses 'wanted FILE' --limit "vops=5k/s@$D" --cost "$SCRATCH/cost.json@"
echo '{"version": 1, "max_vops": 8000, "read": [[4096, 0], [65536, 2]]}' >"$SCRATCH/zero.json"
refuses zero.json --limit "vops=5k/s@$D" --cost "$SCRATCH/zero.json"
from='"provenance": {"path": "/x", "device": "999:1", "fs": "nfs4", "source": "s:/x"}'
sed "s|\"version\": 1|&, $from|" "$SCRATCH/cost.json" >"$SCRATCH/other.json"
refuses "its cost file is not of $D" --limit "vops=5k/s@$D" --cost "$SCRATCH/other.json"

L="--limit vops=5k/s@$D --cost $SCRATCH/cost.json@$D"
$S run $L --job a --summary --report "$SCRATCH/r.json" -- dd if="$D/data" of=/dev/null bs=4k \
  status=none 2>"$SCRATCH/err" || fail "run: $(cat "$SCRATCH/err")"
grep -q "vops@$D *5000 VOP/s" "$SCRATCH/err" || fail "the summary: $(cat "$SCRATCH/err")"
[ "$(json "$SCRATCH/r.json" '[(c["unit"], c["rate_per_s"]) for c in d["channels"]]')" = \
  "[('vops', 5000.0)]" ] || fail "the report: $(cat "$SCRATCH/r.json")"
json "$SCRATCH/r.json" '[r["unit"] for r in d["timeline"]["rows"] if r["what"] == "served"]' |
  grep -q vops || fail "the timeline has no VOPs"
$S explain $L read "$D/data" | grep -q "at most 5k VOP/s, in $D" || fail explain

$S run $L --job b -- sleep 60 &
job=$!
until_true $S stat b || fail "job b does not begin"
$S set b "vops@$D=2.5k/s" | grep -q "vops@$D 2.5k VOP/s" || fail set
$S set b "vops@$D=5MB/s" 2>"$SCRATCH/err" && fail 'a rate in bytes was taken'
grep -q 'this limit is measured in virtual IOPs' "$SCRATCH/err" || fail "set: $(cat "$SCRATCH/err")"
$S stat b | grep -q "vops@$D *2500 VOP/s" || fail "stat: $($S stat b)"
kill $job
wait $job 2>/dev/null
true
