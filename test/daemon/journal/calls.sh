#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# What a mail program's loop costs in system calls: the daemon, whose looks for removed files go by
# time and are not counted, and the program.
. test/lib/order.bash
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
need strace
own_mounts
own_ext4 "$DATA" || skip 'needs root, mkfs.ext4 and loop devices'
strace -o "$SCRATCH/try" true 2>/dev/null || skip 'cannot trace here'

cat >"$SCRATCH/mail.py" <<'END'
import os, sys
place, loops = sys.argv[1], int(sys.argv[2])
for i in range(loops):
    path = f"{place}/m{i % 40}"
    try: os.unlink(path)
    except FileNotFoundError: pass
    for flags in os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDWR:
        fd = os.open(path, flags)
        os.pwrite(fd, b"m" * 9000, os.lseek(fd, 0, os.SEEK_END))
        os.fsync(fd)
        os.close(fd)
END
loops=400
mkfifo "$SCRATCH/go"
"$SLUICE" --run-dir "$SCRATCH/run" run --order "durable@$DATA" --order-journal "$SCRATCH/log" \
  --report "$SCRATCH/report.json" --no-summary -- \
  sh -c 'read -r _ <"$1"; exec python3 "$2" "$3" "$4"' - \
  "$SCRATCH/go" "$SCRATCH/mail.py" "$DATA" $loops &
sluice=$!
daemon=$(log_daemon $sluice) || exit 1
strace -f -qq -o "$SCRATCH/calls" -p "$daemon" &
tracer=$!
until_true 30 test -s "$SCRATCH/calls" || skip 'cannot attach'
echo >"$SCRATCH/go"
wait $sluice || fail "status $?"
wait $tracer
synced=$(json "$SCRATCH/report.json" 'd["order"]["answered"]')
[ "$synced" -ge $((loops * 3 / 2)) ] || fail "the daemon made $synced of $((loops * 2)) syncs"

calls() { grep -cE "^[0-9]+ +($1)\(" "$SCRATCH/calls"; }
# They need 7; a busy machine, and what is done now and then, add some.
of_files=$(calls 'statx|openat|openat2|readlink|readlinkat|name_to_handle_at|[a-z]*xattr|geteuid')
[ "$of_files" -le $((loops * 10)) ] || fail "$of_files questions about files in $loops loops"

durable --order-journal "$SCRATCH/log" -- strace -f -qq -o "$SCRATCH/calls" \
  python3 "$SCRATCH/mail.py" "$DATA" $loops || fail "status $?"
# It needs 6: what had the name, what was made, and of each descriptor where it is and what to sync.
looks=$(calls statx)
[ "$looks" -le $((loops * 13 / 2 + 100)) ] || fail "$looks looks at files in $loops loops"
