#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --small reads: small reads are answered from memory while the keeper holds a lease. The program
# sees no difference, whatever it and others do in between; who writes never meets a lease for
# long; and nothing old is read when the keeper or the program stops or is killed.
# timeout: 400
. test/lib/lib.sh
own_mounts
. test/libinterpose/small/runs.bash
need python3 dd

reading() { TIME=${TIME:-60} below reads "$@"; }  # DIR CMD…
buffered() { json "$report" "d['buffered']['$1']"; }

# With a second process that writes, of the job or from outside.
differ() { # DIR SEED
  compare reads random_reads "${STEPS:-80}" "$1" "$2"
  [ "$(buffered reads)" -gt 1000 ] || fail "seed $2: $(buffered reads) reads were buffered"
  breaks=$((breaks + $(buffered breaks)))
}
breaks=0
for seed in ${SEEDS:-1 2 3 4}; do differ "$DIR/reads" "$seed"; done
[ "$breaks" -gt 20 ] || fail "only $breaks leases were broken"

# Every file system where a lease says the truth. Below an overlay others may write unseen.
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  mount_disks
  for type in ext4 xfs btrfs; do differ "$DIR/$type" 5; done
  mkdir "$DIR/tmpfs"
  mount -t tmpfs none "$DIR/tmpfs" || fail 'mount tmpfs'
  differ "$DIR/tmpfs" 6
  mount_overlay
  cp "$DIR/tmpfs/one" "$DIR/overlay/one"
  reading "$DIR/overlay" dd if="$DIR/overlay/one" of=/dev/null bs=8 status=none || fail "dd: $?"
  [ "$(buffered reads)" = 0 ] || fail "of an overlay $(buffered reads) reads were buffered"
  umount "$DIR"/{overlay,tmpfs,btrfs,xfs,ext4} || fail 'something still has a file open'
fi

# A part of a file that cannot be read is not its end.
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  need filefrag losetup
  truncate -s 64M "$SCRATCH/bad.img"
  mkfs.ext4 -q -b 1024 -O ^has_journal -E lazy_itable_init=0 "$SCRATCH/bad.img" || fail mkfs.ext4
  mkdir "$DIR/bad" && disk=$(losetup -f --show "$SCRATCH/bad.img") || fail losetup
  mount "$disk" "$DIR/bad" && head -c 16000000 /dev/urandom >"$DIR/bad/f" && sync || fail bad
  first=$(filefrag -v -b1024 "$DIR/bad/f" | sed -n 's/^ *0: *[0-9. ]*: *\([0-9]*\)\.\..*/\1/p')
  umount "$DIR/bad" && blockdev --setra 8 "$disk" && mount "$disk" "$DIR/bad" || fail 'mount again'
  truncate -s $(((first + 8300) * 1024)) "$SCRATCH/bad.img"
  cat >"$SCRATCH/bad.py" <<'P'
import os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
n = 0
try:
    while part := os.read(f, 64): n += len(part)
    print(n, "end")
except OSError as e:
    print(n, os.strerror(e.errno))
P
  python3 "$SCRATCH/bad.py" "$DIR/bad/f" >"$SCRATCH/bare"
  grep -q 'Input/output error' "$SCRATCH/bare" || fail "bare: $(cat "$SCRATCH/bare")"
  reading "$DIR/bad" python3 "$SCRATCH/bad.py" "$DIR/bad/f" >"$SCRATCH/out" || fail "bad.py: $?"
  same 'a part that cannot be read'
  [ "$(buffered reads)" -gt 1000 ] || fail "$(buffered reads) reads were buffered before it"
  umount "$DIR/bad"
  losetup -d "$disk"
fi

# A lease of the program's own, when one was just asked for.
reading "$DIR" python3 -c 'import fcntl, os, sys
open(sys.argv[1], "wb").write(bytes(1 << 20))
f = os.open(sys.argv[1], os.O_RDONLY)
for _ in range(33): os.read(f, 8)
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)' "$DIR/own" || fail "a lease of its own: $?"

# 16 reads of 64 KiB stand for 131,072 of 8 bytes, also for a limit; and the descriptor is closed
# for all when it is closed: nothing holds the file system, or keeps a writer out.
head -c 1048576 /dev/urandom >"$DIR/from"
cat >"$SCRATCH/reads.py" <<'P'
import fcntl, os, sys
size = int(sys.argv[2])
f = os.open(sys.argv[1], os.O_RDONLY)
n = 0
while part := os.read(f, size): n += len(part)
os.close(f)
f = os.open(sys.argv[1], os.O_RDONLY)  # does not wait for a lease
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print(n)
P
LIMIT="read=400/s@$DIR" reading "$DIR" python3 "$SCRATCH/reads.py" "$DIR/from" 8 >"$SCRATCH/out" ||
  fail "reads.py: status $?"
