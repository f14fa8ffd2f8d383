#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program of another libc starts and works, with the stage or without it.
. test/libinterpose/common.bash

need musl-gcc
musl-gcc "$top/test/programs/plain_io.c" -o "$SCRATCH/musl" || fail 'does not build'
limited read=1000/s "$SCRATCH/musl" "$DIR" >"$SCRATCH/out" 2>"$SCRATCH/err" ||
  { cat "$SCRATCH/err"; fail "status $?"; }
[ "$(cat "$SCRATCH/out")" = done ] || fail 'its output changed'
# The command may warn before it starts the program; the program itself stays quiet.
grep -v '^sluice: ' "$SCRATCH/err" && fail 'something was printed'
exit 0
