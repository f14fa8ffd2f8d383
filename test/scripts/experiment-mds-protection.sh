#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 300
# The experiment on a metadata server in its shortest form: it comes to its end with all its
# figures, and leaves nothing where it was called. Nor does scripts/sandbox-slurm, on which it runs.
set -u
. test/lib/lib.sh
need python3
chmod 711 "$SCRATCH"  # its users look below it
mkdir "$SCRATCH/called-here" "$SCRATCH/tmp"
cd "$SCRATCH/called-here" || exit 1
export TMPDIR=$SCRATCH/tmp

"$top/scripts/sandbox-slurm" run true >"$SCRATCH/out" 2>&1
status=$?
[ $status = 77 ] && skip "$(tail -n 1 "$SCRATCH/out")"
[ $status = 0 ] || fail "sandbox-slurm: $status: $(cat "$SCRATCH/out")"
# Whether its aims are met in one second is not asked: the full run says so.
"$top/scripts/experiments/mds-protection" --runs 1 --seconds 1 --json "$SCRATCH/figures.json" \
  >"$SCRATCH/out" 2>&1
status=$?
[ $status -le 1 ] && [ -s "$SCRATCH/figures.json" ] || fail "$status: $(cat "$SCRATCH/out")"
[ "$(json "$SCRATCH/figures.json" '[len(d["runs"][k]) for k in "ABCD"]')" = '[1, 1, 1, 1]' ] ||
  fail "runs are missing: $(cat "$SCRATCH/figures.json")"
left=$(ls -A "$SCRATCH/called-here" "$SCRATCH/tmp")
[ "$(tr '\n' ' ' <<<"$left")" = "$SCRATCH/called-here:  $SCRATCH/tmp: " ] || fail "left: $left"
