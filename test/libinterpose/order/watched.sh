#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who watches a directory (inotify) sees one open of each file of the journal besides the program's,
# and none where files are not for the journal.
. test/lib/order.bash
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
need python3
own_mounts

# How often its file is opened while it is written and synced. It looks after each sync, for the
# kernel makes one of two events that are alike.
cat >"$SCRATCH/watch.py" <<'END'
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
opens = 0

def look():
    global opens
    try:
        text = os.read(watch, 1 << 16)
    except BlockingIOError:
        return
    while text:
        length = struct.unpack_from("iIII", text)[3]
        opens += text[16:16 + length].rstrip(b"\0") == b"watched"
        text = text[16 + length:]

watch = libc.inotify_init1(os.O_NONBLOCK)
if libc.inotify_add_watch(watch, sys.argv[1].encode(), 0x20) < 0:  # IN_OPEN
    sys.exit("cannot watch")
fd = os.open(sys.argv[1] + "/watched", os.O_RDWR | os.O_CREAT)
for i in range(100):
    look()
    os.pwrite(fd, b"text", 4096 * (i % 3))
    os.fsync(fd)
os.close(fd)
look()
print(opens)
END
try() { # OPENS WHERE
  local word opens
  for word in durable ordered; do
    opens=$(ORDER=$word durable --order-journal "$SCRATCH/log" -- \
      python3 "$SCRATCH/watch.py" "$DATA") || fail "$2, $word: status $?"
    [ "$opens" -le "$1" ] || fail "$2, $word: $opens opens, not $1"
    rm "$DATA/watched"
  done
  umount "$DATA"
}
own_ext4 "$DATA" || skip 'needs root, mkfs.ext4 and loop devices'
try 2 'a journal'
own_ext4 "$DATA" -O ^has_journal || fail 'an ext4 without a journal'
try 1 'no journal'
