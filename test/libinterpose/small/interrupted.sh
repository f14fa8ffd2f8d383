#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Opening or cutting a file that the job itself has leased waits, and never ends with EINTR: the
# program did not expect that of a file.
. test/libinterpose/small/runs.bash

JOB=interrupted
program=$PROGRAMS/interrupted_open
mkfifo "$SCRATCH/pids" "$SCRATCH/said"
keepers() { # of our job
  local p
  for p in $(pgrep -x "$1"); do
    grep -qsF "$SCRATCH/run/jobs/$JOB/" "/proc/$p/maps" && echo "$p"
  done
}
has_keepers() { [ "$(keepers "$1" | wc -l)" = "$2" ]; }

try() { # WORD KEEPER HOW-MANY
  below "$1" "$DIR" "$program" "$DIR/file" "$1" <"$SCRATCH/pids" >"$SCRATCH/said" &
  job=$!
  exec 8>"$SCRATCH/pids" 9<"$SCRATCH/said"
  while read -r -u 9; do
    until_true has_keepers "$2" "$3" || fail "$1: $(keepers "$2" | wc -l) keepers"
    # shellcheck disable=SC2046
    echo $(keepers "$2") >&8
  done
  exec 8>&- 9<&-
  wait "$job" || fail "$1: status $?"
}

printf '\n\n\n' | "$program" "$DIR/file" strict >"$SCRATCH/bare" || fail "bare: status $?"
try strict sluice-writes 2
try reads sluice-leases 1