[ "$(cat "$SCRATCH/out")" = 1048576 ] || fail "reads.py: $(cat "$SCRATCH/out")"
between 130000 "$(buffered reads)" 131072 'buffered reads'
between 15 "$(buffered fills)" 20 'fills'
between 50 "$(count call read calls)" 900 'reads that were metered'

# A few reads are not worth a lease, nor are the last ones of a file.
head -c 20000 "$DIR/from" >"$DIR/short"
reading "$DIR" python3 "$SCRATCH/reads.py" "$DIR/short" 64 >"$SCRATCH/out" || fail "short: $?"
[ "$(buffered reads)" = 0 ] || fail "of a short file $(buffered reads) reads were buffered"

# Programs that read only the beginning of each file soon ask for no lease.
reading "$DIR" "$BUILD/bench/pieces" parts "$DIR/from" 60 2000 >"$SCRATCH/out" || fail "parts: $?"
between 1 "$(buffered leases)" 4 'leases for the beginnings of files'

# Nor do those that move to and fro: some of these calls meet a lease.
reading "$DIR" python3 -c 'import os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
for _ in range(1000):
    for i in range(200): os.read(f, 8)
    os.lseek(f, 0, os.SEEK_SET)' "$DIR/from" || fail "moves: $?"
[ "$(buffered ended_asked)" -gt 0 ] || fail 'of one that moves: it does not say that it ended'

# In another pid namespace a row would name somebody else: no lease is asked for.
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  reading "$DIR" unshare -pf dd if="$DIR/from" of=/dev/null bs=8 status=none || fail "pids: $?"
  [ "$(buffered leases)" = 0 ] || fail "$(buffered leases) leases were asked for"
  [ "$(buffered refused_lease)" -gt 0 ] || fail 'it says nothing of it'
fi

# The keeper is killed: what another one writes is read.
keeper() {
  pgrep -f -x ".*/sluice .*--job $JOB .*" | while read -r p; do
    [ "$(cat "/proc/$p/comm" 2>/dev/null)" = sluice-leases ] && echo "$p"
  done
}
cat >"$SCRATCH/turns.py" <<'P'
import os, select, sys
f = os.open(sys.argv[1], os.O_RDONLY)
def much():
    for _ in range(3000): os.read(f, 8)
def wait():
    left = 40
    while left and not select.select([0], [], [], 0.05)[0]:
        much()
        left -= 1
    return os.read(0, 1)
much()
while wait():
    sys.stdout.write("%s\n" % (os.read(f, 4) + os.read(f, 4))[:4].decode())
    sys.stdout.flush()
    much()
P
JOB=keeps
mkfifo "$SCRATCH/turn"
exec 8<>"$SCRATCH/turn"
yes old_ | tr -d '\n' | head -c 4000000 >"$DIR/turned"
take_turns() {
  reading "$DIR" python3 -u "$SCRATCH/turns.py" "$DIR/turned" <"$SCRATCH/turn" \
    >"$SCRATCH/turns"
}
take_turns 8>&- &
job=$!
has_turns() { [ "$(wc -l <"$SCRATCH/turns")" = "$1" ]; }
fills=0
fills() { json "$SCRATCH/stat.json" "d['buffered']['fills']"; }
holds() { # more than it had
  "$SLUICE" --run-dir "$SCRATCH/run" --json stat "$JOB" >"$SCRATCH/stat.json" 2>/dev/null &&
    [ "$(fills)" -gt "$fills" ]
}
turn() { # writes words of four letters over the file, and lets the program go on
  yes "$1" | tr -d '\n' | head -c 4000000 | dd of="$DIR/turned" conv=notrunc bs=4000000 \
    iflag=fullblock status=none || fail 'it cannot be written'
  echo >&8
}
until_true holds || fail 'nothing was buffered'
turn new1
until_true has_turns 1 || fail 'it does not go on'
[ "$(tail -n 1 "$SCRATCH/turns")" = new1 ] || fail "read $(tail -n 1 "$SCRATCH/turns")"
fills=$(fills)
until_true holds || fail 'nothing was buffered after it was written'
first=$(keeper)
[ -n "$first" ] || fail 'nobody keeps'
kill -KILL "$first"
turn new2
until_true has_turns 2 || fail 'it does not go on'
[ "$(tail -n 1 "$SCRATCH/turns")" = new2 ] || fail "after a kill: $(tail -n 1 "$SCRATCH/turns")"
exec 8>&-
wait "$job" || fail "status $?"

