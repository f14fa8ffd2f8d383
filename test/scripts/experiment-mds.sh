#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# rows
# timeout: 300
# An experiment on a metadata server in its shortest form: it comes to its end with all its figures,
# and leaves nothing where it was called. Nor does scripts/sandbox-slurm, on which it runs. Whether
# its aims are met in one second is not asked: the full run says so.
set -u
[ "${1:-}" = --rows ] && printf '%s\n' protection steering && exit
. test/lib/lib.sh
need python3
chmod 711 "$SCRATCH"  # its users look below it
mkdir "$SCRATCH/called-here" "$SCRATCH/tmp"
cd "$SCRATCH/called-here" || exit 1
export TMPDIR=$SCRATCH/tmp

case $1 in
protection)
  "$top/scripts/sandbox-slurm" run true >"$SCRATCH/out" 2>&1
  status=$?
  [ $status = 77 ] && skip "$(tail -n 1 "$SCRATCH/out")"
  [ $status = 0 ] || fail "sandbox-slurm: $status: $(cat "$SCRATCH/out")"
  words=
  runs='[len(d["runs"][k]) for k in "ABCD"]'
  expected='[1, 1, 1, 1]'
  ;;
steering)
  words='--phase 2 --numbers 300'
  runs='[r[0] for r in d["rows"]] + [len(d["moments"]), len(d["capacity"]) > 50]'
  expected="['alone', 300, 'steered', 3, True]"
  ;;
esac
# shellcheck disable=SC2086 # words
"$top/scripts/experiments/mds-$1" --runs 1 --seconds 1 $words --json "$SCRATCH/figures.json" \
  >"$SCRATCH/out" 2>&1
status=$?
[ $status = 77 ] && skip "$(tail -n 1 "$SCRATCH/out")"
[ $status -le 1 ] && [ -s "$SCRATCH/figures.json" ] || fail "$status: $(cat "$SCRATCH/out")"
[ "$(json "$SCRATCH/figures.json" "$runs")" = "$expected" ] ||
  fail "runs are missing: $(cat "$SCRATCH/figures.json")"
left=$(ls -A "$SCRATCH/called-here" "$SCRATCH/tmp")
[ "$(tr '\n' ' ' <<<"$left")" = "$SCRATCH/called-here:  $SCRATCH/tmp: " ] || fail "left: $left"
