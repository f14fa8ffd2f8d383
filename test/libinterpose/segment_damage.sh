#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The segment is deleted or scribbled over while in use: the guest goes on and ends
# well, and new processes too.
. test/libinterpose/common.bash

try() {  # WHAT SHELL
  local segment pid
  TIME=30 JOB=$1 limited read=2000/s \
    sh -c "$PROGRAMS/steady 1.5 $DIR && $PROGRAMS/steady 0.1 $DIR" \
    >"$SCRATCH/out" 2>"$SCRATCH/err" &
  pid=$!
  segment=$SCRATCH/run/jobs/$1/segment
  at_work "$1"
  eval "$2"
  # The guest's lines are what counts; what sluice itself says of a lost report is its affair.
  wait $pid
  [ "$(wc -l <"$SCRATCH/out")" = 2 ] && return
  cat "$SCRATCH/err"
  bad="$bad $1"
}
write_over() { dd of="$segment" conv=notrunc bs=64k 2>"$SCRATCH/log"; }

bad=
try deleted 'rm $segment'
try scribbled 'head -c $(stat -c %s $segment) /dev/urandom | write_over'
try zeroed 'head -c $(stat -c %s $segment) /dev/zero | write_over'
try header 'head -c 4096 /dev/urandom | write_over'
[ -z "$bad" ] || fail "guests died:$bad"
