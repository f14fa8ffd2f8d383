#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 300 (KILLS=10000 for the long form) processes are killed while they wait, book and attach. The
# bucket is not wedged: afterwards a fresh process gets the rate, neither less nor more.
# timeout: 900
. test/libinterpose/common.bash

run="$PROGRAMS/killer ${KILLS:-300} $DIR; sleep 1; $PROGRAMS/loop pread 100 $DIR >$SCRATCH/warm
  $PROGRAMS/loop pread 800 $DIR >$SCRATCH/ms"
TIME=880 limited read=1000/s,stat=1000/s sh -c "$run" || fail "status $?"
between 720 "$(cat "$SCRATCH/ms")" 2000 'milliseconds for 800 reads at 1000/s'
