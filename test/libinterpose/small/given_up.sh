#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program sets an alarm because a server may not answer, and the call ends with EINTR. The library
# asks that server nothing more, so the program goes on, whatever it had leased before.
. test/libinterpose/small/runs.bash
own_mounts
[ -e /dev/fuse ] || skip 'needs /dev/fuse'

cat >"$SCRATCH/late.py" <<'P'
import os, signal, sys
class Late(Exception): pass
def ring(*_): raise Late
signal.signal(signal.SIGALRM, ring)
if len(sys.argv) > 3:  # until its file was leased
    writes = sys.argv[4] == "strict"
    with open(sys.argv[3], "w") as to: to.write("12345678901\n" * 2000)
    f = os.open(sys.argv[3], os.O_WRONLY if writes else os.O_RDONLY)
    held = f":{os.fstat(f).st_ino} "
    def is_leased(): return any("LEASE" in l and held in l for l in open("/proc/locks"))
    more = 3  # the lease has come, and what follows makes use of it
    while more:
        os.lseek(f, 0, os.SEEK_END if writes else os.SEEK_SET)
        for _ in range(2000): os.write(f, b"12345678901\n") if writes else os.read(f, 12)
        more -= is_leased()
try:
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    if sys.argv[2] == "open": os.open(sys.argv[1], os.O_RDONLY)
    else: os.truncate(sys.argv[1], 1)
except Late:
    print("goes on")
P
mkdir "$DIR/mount"
is_mounted() { grep -q " $DIR/mount fuse" /proc/self/mounts; }
# tries CALL WORD [LEASED-FILE WORD]
tries() {
  local call=$1 word=$2
  shift 2
  "$PROGRAMS/fuse_interrupts" "$DIR/mount" & server=$!
  trap 'umount -l "$DIR/mount" 2>/dev/null; kill -KILL $server 2>/dev/null' EXIT
  until_true is_mounted || skip 'no FUSE here'
  said=$(TIME=30 below "$word" "$DIR" python3 "$SCRATCH/late.py" "$DIR/mount/file" "$call" "$@")
  [ "$said" = 'goes on' ] || fail "$call, $word $*: $said"
  kill -KILL "$server"
  umount -l "$DIR/mount"
}
saved='sum((d.get(k) or {}).get(what, 0)
  for k, what in (("gathered", "writes"), ("buffered", "reads")))'
for word in strict reads; do
  for call in open truncate; do
    tries $call $word
    tries $call $word "$DIR/leased" $word
    [ "$(json "$report" "$saved")" -gt 0 ] || fail "$call, $word: nothing was leased"
  done
done

# A stranger's lease is waited for as natively, and no longer.
cat >"$SCRATCH/stranger.py" <<'P'
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
while True: signal.pause()
P
for call in open truncate; do
  : >"$SCRATCH/told"
  python3 "$SCRATCH/stranger.py" "$DIR/held" >"$SCRATCH/told" & server=$!
  until_true grep -q held "$SCRATCH/told" || fail 'the stranger has no lease'
  said=$(TIME=30 below strict "$DIR" \
    python3 "$SCRATCH/late.py" "$DIR/held" $call "$DIR/leased" strict)
  [ "$said" = 'goes on' ] || fail "$call, a stranger's lease: $said"
  kill -KILL "$server"
  wait "$server" 2>/dev/null || :
done
