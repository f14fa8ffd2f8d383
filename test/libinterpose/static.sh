#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A static program cannot be metered; it must run as ever.
. test/libinterpose/common.bash

gcc -static "$top/test/programs/plain_io.c" -o "$SCRATCH/static" 2>"$SCRATCH/log" ||
  skip 'needs a static libc'
limited read=10/s "$SCRATCH/static" "$DIR" >"$SCRATCH/out" || fail "status $?"
[ "$(cat "$SCRATCH/out")" = done ] || fail 'its output changed'
