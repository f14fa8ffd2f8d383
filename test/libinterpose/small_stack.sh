#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Threads of the least stack size do every kind of call.
. test/libinterpose/common.bash

guest open=400/s,read=400/s,rename=400/s "$PROGRAMS/small_stack" "$DIR"
counted 80 80 channel rename calls

# Under patterns of whole paths, roles, and gates of epochs, with names relative and whole.
mkdir "$DIR/deep"
cat >"$SCRATCH/roles.json" <<P
{"targets": {"scratch": {"path": "$DIR"}},
 "roles": {"g": {"a": {"path": "*/deep/*.x"}, "b": {"path": "*.log"}, "rest": {"rest": true}}}}
P
cat >"$SCRATCH/after.json" <<P
{"targets": {"scratch": {"path": "$DIR", "after": {"write": "*/MANIFEST*", "durable": "*/small*"}}}}
P
for policy in roles after; do
  timeout -s KILL 20 "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run --no-summary \
    --policy "$SCRATCH/$policy.json" -- "$PROGRAMS/small_stack" "$DIR" || fail "$policy: $?"
done
