#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A FUSE server that is mounted over the directory it serves, below a limit of another directory of
# that file system: to look up where its files lie would be to wait for itself.
. test/libinterpose/common.bash
own_mounts
need bindfs
[ -e /dev/fuse ] || skip 'needs /dev/fuse'

mkdir "$SCRATCH/over" "$SCRATCH/over/sub" "$SCRATCH/target"
echo hello >"$SCRATCH/over/file"
echo deep >"$SCRATCH/over/sub/file"
"$SLUICE" --no-daemon --run-dir "$SCRATCH/run" run -q --no-summary \
  --limit "data=100MiB/s@$SCRATCH/target" -- \
  bindfs -f -o nonempty "$SCRATCH/over" "$SCRATCH/over" 2>"$SCRATCH/err" &
job=$!
trap 'umount -l "$SCRATCH/over" 2>/dev/null; kill $job 2>/dev/null' EXIT
is_mounted() { grep -q " $SCRATCH/over fuse" /proc/self/mounts; }
until_true is_mounted || skip "no FUSE here: $(cat "$SCRATCH/err")"
said=$(timeout -s KILL 20 cat "$SCRATCH/over/file" "$SCRATCH/over/sub/file") || fail "status $?"
[ "$said" = $'hello\ndeep' ] || fail "$said"

# One that works below its own mount before it has read a request.
mkdir "$SCRATCH/target/before"
timeout -s KILL 20 "$SLUICE" --no-daemon --run-dir "$SCRATCH/run" run -q --no-summary \
  --limit "metadata=100k/s@$SCRATCH/target" -- "$PROGRAMS/fuse_before" "$SCRATCH/target/before" ||
  fail "before the first request: status $?"
[ "$(cat "$SCRATCH/target/before/sub/log")" = begun ] || fail 'it wrote nothing'
