#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a job mounts below a durable directory it can unmount: its files have syncs of their own.
# With a target of its own they have the journal.
. test/lib/order.bash
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
own_mounts
own_ext4 "$DATA" || skip 'needs root, mkfs.ext4 and loop devices'

cat >"$SCRATCH/write" <<'END'
for file in 1 2 3 4; do
  for _ in 1 2 3; do
    dd if=/dev/zero of="$1/file$file" bs=4k count=10 conv=fsync,notrunc status=none || exit 1
  done &
done
wait
END
cat >"$SCRATCH/mount" <<'END'
cd "$1" && truncate -s 30M image && mkfs.ext4 -q image && mkdir -p below &&
  mount -o loop image below && sh "$2" below && umount below
END
syncs() { json "$SCRATCH/report.json" "d['order']['$1']"; }

sh "$SCRATCH/mount" "$DATA" "$SCRATCH/write" || fail 'bare: it cannot be unmounted'
for word in durable ordered; do
  ORDER=$word durable --order-journal "$SCRATCH/log" -- \
    sh "$SCRATCH/mount" "$DATA" "$SCRATCH/write" ||
    fail "$word: it cannot be unmounted"
  [ "$(syncs alone)" -ge 12 ] || fail "$word: $(syncs alone) syncs of 12 were the program's own"
done

mount -o loop "$DATA/image" "$DATA/below" || fail 'cannot mount it again'
durable --order "durable@$DATA/below" --order-journal "$SCRATCH/log" -- \
  sh "$SCRATCH/write" "$DATA/below" || fail "a target of its own: status $?"
[ "$(syncs answered)" -ge 6 ] || fail "a target of its own: $(cat "$SCRATCH/report.json")"
umount "$DATA/below" "$DATA" || fail 'the daemon is gone, and it is busy'
