#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program under valgrind, with the stage in it.
. test/libinterpose/common.bash

need valgrind
limited read=1000/s valgrind -q --error-exitcode=9 "$PROGRAMS/mixed" "$DIR" >"$SCRATCH/out" 2>&1 ||
  { tail -30 "$SCRATCH/out"; fail "status $?"; }
counted 80 2000 op stat calls

# It says nothing of ours, whatever it runs.
for program in 'ls /' 'git --version' 'bash -c true' "find $DIR -name x" 'perl -e print(1)'; do
  limited all=100k/s valgrind -q --error-exitcode=9 $program >"$SCRATCH/out" 2>"$SCRATCH/err" ||
    fail "$program: status $?: $(head -5 "$SCRATCH/err")"
  valgrind -q --error-exitcode=9 $program >"$SCRATCH/bare" 2>"$SCRATCH/bare.err" || continue
  cmp -s "$SCRATCH/out" "$SCRATCH/bare" || fail "$program: other output"
  [ "$(wc -l <"$SCRATCH/err")" = "$(wc -l <"$SCRATCH/bare.err")" ] ||
    fail "$program: $(head -5 "$SCRATCH/err")"
done