# A keeper that stops: who writes waits as long as the kernel says, and nothing old is read.
JOB=stops fills=0
exec 8<>"$SCRATCH/turn"
before=$(cat /proc/sys/fs/lease-break-time)
if [ -n "${HAS_OWN_MOUNTS:-}" ] && [ "$(id -u)" = 0 ] && [ "$before" -ge 4 ]; then
  yes old_ | tr -d '\n' | head -c 4000000 >"$DIR/turned"
  take_turns 8>&- &
  job=$!
  until_true holds || fail 'nothing was buffered'
  kill -STOP "$(keeper)"
  turn new3
  until_true has_turns 1 || fail 'it does not go on'
  [ "$(tail -n 1 "$SCRATCH/turns")" = new3 ] || fail "after a stop: $(tail -n 1 "$SCRATCH/turns")"
  kill -CONT "$(keeper)"
  exec 8>&-
  wait "$job" || fail "status $?"
fi

# The same for reads into memory that libc maps and unmaps.
mapped='import os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
while len(os.read(f, 16)) == 16: pass'
MALLOC=pymalloc reading "$DIR" python3 -c "$mapped" "$DIR/from" || fail "mapped: $?"
[ "$(buffered reads)" -lt 10000 ] || fail "into mapped memory $(buffered reads) reads were answered"
reading "$DIR" python3 -c "$mapped" "$DIR/from" || fail "into the heap: $?"
[ "$(buffered reads)" -gt 30000 ] || fail "into the heap $(buffered reads) reads were answered"

# One that copies its own number by way of its process, and a number that came with a message.
cat >"$SCRATCH/copied.py" <<'P'
import ctypes, os, socket, sys
expected, at = open(sys.argv[1], "rb").read(), 0
if sys.argv[2] == "getfd":
    f = os.open(sys.argv[1], os.O_RDONLY)
    libc = ctypes.CDLL(None)
    other = libc.syscall(438, os.pidfd_open(os.getpid()), f, 0)  # pidfd_getfd
    assert other > 0, other
    read_other = lambda: os.read(other, 10)
else:
    ours, theirs = socket.socketpair()
    turn, answer = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(turn[1])
        f = os.open(sys.argv[1], os.O_RDONLY)
        socket.send_fds(theirs, [b"x"], [f])
        while os.read(turn[0], 1): os.write(answer[1], os.read(f, 10))
        os._exit(0)
    f = os.open(".", os.O_RDONLY)
    os.listdir(f)  # its copy, which closedir() closes, has the number after it
    os.close(f)
    os.open(".", os.O_RDONLY)
    f = socket.recv_fds(ours, 1, 1)[1][0]
    read_other = lambda: (os.write(turn[1], b"x"), os.read(answer[0], 10))[1]
for i in range(6000):
    part = read_other() if i % 300 == 299 else os.read(f, 10)
    assert part == expected[at:at + 10], (i, part)
    at += 10
P
for how in getfd message; do
  python3 "$SCRATCH/copied.py" "$DIR/from" "$how" || fail "copied, $how, bare: $?"
  reading "$DIR" python3 "$SCRATCH/copied.py" "$DIR/from" "$how" || fail "copied, $how: $?"
done

# Who is killed leaves no lease behind.
JOB=killed
reading "$DIR" python3 -c '
import os, sys, time
f = os.open(sys.argv[1], os.O_RDONLY)
for _ in range(3000): os.read(f, 8)
print(os.getpid(), flush=True)
time.sleep(60)' "$DIR/from" >"$SCRATCH/pid" &
job=$!
is_told() { [ -s "$SCRATCH/pid" ]; }
until_true is_told || fail 'it does not read'
kill -KILL "$(cat "$SCRATCH/pid")"
wait "$job" 2>/dev/null
python3 -c '
import fcntl, os, sys
f = os.open(sys.argv[1], os.O_RDWR | os.O_NONBLOCK)
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)' "$DIR/from" || fail 'its lease is still there'

# Files of others cannot be leased; programs that know nothing of it.
unset JOB
work() {
  dd if="$DIR/from" of="$DIR/copy" bs=7 status=none && cksum <"$DIR/copy" || exit 1
  python3 -c 'import sys
f = open(sys.argv[1], "rb", buffering=0)
print(sum(f.read(32)[0] for _ in range(30000)))' "$DIR/from" || exit 1
  bash -c 'while read -r -n 3 word; do :; done <"$1"; echo "$word"' bash "$DIR/short" || exit 1
}
export -f work
export DIR
bash -c work >"$SCRATCH/bare" 2>/dev/null || fail 'bare'
reading "$DIR" bash -c work >"$SCRATCH/out" 2>/dev/null || fail "programs: status $?"
same programs
[ "$(buffered reads)" -gt 100000 ] || fail "of programs $(buffered reads) reads were buffered"
exit 0
