#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Inside a program we are memory only: no thread, no descriptor, no signal handler, no change of
# what is blocked, ignored or limited.
. test/libinterpose/common.bash

look='ls /proc/self/fd; grep -E "^(Threads|Sig(Blk|Ign|Cgt)|NoNewPrivs|Seccomp)" /proc/self/status
  ulimit -a; umask; cat /proc/self/timerslack_ns /proc/self/coredump_filter'
# Both under timeout(1), which takes away that a signal is ignored.
timeout -s KILL 20 bash -c "$look" >"$SCRATCH/bare" 2>&1
limited open=1000/s bash -c "$look" >"$SCRATCH/staged" 2>&1 || fail "status $?"
diff "$SCRATCH/bare" "$SCRATCH/staged" || fail 'something is different inside'
