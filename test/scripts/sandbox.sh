#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# starves
# scripts/sandbox in its shortest form runs its cluster and its jobs to the end, and leaves nothing
# where it was called nor in the directory for temporary files. Each experiment has a test of its
# own that looks for the same.
set -u
. test/lib/lib.sh
need python3 fio tar
for path in "$top"/scripts/experiments/*; do
  [ -x "$path" ] || continue
  [ -x "$top/test/scripts/experiment-${path##*/}.sh" ] || fail "no test runs ${path##*/}"
done

mkdir "$SCRATCH/called-here" "$SCRATCH/tmp"
# Whether promises are kept in one second is not asked: other tests run beside it.
(cd "$SCRATCH/called-here" && TMPDIR="$SCRATCH/tmp" "$top/scripts/sandbox" --seconds 1) \
  >"$SCRATCH/out" 2>&1 </dev/null
status=$?
[ $status -le 1 ] && grep -q 'promises were ' "$SCRATCH/out" ||
  fail "$status: $(cat "$SCRATCH/out")"
grep -q '^solver .* metadata@shared ' "$SCRATCH/out" || fail "no table: $(cat "$SCRATCH/out")"
for dir in called-here tmp; do
  [ -z "$(ls -A "$SCRATCH/$dir")" ] || fail "left in $dir: $(ls -A "$SCRATCH/$dir")"
done
