#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files of a stranger, sent beside his words, whose release never ends: their file server takes the
# write and does not answer. The daemon goes on serving all others. It can be ended and started
# again meanwhile. This holds on a kernel before 6.16 too, which lets everybody send them.
set -u
. test/lib/site.bash
two_users
need python3 flock
[ -w /dev/fuse ] || skip "no FUSE here"
mkdir -m 755 "$SCRATCH"/{n1,mnt}
mkdir -m 777 "$SCRATCH/open"
policy "$SCRATCH/p.json"
cat >"$SCRATCH/old.py" <<'P'
# Runs a program as on a kernel that does not know SO_PASSRIGHTS.
import ctypes, os, platform, struct, sys
number = {"x86_64": 54, "aarch64": 208}[platform.machine()]
rules = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 32), (0x15, 0, 1, 83),
         (0x06, 0, 0, 0x50000 | 92), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *r) for r in rules))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(rules), ctypes.addressof(code)))
if ctypes.CDLL(None, use_errno=True).prctl(22, 2, program, 0, 0):
    sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
P
cat >"$SCRATCH/attack.py" <<'P'
# SOCKET FILE ARMED: says how many files the daemon's sockets took.
import os, socket, sys, time
keep = os.open(sys.argv[2], os.O_RDWR)
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(sys.argv[1])
    return s
hello = b'{"verb":"hello"}'
served = [connect() for _ in range(3)]
for s in served:
    s.send(hello)
    assert b'"role"' in s.recv(1 << 16)
print("served", flush=True)
while not os.path.exists(sys.argv[3] + ".go"):
    time.sleep(0.01)
taken = 0
def give(s):
    global taken
    file = os.open(sys.argv[2], os.O_RDWR)
    try:
        socket.send_fds(s, [hello], [file])
        taken += 1
    except PermissionError:
        pass
    os.close(file)
for s in served:
    give(s)
for _ in range(5):  # some have no place, and all hang up before they are accepted
    s = connect()
    give(s)
    s.close()
open(sys.argv[3], "w").close()
os.pwrite(keep, b"dirty", 0)
print(taken, flush=True)
os._exit(0)
P
chmod 644 "$SCRATCH"/*.py
armed=$SCRATCH/open/armed
over() {
  umount -f "$SCRATCH/mnt" 2>/dev/null || umount -l "$SCRATCH/mnt" 2>/dev/null
  [ -z "${server:-}" ] || kill -9 "$server" 2>/dev/null
  wait "${server:-}" 2>/dev/null
}
trap 'over; kill -9 "${pids[@]}" 2>/dev/null; rm -rf "$SCRATCH"' EXIT
mount_it() {
  rm -f "$armed"
  python3 test/lib/hung_fuse.py "$SCRATCH/mnt" "$armed" 2>"$SCRATCH/fuse.log" &
  server=$!
  until_true 20 test -e "$SCRATCH/mnt/f" || skip "no FUSE here: $(cat "$SCRATCH/fuse.log")"
}
is_served() { # once, by a connection of her own
  as $ann timeout 20 /usr/bin/python3 - "$SCRATCH/n1/sluiced.sock" <<'P'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(b'{"verb":"hello"}')
sys.exit(b'"role"' not in s.recv(1 << 16))
P
}
run() { # NAME PROGRAM...: a node
  local name=$1
  shift
  SLUICED=$1 start "$name" "${@:2}" --role node --name n1 --policy "$SCRATCH/p.json" \
    --run-dir "$SCRATCH/n1"
  is_served || fail "$name: nobody is served"
}
# The daemon stands still meanwhile, so all files are dirty before it takes one. He hangs at his own
# end, by the file that he keeps.
attack() {
  rm -f "$armed.go" "$SCRATCH/said" # of the one before
  as $bob /usr/bin/python3 "$SCRATCH/attack.py" "$SCRATCH/n1/sluiced.sock" "$SCRATCH/mnt/f" \
    "$armed" >"$SCRATCH/said" 2>"$SCRATCH/err" &
  pids+=($!)
  until_true 60 grep -qs served "$SCRATCH/said" || fail "before: $(cat "$SCRATCH/err")"
  kill -STOP "$PID"
  until_true 20 grep -q '^State:.T' "/proc/$PID/status" || fail 'the daemon does not stand still'
  : >"$armed.go"
  until_true 60 grep -q '^[0-9]' "$SCRATCH/said" || fail "the attack: $(cat "$SCRATCH/err")"
  kill -CONT "$PID"
  taken=$(tail -n 1 "$SCRATCH/said")
}
is_stuck() { cat "/proc/$PID/task"/*/stat 2>/dev/null | grep -q ') D '; }
is_free() { flock -n "$SCRATCH/n1/sluiced.lock" true; }
with_old=(/usr/bin/python3 "$SCRATCH/old.py" "$SLUICED")

# As the kernel is: a new one lets nobody send any.
mount_it
run new "$SLUICED"
attack
knows=$(python3 -c 'import socket
try: print(socket.socketpair()[0].getsockopt(socket.SOL_SOCKET, 83))
except OSError: print(0)')
[ "$knows" = 0 ] || [ "$taken" = 0 ] || fail "the daemon's socket took $taken files"
for _ in 1 2 3; do is_served || fail 'as the kernel is: nobody is served'; done
kill -9 "$PID"
until_true 20 is_free || fail 'as the kernel is: its lock is kept'
over

# As on an old one. Neither a daemon that is killed nor one that is told to end keeps its lock.
for how in KILL TERM; do
  mount_it
  run "old-$how" "${with_old[@]}"
  attack
  [ "$taken" -gt 3 ] || fail "only $taken files were sent: this test shows nothing"
  for _ in 1 2 3; do is_served || fail "$how: nobody is served"; done
  until_true 20 is_stuck || fail 'no thread of it waits for the file server: this shows nothing'
  kill -s $how "$PID"
  until_true 20 is_free || fail "$how: a thread of it keeps the lock"
  run "next-$how" "$SLUICED"
  kill -9 "$PID"
  until_true 20 is_free || fail "$how: the next one keeps the lock"
  over
done
exit 0
