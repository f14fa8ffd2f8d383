#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A handler on an alternate stack of the least useful size does I/O on a target that is a directory.
. test/libinterpose/common.bash

guest "all=1000/s@$DIR" "$PROGRAMS/small_altstack" "$DIR"
counted 5 5 op rename calls

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
    --policy "$SCRATCH/$policy.json" -- "$PROGRAMS/small_altstack" "$DIR" || fail "$policy: $?"
done
