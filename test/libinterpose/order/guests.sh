#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The unusual programs, with their folder durable: sandboxes, vfork, longjmp, small stacks, signals,
# cancellation. They see what they see bare.
. test/lib/order.bash

with_fake sync
while read -r program mode; do
  rm -rf "$DATA"
  mkdir -p "$DATA"
  "$PROGRAMS/loop" prepare 1 "$DATA" >/dev/null || fail "cannot prepare $DATA"
  TIME=30 durable -- "$PROGRAMS/$program" ${mode:+"$mode"} "$DATA" ||
    fail "$program $mode: status $?"
done <<'END'
bad_arguments
cancel
close_all
early
errno_kept
fork_threads
large_count
longjmp
modes
no_cancel_point
own_open
quiet
signal_io
small_altstack
small_stack
vfork
unusual nested_vfork
unusual seccomp_probe
unusual stale_descriptor
seccomp_strict
END
