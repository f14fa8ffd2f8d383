#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A file system fails a commit, and tells it to the fsync of somebody else: what the journal asks
# for says 0 after that. It has no inode for a file of the journal's own either. The journal finds
# out all the same, and keeps what it has.
set -u
. test/lib/journals.bash
need e2fsck
umount "$SCRATCH/data"
mkdir "$SCRATCH/disk"
mount -t tmpfs -o size=40M none "$SCRATCH/disk"
truncate -s 400M "$SCRATCH/disk/image" # more than there is
mkfs.ext4 -q -N 256 -J size=64 -E lazy_itable_init=1,lazy_journal_init=1 "$SCRATCH/disk/image"
mount -o loop "$SCRATCH/disk/image" "$SCRATCH/data" || skip 'needs loop devices'
over() {
  pkill -9 -u "$bob" -f "$SCRATCH/"
  pkill -9 -u "$ann" -f "$SCRATCH/"
  kill -9 "${pids[@]}" 2>/dev/null
  wait
  umount -l "$SCRATCH/data" "$SCRATCH/disk"
  rm -rf "$SCRATCH"
}
trap over EXIT
python=/usr/bin/python3
place="$SCRATCH/data/his"
chmod 777 "$SCRATCH/data"
install -d -m 755 -o "$bob" "$place"
install -d -m 755 -o "$ann" "$SCRATCH/data/hers"
install -m 644 -o "$bob" /dev/null "$place/db"
install -o "$ann" /dev/null "$SCRATCH/data/hers/x"
sync -f "$place"
as "$ann" sh -c 'i=0; while : >"$0/$i"; do i=$((i+1)); done' "$SCRATCH/data/hers" 2>/dev/null
mkdir -m 777 "$SCRATCH/talk"
cat >"$SCRATCH/work.py" <<'END'
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
def grow(blocks):
    for block in blocks:
        os.pwrite(fd, b"n" * 4096, block * 4096)
        os.fsync(fd)
def wait_for(name):
    while not os.path.exists(f"{sys.argv[2]}/{name}"):
        time.sleep(0.05)
wait_for("served")
grow(range(40))
wait_for("home")
grow(range(40, 240))
open(sys.argv[2] + "/acknowledged", "w").close()
wait_for("end")
END
cat >"$SCRATCH/first.py" <<'END'
"""FILE OWN TALK: has what is dirty of FILE written, and syncs OWN: what failed is told here."""
import ctypes, os, sys, time
call = ctypes.CDLL(None)
call.sync_file_range(os.open(sys.argv[1], os.O_RDONLY), ctypes.c_long(0), ctypes.c_long(0), 7)
own = os.open(sys.argv[2], os.O_RDWR)
os.pwrite(own, b"a", 0)
open(sys.argv[3] + "/written", "w").close()
while not os.path.exists(sys.argv[3] + "/full"):
    time.sleep(0.05)
try:
    os.fsync(own)
except OSError as e:
    open(sys.argv[3] + "/told", "w").write(str(e))
END
start node --role node --name n1 --run-dir "$RUN" --policy "$SCRATCH/policy.json" \
  --journal "$SCRATCH/log" --journal-size 16MiB --journal-idle 1s
as "$bob" "$SLUICE" --run-dir "$RUN" run --job his --no-summary -- \
  "$python" "$SCRATCH/work.py" "$place/db" "$SCRATCH/talk" 2>"$SCRATCH/err" &
seen() { # EXPR over what sluice order says, d
  "$SLUICE" --run-dir "$RUN" --json order >"$SCRATCH/order.json" 2>/dev/null &&
    json "$SCRATCH/order.json" "$1"
}
is_served() { [ "$(seen '[j["served"] for j in d["jobs"]]')" = '[True]' ]; }
until_true 60 is_served || fail "he is not served: $(cat "$SCRATCH/order.json" "$LOG")"
touch "$SCRATCH/talk/served"
is_home() { [ "$(seen 'sum(j["checkpoints"] for j in d["journals"])')" -ge 1 ]; }
until_true 60 is_home || fail "nothing comes home: $(cat "$SCRATCH/order.json" "$LOG")"
touch "$SCRATCH/talk/home"
until_true 60 test -e "$SCRATCH/talk/acknowledged" || fail "$(cat "$SCRATCH/err" "$LOG")"
as "$ann" "$python" "$SCRATCH/first.py" "$place/db" "$SCRATCH/data/hers/x" "$SCRATCH/talk" &
until_true 20 test -e "$SCRATCH/talk/written" || fail 'she writes nothing'
head -c 100M /dev/zero >"$SCRATCH/disk/full" 2>/dev/null
touch "$SCRATCH/talk/full"
until_true 60 test -s "$SCRATCH/talk/told" || skip 'no commit failed here'
touch "$SCRATCH/talk/end"
is_told() { grep -q 'the journal is kept\|journal has ended' "$LOG"; }
until_true 60 is_told || fail "nothing is told of his journal: $(cat "$LOG")"
stop "$PID" 2>/dev/null

umount "$SCRATCH/data" || umount -l "$SCRATCH/data"
rm "$SCRATCH/disk/full"
is_free() { e2fsck -p "$SCRATCH/disk/image" >"$SCRATCH/out" 2>&1 || [ $? = 1 ]; }
until_true 20 is_free || fail "e2fsck: $(cat "$SCRATCH/out")"
mount -o loop "$SCRATCH/disk/image" "$SCRATCH/data" || fail 'it cannot be mounted again'
log="$SCRATCH/log/$bob/own/journal"
if [ -s "$log" ]; then
  "$SLUICE" recover "$log" --replay --set-aside >"$SCRATCH/out" 2>&1 || fail "$(cat "$SCRATCH/out")"
fi
head -c 983040 /dev/zero | tr '\0' n | cmp -s - "$place/db" ||
  fail "lost: $(stat -c %s "$place/db") bytes are there; $(cat "$SCRATCH/out"); $(tail -n 3 "$LOG")"
exit 0
