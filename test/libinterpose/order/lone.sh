#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# A program that alone overwrites a file syncs it itself; but not when something is to be kept that
# an fdatasync does not keep, or when the file grew. So it does a file in one large folio, of which
# nobody can tell who wrote it, and new files where the directory is synced after each.
. test/lib/order.bash
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
    if change == "mode, and back":
        os.fchmod(fd, 0o600 if i % 2 else 0o644)
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
  durable --order-journal "$SCRATCH/log" -- python3 "$SCRATCH/overwrite.py" "$DATA/file" "$1" ||
    fail "$1: status $?"
  json "$SCRATCH/report.json" 'd["order"]["alone"]'
}

alone=$(alone_of bytes)
[ "$alone" -gt 100 ] || fail "only $alone of 200 fsyncs were the program's own"
for change in mode 'mode, then bytes' 'mode, and back' times name size; do
  alone=$(alone_of "$change")
  [ "$alone" -le 20 ] || fail "$change: $alone of 200 fsyncs kept less than they should"
done

rm -f "$DATA/file"
dd if=/dev/zero of="$DATA/file" bs=1M count=4 status=none
durable --order-journal "$SCRATCH/log" -- python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for i in range(200):
    os.pwrite(fd, b"%4d" % i, i * 4096)
    os.fsync(fd)' "$DATA/file" || fail "a large folio: status $?"
alone=$(json "$SCRATCH/report.json" 'd["order"]["alone"]')
[ "$alone" -gt 100 ] || fail "only $alone of 200 fsyncs of a large folio were the program's own"

cat >"$SCRATCH/journal.py" <<'END'
import os, sys
place, synced = sys.argv[1], sys.argv[2] == "synced"
directory = os.open(place, os.O_RDONLY)
for i in range(100):
    fd = os.open(place + "/journal", os.O_RDWR | os.O_CREAT | os.O_EXCL)
    for text in b"bytes", b"head":
        os.pwrite(fd, text, 0)
        os.fsync(fd)
    if synced or i % 50 == 0: os.fsync(directory)
    os.close(fd)
    os.unlink(place + "/journal")
END
own_of() {
  mkdir -p "$DATA/$1"
  durable --order-journal "$SCRATCH/log" -- python3 "$SCRATCH/journal.py" "$DATA/$1" "$1" ||
    fail "$1: status $?"
  json "$SCRATCH/report.json" 'd["order"]["alone"]'
}
own=$(own_of synced)
[ "$own" -gt 200 ] || fail "only $own of 300 syncs of a directory and its new files were its own"
own=$(own_of seldom)
[ "$own" -le 20 ] || fail "$own of 202 syncs past the log, in a directory that is synced seldom"
