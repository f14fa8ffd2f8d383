#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program run by sluice ends as it would have ended alone: status, signal, not found, not
# executable.
set -u
. test/lib/lib.sh
run() { "$SLUICE" --run-dir "$SCRATCH/run" run "$@"; }
expect() { # STATUS NAME COMMAND...
  local want=$1 name=$2
  shift 2
  "$@" >"$SCRATCH/out" 2>"$SCRATCH/err"
  local got=$?
  [ "$got" = "$want" ] || fail "$name: status $got, wanted $want: $(cat "$SCRATCH/err")"
}
touch "$SCRATCH/plain"
for mode in --no-summary --summary; do
  expect 0 "true $mode" run $mode -- true
  expect 7 "exit 7 $mode" run $mode -- sh -c 'exit 7'
  expect 137 "kill -9 $mode" run $mode -- sh -c 'kill -9 $$'
  expect 143 "kill -15 $mode" run $mode -- sh -c 'kill -15 $$'
  expect 127 "missing $mode" run $mode -- /nonexistent/program
  expect 127 "missing in PATH $mode" run $mode -- no-such-program-here
  expect 126 "not executable $mode" run $mode -- "$SCRATCH/plain"
  expect 126 "a directory $mode" run $mode -- "$SCRATCH"
done
mkdir "$SCRATCH/here" "$SCRATCH/plain-only"
printf '#!/bin/sh\nexit 9\n' >"$SCRATCH/here/in-this-directory"
chmod +x "$SCRATCH/here/in-this-directory"
touch "$SCRATCH/plain-only/no-program"
looked_up() { (cd "$SCRATCH/here" && PATH=$1 && run --no-summary -- "$2"); }
expect 9 "the last part of PATH is empty" looked_up /bin: in-this-directory
expect 9 "PATH is empty" looked_up '' in-this-directory
expect 127 "PATH without the current directory" looked_up /bin in-this-directory
expect 126 "in PATH, not executable" looked_up "$SCRATCH/plain-only:/bin" no-program
# The run directory may go while the program runs (the last logout clears it): its end still counts.
gone() { # OPTION COMMAND
  "$SLUICE" --no-daemon --run-dir "$SCRATCH/gone" run "$1" -- sh -c "rm -rf '$SCRATCH/gone'; $2"
}
expect 7 "exit 7 without a run directory" gone --summary 'exit 7'
grep -q 'not cleared away' "$SCRATCH/err" || fail "no word of it: $(cat "$SCRATCH/err")"
expect 143 "kill -15 without a run directory" gone "--report=$SCRATCH/gone.json" 'kill -15 $$'
json "$SCRATCH/gone.json" 'd["job"]' >/dev/null || fail "no report without a run directory"
expect 3 "without --" run sh -c 'exit 3'
[ "$(run -- printf '%s|' a -- --limit 'b c')" = 'a|--|--limit|b c|' ] || fail "arguments changed"
[ "$(echo in | run -- cat)" = in ] || fail "standard input"
[ "$(LD_PRELOAD='' run -- sh -c 'echo ${LD_PRELOAD##*/}')" = libinterpose.so ] || fail "LD_PRELOAD"
env >"$SCRATCH/bare"
run -- env | grep -v '^LD_PRELOAD=' >"$SCRATCH/with"
diff <(grep -v '^_=' "$SCRATCH/bare" | sort) <(grep -v '^_=' "$SCRATCH/with" | sort) >&2 ||
  fail "environment"
for option in --report --record; do
  for file in "$SCRATCH/no/dir" "$SCRATCH"; do
    expect 2 "$option $file" run $option "$file" -- touch "$SCRATCH/has-run"
    grep -qF -- "$option $file: " "$SCRATCH/err" || fail "$option $file: $(cat "$SCRATCH/err")"
  done
done
[ ! -e "$SCRATCH/has-run" ] || fail "the program was run although its report cannot be written"
rm "$SCRATCH/plain"
