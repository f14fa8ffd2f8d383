# SPDX-License-Identifier: Apache-2.0
# An experiment on a metadata server in its shortest form: it comes to its end with all its figures,
# and leaves nothing where it was called. Nor does scripts/sandbox-slurm, on which it runs. Whether
# its aims are met in one second is not asked: the full run says so.
. test/lib/lib.sh

# mds_experiment NAME EXPRESSION EXPECTED OPTION...: EXPRESSION is about its figures.
mds_experiment() {
  local name=$1 expression=$2 expected=$3 status left
  shift 3
  need python3
  chmod 711 "$SCRATCH" # its users look below it
  mkdir "$SCRATCH/called-here" "$SCRATCH/tmp"
  cd "$SCRATCH/called-here" || exit 1
  TMPDIR=$SCRATCH/tmp "$top/scripts/experiments/$name" --runs 1 --seconds 1 "$@" \
    --json "$SCRATCH/figures.json" >"$SCRATCH/out" 2>&1
  status=$?
  [ $status = 77 ] && skip "$(tail -n 1 "$SCRATCH/out")"
  [ $status -le 1 ] && [ -s "$SCRATCH/figures.json" ] || fail "$status: $(cat "$SCRATCH/out")"
  [ "$(json "$SCRATCH/figures.json" "$expression")" = "$expected" ] ||
    fail "runs are missing: $(cat "$SCRATCH/figures.json")"
  left=$(ls -A "$SCRATCH/called-here" "$SCRATCH/tmp")
  [ "$(tr '\n' ' ' <<<"$left")" = "$SCRATCH/called-here:  $SCRATCH/tmp: " ] || fail "left: $left"
}
