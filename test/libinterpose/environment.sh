#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A child started with an empty environment is still metered, by every way to start one; and
# nothing but LD_PRELOAD is added.
. test/libinterpose/common.bash

for mode in execve execve_one execve_null execvpe execle fexecve execveat clearenv unsetenv \
  spawn spawnp vfork; do
  limited stat=5000/s "$PROGRAMS/exec_child" $mode "$PROGRAMS/loop" stat 50 "$DIR" \
    >"$SCRATCH/out" || fail "$mode: $?"
  counted 50 200 channel stat calls || fail "$mode lost the stage"
done
limited none env -i "$(command -v env)" >"$SCRATCH/out" || fail "env: $?"
grep -v '^LD_PRELOAD=' "$SCRATCH/out" && fail 'a variable was added'
env -u LD_PRELOAD env | sort >"$SCRATCH/before"
limited none env | grep -v '^LD_PRELOAD=' | sort | sed 's|^_=.*||' >"$SCRATCH/after"
sed 's|^_=.*||' "$SCRATCH/before" | cmp - "$SCRATCH/after" || fail 'the environment changed'

# What the program preloads itself may be as long as the kernel lets it be: we come before it.
theirs=$(ldconfig -p | sed -n 's/.*libm\.so\.6.*=> //p' | head -n 1)
long=$(printf "$theirs:%.0s" $(seq 400))$theirs
limited stat=5000/s env "LD_PRELOAD=$long" "$PROGRAMS/loop" stat 50 "$DIR" >"$SCRATCH/out" ||
  fail "a long list: $?"
counted 50 200 channel stat calls || fail 'a long list lost the stage'
counted 0 0 passthrough exec_environment calls
limited stat=5000/s env "LD_PRELOAD=$long" sh -c 'echo "${LD_PRELOAD#*:}"' >"$SCRATCH/out" ||
  fail "a long list is shown: $?"
echo "$long" | cmp - "$SCRATCH/out" || fail 'a long list was changed'
