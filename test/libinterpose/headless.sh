#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program whose first thread has ended: /proc/self names nothing of it. Where its files lie is
# found all the same, by a symlink too, and a name that is no manifest waits at no gate.
. test/libinterpose/common.bash

mkdir "$DIR/in" "$DIR/out"
ln -s "$DIR/in/file" "$DIR/out/link"
limited "data=1TiB/s@$DIR/in" "$PROGRAMS/headless" 50 "$DIR/out/link" || fail "status $?"
[ "$(json "$report" "d['channels'][0]['amount']")" = 51200 ] ||
  fail "charged $(json "$report" "d['channels'][0]['amount']") bytes of 51200"

cat >"$SCRATCH/policy.json" <<P
{"targets": {"in": {"path": "$DIR/in",
                    "after": {"write": "*/MANIFEST-*", "durable": "*/rank-*.dat"}}}}
P
gates() { # FILE: what the summary says
  timeout -s KILL 20 "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run --summary \
    --policy "$SCRATCH/policy.json" -- "$PROGRAMS/headless" 3 "$DIR/in/$1" 2>&1 | grep gates
}
gates MANIFEST-1 | grep -q 'gates: 3 opened' || fail "a manifest: $(gates MANIFEST-1)"
gates plain | grep -q 'gates: 0 opened' || fail "no manifest: $(gates plain)"
