#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A journal can be made where the file system makes no file without a name, as FUSE: whole, under
# its name, and with nothing beside it.
set -u
. test/lib/lib.sh
need bindfs
mkdir "$SCRATCH"/{real,data}
trap 'umount -l "$SCRATCH/data" 2>/dev/null; rm -rf "$SCRATCH"' EXIT
bindfs "$SCRATCH/real" "$SCRATCH/data" 2>/dev/null || skip 'no FUSE here'
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
"$SLUICE" --run-dir "$SCRATCH/run" run --no-summary --order "ordered@$SCRATCH/data" -- \
  sh -c 'echo ran >"$0/file"' "$SCRATCH/data" >"$SCRATCH/out" 2>&1 ||
  fail "status $?: $(cat "$SCRATCH/out")"
[ "$(cat "$SCRATCH/real/file")" = ran ] || fail 'the program did not run'
grep -q 'cannot be made' "$SCRATCH/out" && fail "$(cat "$SCRATCH/out")"
left=$(find "$SCRATCH/real" -name '.sluice-new*')
[ -z "$left" ] || fail "left: $left"
exit 0
