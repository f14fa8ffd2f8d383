#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# A neighbour who may read a user's file and list his directory holds the locks of both: FIEMAP and
# getdents do while they write to memory, and hers is a file of a FUSE that does not answer. The
# recovery of his journal leaves these as they are, keeps what it has of them, and brings the rest
# home. She holds the root of their file system as well, which keeps nobody from syncing it.
set -u
. test/lib/lib.sh
own_mounts
two_users
truncate -s 256M "$SCRATCH/image" # room for two journals
mkfs.ext4 -q "$SCRATCH/image" 2>/dev/null && mount -o loop "$SCRATCH/image" "$SCRATCH/data" ||
  skip 'needs mkfs.ext4 and loop devices'
. test/lib/hung_memory.bash
over() {
  end_memory
  pkill -9 -u "$bob" -f "$SCRATCH/"
  umount -l "$SCRATCH/data"
  rm -rf "$SCRATCH"
}
trap over EXIT
python=/usr/bin/python3
place="$SCRATCH/data/his"
install -d -m 755 -o "$bob" "$place" "$place/dir" "$place/dir/deep" "$place/free" "$SCRATCH/run"
cat >"$SCRATCH/work.py" <<'END'
import os, sys
os.umask(0o022)
def grow(name, blocks):
    fd = os.open(f"{sys.argv[1]}/{name}", os.O_RDWR | os.O_CREAT, 0o644)
    for block in blocks:
        os.pwrite(fd, name[-1].encode() * 4096, block * 4096)
        os.fsync(fd)
# The first file of a directory is synced with it.
for name in ("file", "dir/first", "dir/lost", "dir/deep/first", "dir/deep/lost",
             "free/first", "free/lost"):
    grow(name, range(40))
open(sys.argv[1] + "/done", "w").close()
grow("busy", range(10000))  # or what is at home by now would leave the journal
END
cat >"$SCRATCH/hold.py" <<'END'
"""PLACE MEMORY READY: once READY is gone, lists PLACE/dir and asks for the blocks of PLACE/file."""
import ctypes, mmap, os, struct, sys, threading, time
call = ctypes.CDLL(None)
getdents64 = {"x86_64": 217, "aarch64": 61}[os.uname().machine]
fiemap = 0xC020660B
call.mmap.restype = ctypes.c_void_p
directory = os.open(sys.argv[1] + "/dir", os.O_RDONLY | os.O_DIRECTORY)
root = os.open(sys.argv[1] + "/..", os.O_RDONLY | os.O_DIRECTORY)  # of its file system
file = os.open(sys.argv[1] + "/file", os.O_RDONLY)
hung = os.open(sys.argv[2], os.O_RDWR)
page = 4096
def map_at(address, length, flags, of):  # to be read and written
    return call.mmap(ctypes.c_void_p(address), ctypes.c_size_t(length), 3, flags, of,
                     ctypes.c_long(0))
at = map_at(None, 16 * page, 0x22, -1)
assert map_at(at + page, 15 * page, 0x11, hung) == at + page
# Its answer begins where the hung memory does.
ctypes.memmove(at + page - 32, struct.pack("=QQIIII", 0, 1 << 30, 0, 0, 8, 0), 32)
while os.path.exists(sys.argv[3]):
    time.sleep(0.02)
for held, to in ((directory, at + 8 * page), (root, at + 9 * page)):
    threading.Thread(target=call.syscall,
                     args=(getdents64, held, ctypes.c_void_p(to), page)).start()
call.ioctl(file, ctypes.c_ulong(fiemap), ctypes.c_void_p(at + page - 32))
END

as "$bob" "$SLUICE" --run-dir "$SCRATCH/run" run --order "durable@$place" -- \
  "$python" "$SCRATCH/work.py" "$place" 2>"$SCRATCH/err" &
run=$!
until_true 60 test -e "$place/done" || fail "he does not work: $(cat "$SCRATCH/err")"
all="$run $(pgrep -u "$bob" -f "$SCRATCH/" | tr '\n' ' ')"
# shellcheck disable=SC2086
kill -STOP $all && kill -9 $all
wait $run 2>/dev/null
log=$(echo "$place"/.sluice-order.*.log)
[ -s "$log" ] || fail "no journal: $(ls -la "$place")"
rm "$place/dir/lost" "$place/dir/deep/lost" "$place/free/lost"  # as if the disk had not had them
sync -f "$place"
is_free() { umount "$SCRATCH/data" 2>/dev/null; }
until_true 20 is_free && mount -o loop "$SCRATCH/image" "$SCRATCH/data" || fail 'mount again'

hold fiemap "$place"
lists() { [ "$(cat /proc/"$holder"/task/*/stack | grep -c iterate_dir)" = 2 ]; }
until_true 20 lists || fail 'the directories are not held'
recover() { timeout 200 "$SLUICE" recover "$@" >"$SCRATCH/out" 2>&1; }
recover "$log" --replay
[ $? = 125 ] || fail "held: $(cat "$SCRATCH/out")"
grep -q 'somebody holds the lock of it' "$SCRATCH/out" ||
  grep -q 'Timer expired' "$SCRATCH/out" || fail "why: $(cat "$SCRATCH/out")"
# Links that lead nowhere are in nobody's way.
for generation in {1..9}; do ln -s "$SCRATCH/nothing" "$log.kept-$generation"; done
recover "$log" --replay --set-aside || fail "set aside: $(cat "$SCRATCH/out")"
right() { head -c 163840 /dev/zero | tr '\0' "${1: -1}" | cmp -s - "$place/$1"; }
right free/lost || fail "the rest is not home: $(cat "$SCRATCH/out") $(ls -lR "$place")"
grep -q 'holds the lock' "$SCRATCH/out" || fail "nobody is told: $(cat "$SCRATCH/out")"
kept=$(find "$place" -maxdepth 1 -name '*.kept-*' -type f)
[ -s "$kept" ] || fail "nothing is kept: $(ls -la "$place") $(cat "$SCRATCH/out")"

end_memory
truncate -s 4096 "$place/file" # the rest is in the kept one
# Who may have no more processes is told that, and nothing else of his files.
setpriv --reuid="$bob" --clear-groups --inh-caps=+dac_read_search \
  --ambient-caps=+dac_read_search bash -c 'ulimit -u 1; exec "$@"' - \
  "$SLUICE" recover "$kept" --replay --overwrite >"$SCRATCH/out" 2>&1
[ $? = 125 ] && grep -q 'no process to change files' "$SCRATCH/out" &&
  [ -s "$kept" ] || fail "no process: $(cat "$SCRATCH/out")"
recover "$kept" --replay --overwrite || fail "kept: $(cat "$SCRATCH/out")"
for name in file dir/lost dir/deep/lost; do
  right "$name" || fail "$name: $(cat "$SCRATCH/out") $(ls -lR "$place")"
done
exit 0
