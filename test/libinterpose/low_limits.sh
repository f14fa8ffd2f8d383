#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Without room for our memory, or without descriptors to map it, the program runs as if we were
# not there.
. test/libinterpose/common.bash

ls "$DIR" >"$SCRATCH/bare"
room=() # where our memory would just fit, the program's own would not
for ((kib = 8000; kib <= 60000; kib += 500)); do room+=("-v $kib"); done
for ((kib = 250; kib <= 8000; kib += 250)); do room+=("-d $kib"); done
for limit in "${room[@]}" '-v 100000' '-n 4' '-f 0' '-s 64' '-u 100000' '-l 0'; do
  (ulimit $limit 2>/dev/null && ls "$DIR" | cat) >"$SCRATCH/out" 2>"$SCRATCH/err"
  cmp -s "$SCRATCH/bare" "$SCRATCH/out" || continue
  limited none sh -c "ulimit $limit && exec ls $DIR | cat" >"$SCRATCH/out" 2>"$SCRATCH/err" ||
    fail "under ulimit $limit: $?"
  cmp "$SCRATCH/bare" "$SCRATCH/out" || { cat "$SCRATCH/err"; fail "ulimit $limit: output"; }
done

# The command itself says what it lacks.
told() { # WORDS COMMAND…: it ends with 125, or goes on, and says so.
  local words=$1
  shift
  "$@" >"$SCRATCH/out" 2>"$SCRATCH/err"
  [ $? -le 125 ] && grep -q "$words" "$SCRATCH/err" || fail "$*: $(cat "$SCRATCH/err")"
}
run="$SLUICE --run-dir $SCRATCH/run --no-daemon run"
told 'File too large' sh -c "ulimit -f 100 && exec $run -- true"
told 'No space left' $run --report /dev/full -- seq 10000
told 'temporarily unavailable' sh -c "ulimit -v 20000 && exec $run --order durable@$DIR -- true"
ls -A "$SCRATCH/run/jobs" | grep -q new && fail "left over: $(ls -A "$SCRATCH/run/jobs")"
exit 0
