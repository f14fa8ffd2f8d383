#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program under valgrind, with the stage in it.
. test/libinterpose/common.bash

need valgrind
limited read=1000/s valgrind -q --error-exitcode=9 "$PROGRAMS/mixed" "$DIR" >"$SCRATCH/out" 2>&1 ||
  { tail -30 "$SCRATCH/out"; fail "status $?"; }
counted 80 2000 op stat calls
