#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# dbench replays the start of its own load and finds every file and size as it expects them.
. test/guests/common
need dbench
load=/usr/share/dbench/client.txt
[ -r $load ] || skip "needs $load"
head -n 3000 $load >"$SCRATCH/load"
mkdir "$SCRATCH/d"
limited --limit metadata=2000/s --limit write=20MiB/s -- \
  dbench -c "$SCRATCH/load" -D "$SCRATCH/d" -t 4 2 >"$SCRATCH/out" 2>&1 ||
  fail "dbench: $? $(tail -n 5 "$SCRATCH/out")"
delayed
grep -q '^Throughput' "$SCRATCH/out" || fail "no result: $(tail -n 5 "$SCRATCH/out")"
