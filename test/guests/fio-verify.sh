#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fio reads back and verifies what it wrote, with each I/O engine. FULL=1 for larger files.
# timeout: 180
. test/guests/common
need fio
size=1m
[ -z "${FULL:-}" ] || size=32m
mkdir "$SCRATCH/d"
for engine in sync psync pvsync pvsync2 posixaio libaio io_uring mmap splice; do
  set -- fio --name=v --directory="$SCRATCH/d" --filename=f --size=$size --bs=8k --rw=randrw \
    --verify=crc32c --verify_fatal=1 --do_verify=1 --verify_state_save=0 --fsync=32 \
    --ioengine=$engine --iodepth=4 --output="$SCRATCH/out"
  rm -f "$SCRATCH/d/f"
  if ! "$@" >/dev/null 2>&1; then
    echo "$engine: does not work here"
    continue
  fi
  rm -f "$SCRATCH/d/f"
  limited --limit data=4MiB/s --limit fsync=200/s -- "$@" 2>"$SCRATCH/err" ||
    fail "$engine: $? $(tail -n 5 "$SCRATCH/err" "$SCRATCH/out")"
  grep -q 'err= 0' "$SCRATCH/out" || fail "$engine: $(grep err= "$SCRATCH/out")"
  case $engine in
    *uring | mmap) echo "$engine: data is not seen" ;;
    *) delayed ;;
  esac
done
