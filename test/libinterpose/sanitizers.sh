#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs built with AddressSanitizer and ThreadSanitizer run under the stage.
. test/libinterpose/common.bash

source=$top/test/programs/mixed.cc
for kind in address thread; do
  g++ -std=c++20 -O1 -pthread -fsanitize=$kind "$source" -o "$SCRATCH/$kind" 2>"$SCRATCH/log" ||
    { missing=1; continue; }
  export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
  limited read=400/s,stat=400/s "$SCRATCH/$kind" "$DIR" >"$SCRATCH/out" 2>&1 ||
    { cat "$SCRATCH/out"; fail "$kind: $?"; }
  grep -q 'WARNING: ThreadSanitizer' "$SCRATCH/out" && { cat "$SCRATCH/out"; fail "a race"; }
  counted 80 200 op stat calls
done
[ -z "${missing:-}" ] || skip 'needs the sanitizers of g++'
