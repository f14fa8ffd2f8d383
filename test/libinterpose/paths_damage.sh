#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The area of paths is deleted, scribbled over, or of another layout; processes that write in it are
# killed anywhere: guests go on and end well, and a report is written.
. test/libinterpose/common.bash

try() {  # WHAT SHELL
  local paths pid
  timeout -s KILL 30 "$SLUICE" --run-dir "$SCRATCH/run" run --job "$1" --paths --report "$report" \
    -- sh -c "$PROGRAMS/steady 1.5 $DIR && $PROGRAMS/steady 0.1 $DIR" \
    >"$SCRATCH/out" 2>"$SCRATCH/err" &
  pid=$!
  paths=$SCRATCH/run/jobs/$1/paths
  at_work "$1"
  [ "$(stat -c %a "$paths")" = 600 ] || fail "mode $(stat -c %a "$paths")"
  eval "$2"
  wait $pid || bad="$bad $1"
  [ "$(wc -l <"$SCRATCH/out")" = 2 ] || bad="$bad $1"
  json "$report" 'd["exit"]' >/dev/null || bad="$bad $1"
}
write_over() { dd of="$paths" conv=notrunc bs=64k 2>"$SCRATCH/log"; }

bad=
try deleted 'rm $paths'
grep -q 'warning: --paths' "$SCRATCH/err" || fail "not said: $(cat "$SCRATCH/err")"
try scribbled 'head -c $(stat -c %s $paths) /dev/urandom | write_over'
try zeroed 'head -c $(stat -c %s $paths) /dev/zero | write_over'
try slots 'head -c 4096 $paths >$SCRATCH/x
  head -c $(($(stat -c %s $paths) - 4096)) /dev/urandom >>$SCRATCH/x
  write_over <$SCRATCH/x'
json "$report" 'all(p["path"].startswith("/") for p in d["paths"])' | grep -q True ||
  bad="$bad believed"
try layout 'printf \\7 | dd of=$paths bs=1 seek=8 conv=notrunc 2>/dev/null'
[ -z "$bad" ] || fail "guests died:$bad"

# Killed anywhere: the counts that are left are those of whole calls.
cat >"$SCRATCH/kill.sh" <<'S'
for i in $(seq 25); do
  "$1/steady" 20 "$2" & pid=$!
  sleep 0.0$((i % 3 + 1))
  kill -KILL $pid
  wait $pid
done
"$1/steady" 0.2 "$2"
S
timeout -s KILL 60 "$SLUICE" --run-dir "$SCRATCH/run" run --paths --paths-depth 16 --no-summary \
  --report "$report" -- sh "$SCRATCH/kill.sh" "$PROGRAMS" "$DIR" >"$SCRATCH/out" 2>&1
[ "$(json "$report" 'd["paths"][0]["path"]')" = "$DIR" ] || fail "$(json "$report" 'd["paths"]')"
sums=$(json "$report" '(sum(p["calls"] for p in d["paths"]) + d["paths_other_calls"] -
  sum(c["calls"] for c in d["calls"]))')
between -30 "$sums" 30 "noted less counted"
exit 0
