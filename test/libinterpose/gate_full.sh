#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A gate of epochs is not passed unasked because no descriptor is free to look at a name.
. test/libinterpose/common.bash

cat >"$SCRATCH/after.json" <<P
{"targets": {"scratch": {"path": "$DIR", "after": {"write": "*/MANIFEST*", "durable": "*/rank*"}}}}
P
ulimit -n 64
timeout -s KILL 20 "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run --no-summary \
  --policy "$SCRATCH/after.json" --report "$report" -- "$PROGRAMS/gate_full" "$DIR" || fail "$?"
[ "$(json "$report" 'd["after"]["opened"] + d["after"]["refused"]')" = 1 ] ||
  fail "asked nobody: $(json "$report" 'd["after"]')"
[ ! -e "$DIR/MANIFEST-1" ] || [ "$(json "$report" 'd["after"]["opened"]')" = 1 ] ||
  fail 'renamed, and no gate was opened'
