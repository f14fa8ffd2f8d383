#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Neither the daemon nor another thread's wait keeps a closed file open, with its locks; and nobody
# opens a file on which a program has a lease. On a disk whose files the journal takes, and on one
# that is perhaps none.
. test/lib/order.bash
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
need python3
own_mounts

# Opens to be written, takes a lease, and becomes the command.
cat >"$SCRATCH/leased.py" <<'END'
import fcntl, os, sys
fd = os.open(sys.argv[1] + "/inherited", os.O_RDWR | os.O_CREAT)
os.set_inheritable(fd, True)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
os.execv(sys.argv[2], sys.argv[2:] + [str(fd)])
END

try() {
  ORDER=$1 durable --order-journal "$SCRATCH/log" -- "$PROGRAMS/order_alone" "$DATA" ||
    fail "$1, $2: status $?"
  timeout -s KILL 60 python3 "$SCRATCH/leased.py" "$DATA" "$SLUICE" --run-dir "$SCRATCH/run" run \
    --order "$1@$DATA" --order-journal "$SCRATCH/log" --no-summary -- \
    "$PROGRAMS/order_alone" "$DATA" || fail "$1, $2, a lease from before: status $?"
}
"$PROGRAMS/order_alone" "$DATA" || fail "bare: status $?"
for word in durable ordered; do try $word "$DATA"; done
own_ext4 "$DATA" || exit 0
for word in durable ordered; do try $word ext4; done
umount "$DATA"
