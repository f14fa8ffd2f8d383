#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `help` and `version` are verbs as they are elsewhere; a program of that name is one still.
set -u
. test/lib/lib.sh
same() { # OPTIONS AND VERB: both print the same
  $SLUICE $1 >"$SCRATCH/1" || fail "$1: status $?"
  $SLUICE $2 >"$SCRATCH/2" || fail "$2: status $?"
  [ -s "$SCRATCH/1" ] && cmp -s "$SCRATCH/1" "$SCRATCH/2" || fail "$2 is not $1"
}
same --version version
same --help help
same 'run --help' 'help run'
same 'policy check --help' 'help policy check'
same 'trace --help' 'help trace'
$SLUICE help nonsense 2>"$SCRATCH/err"
[ $? = 2 ] && grep -q 'there is no verb "nonsense"' "$SCRATCH/err" || fail "$(cat "$SCRATCH/err")"
$SLUICE help | grep -q '^  version ' || fail "help does not list version"
$SLUICE order --help | grep -q 'jq .journal' || fail 'order --help names a key that there is not'
$SLUICE run --help | grep -n 'Excludes:\|{' && fail 'run --help shows what is inside'
"$(dirname "$SLUICE")/sluiced" --help | grep -n 'Excludes:' && fail 'sluiced --help: old flags'
$SLUICE replay --help | grep -n ' in \[' && fail 'replay --help shows ranges as types'
$SLUICE replay --help | grep -q -- '--jobs N' || fail 'replay --help names no type'
for verb in diff rollback; do
  $SLUICE policy $verb site2.json 2>"$SCRATCH/err"
  [ $? = 2 ] &&
    grep -q '"site2.json" is not a version number as `sluice policy log`' "$SCRATCH/err" &&
    ! grep -q 'range' "$SCRATCH/err" || fail "policy $verb FILE: $(cat "$SCRATCH/err")"
done
printf '#!/bin/sh\necho a program\n' >"$SCRATCH/help"
chmod +x "$SCRATCH/help"
said=$(PATH="$SCRATCH:$PATH" $SLUICE --no-daemon --run-dir "$SCRATCH/run" run -- help)
[ "$said" = 'a program' ] ||
  fail 'a program named help'
