#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The journal takes files of ext4 with a journal, and of xfs. Elsewhere each sync is the program's
# own, after the first without asking; and doctor says so.
. test/lib/order.bash
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
own_mounts
own_ext4 "$DATA" || skip 'needs root, mkfs.ext4 and loop devices'

cat >"$SCRATCH/append.py" <<'END'
import os, sys
fd = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
for i in range(100):
    os.write(fd, b"text")
    os.fsync(fd)
directory = os.open(sys.argv[1], os.O_RDONLY)
for i in range(100): os.fsync(directory)
END
own_of() {
  durable --order-journal "$SCRATCH/log" -- python3 "$SCRATCH/append.py" "$DATA" ||
    fail "$1: status $?"
  json "$SCRATCH/report.json" 'd["order"]["alone"]'
}

"$SLUICE" doctor "$DATA/" >"$SCRATCH/said" || fail "doctor: $(cat "$SCRATCH/said")"
own=$(own_of ext4)
[ "$own" -lt 110 ] || fail "$own of 200 syncs on ext4 were the program's own"

umount "$DATA"
own_ext4 "$DATA" -O ^has_journal || fail 'an ext4 without a journal'
"$SLUICE" doctor "$DATA/" >"$SCRATCH/said" && fail "doctor: $(cat "$SCRATCH/said")"
grep -q "the kernel's own" "$SCRATCH/said" || fail "doctor: $(cat "$SCRATCH/said")"
own=$(own_of 'without a journal')
[ "$own" -ge 198 ] || fail "only $own of 200 syncs without a journal were the program's own"
