#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is mounted below a target lies in it: mounted before the job began or later, on a file system
# of its own; calls by path, relative path and inherited descriptor. A deeper target keeps its own,
# a target of one file system leaves such mounts out, and a mount beside the target is none of it.
. test/libinterpose/common.bash

own_mounts
[ -n "${HAS_OWN_MOUNTS:-}" ] || skip 'needs the privilege to mount'
need python3

t=$DIR/t
mkdir -p "$t/early" "$t/late" "$DIR/beside"
on_tmpfs() {
  mount -t tmpfs -o mode=777 tmpfs "$1" && "$PROGRAMS/loop" prepare 1 "$1" >"$SCRATCH/log"
}
on_tmpfs "$t/early" && on_tmpfs "$DIR/beside" || fail 'cannot mount'
mkdir "$t/early/deep"
"$PROGRAMS/loop" prepare 1 "$t/early/deep" >"$SCRATCH/log"

# stats DIR SPEC: 40 calls of stat below DIR.
stats() { limited "$2" "$PROGRAMS/loop" stat 40 "$1" >"$SCRATCH/log" || fail "$1: status $?"; }

stats "$t/early" "stat=5000/s@$t"
counted 40 40 channel "stat@$t" calls
(cd "$t/early/deep" && stats . "stat=5000/s@$t") || exit 1
counted 40 40 channel "stat@$t" calls
stats "$DIR/beside" "stat=5000/s@$t"
counted 0 0 channel "stat@$t" calls

# A deeper target on the mount: its own calls count on both.
both="stat=5000/s@$t,stat=4000/s@$t/early/deep"
stats "$t/early/deep" "$both"
counted 40 40 channel "stat@$t" calls
counted 40 40 channel "stat@$t/early/deep" calls
stats "$t/early" "$both"
counted 40 40 channel "stat@$t" calls
counted 0 0 channel "stat@$t/early/deep" calls

# Mounted while the job runs.
cat >"$SCRATCH/late" <<END
set -e
mount -t tmpfs tmpfs $t/late
mkdir $t/late/d
$PROGRAMS/loop prepare 1 $t/late/d
$PROGRAMS/loop stat 40 $t/late/d
exec $PROGRAMS/fd_travel open $t/late/d/file 40
END
limited "stat=5000/s@$t,read=5000/s@$t" bash "$SCRATCH/late" >"$SCRATCH/log" ||
  fail "late: status $?"
counted 40 1000 channel "stat@$t" calls
counted 40 40 channel "read@$t" calls

# A policy may say that a target is one file system; check lists what is mounted below.
policy() {
  cat >"$SCRATCH/site.json" <<END
{"targets": {"t": {"path": "$t"$1, "capacity": {"metadata": "9k/s"}}},
 "channels": [{"name": "stats", "match": {"call": "stat", "target": "t"}, "limit": "5000/s"}]}
END
  limited_by_policy
}
limited_by_policy() {
  rm -f "$report"
  timeout -s KILL 20 "$SLUICE" --run-dir "$SCRATCH/run" run --policy "$SCRATCH/site.json" \
    --report "$report" --no-summary -- "$PROGRAMS/loop" stat 40 "$t/early" >"$SCRATCH/log" ||
    fail "policy: status $?"
}
policy ''
counted 40 40 channel stats calls
"$SLUICE" policy check "$SCRATCH/site.json" >"$SCRATCH/words" 2>&1
grep -q "t covers the mounts below it: $t/early (tmpfs)" "$SCRATCH/words" ||
  fail "policy check: $(cat "$SCRATCH/words")"
policy ', "one_file_system": true'
counted 0 0 channel stats calls
"$SLUICE" policy check "$SCRATCH/site.json" >"$SCRATCH/words" 2>&1
grep -q "t leaves out the mounts below it: $t/early (tmpfs)" "$SCRATCH/words" ||
  fail "policy check: $(cat "$SCRATCH/words")"
"$SLUICE" explain stat "$t/early/file" --limit "stat=5/s@$t" >"$SCRATCH/words" 2>&1
grep -q "lies on the mount $t/early" "$SCRATCH/words" || fail "explain: $(cat "$SCRATCH/words")"
