#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stress-ng file stressors check their own results (--verify) under limits.
# timeout: 180
. test/guests/common
need stress-ng
set -- dir:20 rename:200 chmod:50 chown:50 utime:50 xattr:3 hdd:100 seek:100 \
  fallocate:5 sendfile:20 flock:200 dentry:200 fstat:20 getdent:20
[ -z "${FULL:-}" ] || set -- "$@" aio:50 aiol:50 dirdeep:20 dirmany:20 dup:100 fiemap:20 \
  file-ioctl:20 filename:20 fpunch:5 iomix:50 lease:100 locka:100 lockf:100 lockofd:100 mknod:20 \
  mmap:5 open:100 readahead:50 splice:50 sync-file:20 touch:100 io-uring:20
mkdir "$SCRATCH/d"
waited=0
for one in "$@"; do
  name=${one%:*}
  limited --limit metadata=3000/s --limit data=40MiB/s -- timeout -s KILL 20 \
    stress-ng --temp-path "$SCRATCH/d" --"$name" 1 --"$name"-ops "${one#*:}" \
    --timeout 5 --hdd-bytes 4m --fallocate-bytes 1m --verify \
    >"$SCRATCH/out" 2>&1
  status=$?
  # 3: not enough resources, 4: not implemented here, 7: interrupted by its own time limit.
  case $status in 0 | 3 | 4) ;; *) cat "$SCRATCH/out"; fail "$name: status $status" ;; esac
  ! grep -Eq 'fail: |unsuccessful' "$SCRATCH/out" || { cat "$SCRATCH/out"; fail "$name"; }
  n=$(json "$SCRATCH/report" 'sum(c["delayed"] for c in d["channels"])')
  waited=$((waited + n))
done
[ "$waited" -gt 0 ] || fail 'no call waited: the limits did nothing'
echo "$# stressors, $waited calls waited"
