#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that is started in a sandbox runs without the stage, whose first calls would be its
# death; what else was preloaded stays. One that enters by syscall(2) is left alone as well.
. test/libinterpose/common.bash
need strace

# A filter that ends nobody, a tracer's, keeps no program from its limits.
guest open=5000/s strace -f --seccomp-bpf -e trace=fsync -o "$SCRATCH/trace" \
  "$PROGRAMS/loop" open 300 "$DIR"
counted 300 310 call open calls

guest open=5000/s "$PROGRAMS/seccomp_exec" syscall "$PROGRAMS/loop"
counted 1 300 passthrough sandboxed calls
modes='execv execve execl execvp execveat fexecve number number-at spawn spawnp vfork system popen
  crowded'
for mode in $modes {twice,by-number}" "{execve,number,spawn,system,popen}; do
  "$PROGRAMS/seccomp_exec" $mode "$(command -v env)" >"$SCRATCH/bare" || fail "bare $mode: $?"
  limited open=5000/s "$PROGRAMS/seccomp_exec" $mode "$(command -v env)" >"$SCRATCH/out" ||
    fail "$mode: $?"
  sed 's|^_=.*||' "$SCRATCH/bare" >"$SCRATCH/before"
  sed 's|^_=.*||' "$SCRATCH/out" | cmp - "$SCRATCH/before" ||
    fail "$mode: $(diff "$SCRATCH/bare" "$SCRATCH/out")"
  LD_PRELOAD=$PROGRAMS/early_library limited open=5000/s env \
    "$PROGRAMS/seccomp_exec" $mode "$(command -v env)" >"$SCRATCH/out" || fail "$mode, others: $?"
  grep -qx "LD_PRELOAD=$PROGRAMS/early_library" "$SCRATCH/out" ||
    fail "$mode, others: $(grep LD_PRELOAD "$SCRATCH/out")"
done
