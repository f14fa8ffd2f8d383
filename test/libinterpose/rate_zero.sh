#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A limit of 0 lets nothing pass, not even once; what waits goes on when the limit is raised.
. test/libinterpose/common.bash

echo here >"$DIR/file"
limited open=0 timeout 1 cat "$DIR/file" >"$SCRATCH/out" 2>&1
[ $? = 124 ] || fail "cat under open=0 ended by itself: $(cat "$SCRATCH/out")"
[ ! -s "$SCRATCH/out" ] || fail "under open=0: $(cat "$SCRATCH/out")"

limited data=0 timeout 1 cat "$DIR/file" >"$SCRATCH/out" 2>&1
[ $? = 124 ] || fail "cat under data=0 ended by itself: $(cat "$SCRATCH/out")"

JOB=zero limited "open=0@$DIR" cat "$DIR/file" >"$SCRATCH/out" &
waits() {
  "$SLUICE" --run-dir "$SCRATCH/run" --json top -n 1 >"$SCRATCH/top.json" &&
    json "$SCRATCH/top.json" 'd["jobs"][0]["streams"][0]["waiters"]' | grep -qx 1
}
for i in $(seq 300); do waits 2>"$SCRATCH/top.err" && break; sleep 0.05; done
waits || fail "nobody waits: $(cat "$SCRATCH/top.json")"
[ ! -s "$SCRATCH/out" ] || fail 'a file under open=0@target was read'
"$SLUICE" --run-dir "$SCRATCH/run" set zero "open@$DIR=1000/s" || fail "set: $?"
wait $! || fail "cat after the change: $?"
[ "$(cat "$SCRATCH/out")" = here ] || fail "read after the change: $(cat "$SCRATCH/out")"
