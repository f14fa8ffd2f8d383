#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# A program that alone overwrites a file syncs it itself; but not when something is to be kept that
# an fdatasync does not keep, or when the file grew.
. "$(dirname "$0")/common.bash"
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
own_mounts
own_ext4 "$DATA" || skip 'needs root, mkfs.ext4 and loop devices'

cat >"$SCRATCH/overwrite.py" <<'END'
import os, sys
path, wanted = sys.argv[1], sys.argv[2]
fd = os.open(path, os.O_RDWR)
for i in range(200):
    os.pwrite(fd, b"%4d" % i, 0)
    change = wanted if i >= 20 else "bytes"
    if change == "mode": os.fchmod(fd, 0o600 + i % 2 * 0o40)
    if change == "mode, then bytes":
        os.fchmod(fd, 0o600 + i % 2 * 0o40)
        os.pwrite(fd, b"more", 4)
    if change == "times": os.utime(fd, (i, i))
    if change == "name":
        os.rename(path, path + "2")
        os.rename(path + "2", path)
        os.pwrite(fd, b"more", 4)
    if change == "size": os.pwrite(fd, b"end", 8192 + 4096 * i)
    os.fsync(fd)
END

# alone_of CHANGE: how many of 200 fsyncs were the program's own, when 180 follow such a change.
alone_of() {
  rm -f "$DATA/file"
  # Page by page: a dirty page shows all of its folio as dirty, as if somebody else had written it.
  dd if=/dev/zero of="$DATA/file" bs=4096 count=2 status=none
  durable --order-log "$SCRATCH/log" -- python3 "$SCRATCH/overwrite.py" "$DATA/file" "$1" ||
    fail "$1: status $?"
  json "$SCRATCH/report.json" 'd["order"]["alone"]'
}

alone=$(alone_of bytes)
[ "$alone" -gt 100 ] || fail "only $alone of 200 fsyncs were the program's own"
for change in mode 'mode, then bytes' times name size; do
  alone=$(alone_of "$change")
  [ "$alone" -le 20 ] || fail "$change: $alone of 200 fsyncs kept less than they should"
done
