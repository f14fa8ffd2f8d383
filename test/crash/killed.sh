#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# Who ends these tests by force, disks and all, leaves no file system behind that hangs, and with it
# each sync of the machine.
. test/lib/order.bash
need mkfs.xfs
need_broken_disk

work='cp -r daemon "$DISK"; : >"$SCRATCH/there"; while cp -r daemon "$DISK/$((n += 1))"; do :; done'
setsid "$power_cut" disk xfs 0 sh -c "$work" &
group=$!
until_true 60 test -e "$SCRATCH/there" || fail 'it does not begin'
kill -KILL -- -"$group"
wait "$group" && fail 'it was not killed'
timeout 120 sync || fail 'a sync of the machine hangs'
