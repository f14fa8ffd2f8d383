#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# waits
# Every operation of a trace is done once, on tmpfs, on the file system of the tests, and on a FUSE
# mount; the result says so, and nothing is left.
set -u
. test/daemon/commands/replay/replay.bash
trap 'fusermount -u "$SCRATCH/mount" 2>/dev/null; rm -rf "$shm" "$SCRATCH"' EXIT
shm=
every_op "$SCRATCH/t.csv"

on() { # DIR NAME [OPTION...]
  local dir=$1 name=$2
  shift 2
  "$SLUICE" replay "$SCRATCH/t.csv" --target "$dir" -o "$SCRATCH/$name.json" "$@" \
    >"$SCRATCH/$name.txt" || fail "$name: status $?: $(cat "$SCRATCH/$name.txt")"
  for op in open close getattr rename setattr mkdir rmdir mknod unlink link readdir statfs sync \
    lock read write; do
    [ "$(total "$SCRATCH/$name.json" failed $op)" = 0 ] ||
      fail "$name: $op failed: $(tail -5 "$SCRATCH/$name.txt")"
  done
  [ "$(total "$SCRATCH/$name.json" offered)" = "$(total "$SCRATCH/$name.json" submitted)" ] ||
    fail "$name: not all was sent"
  between 399 "$(total "$SCRATCH/$name.json" done open)" 401 "$name: opens"
  between 6488064 "$(total "$SCRATCH/$name.json" done read)" 6619136 "$name: bytes read"
  [ "$(json "$SCRATCH/$name.json" 'd["jobs"][0]["finished"]')" = True ] ||
    fail "$name: not finished"
  is_empty "$dir" "$name"
}

mkdir "$SCRATCH/disk"
on "$SCRATCH/disk" disk
on "$SCRATCH/disk" threads --threads 3 --processes 2
on "$SCRATCH/disk" poisson-none --max-inflight 1 --threads-per-op 2
if [ -w /dev/shm ]; then
  shm=$(mktemp -d /dev/shm/sluice-test.XXXXXX)
  on "$shm" tmpfs
fi
command -v bindfs >/dev/null || skip "tmpfs and $SCRATCH passed; needs bindfs for FUSE"
mkdir "$SCRATCH/below" "$SCRATCH/mount"
bindfs "$SCRATCH/below" "$SCRATCH/mount" 2>/dev/null ||
  skip "tmpfs and $SCRATCH passed; FUSE cannot be mounted here"
on "$SCRATCH/mount" fuse
