#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program sets an alarm because a server may not answer, and the call ends with EINTR. Where no
# lease is kept the library asks that server nothing more, so the program goes on.
. test/libinterpose/small/runs.bash
own_mounts
[ -e /dev/fuse ] || skip 'needs /dev/fuse'

cat >"$SCRATCH/late.py" <<'P'
import os, signal, sys
class Late(Exception): pass
def ring(*_): raise Late
signal.signal(signal.SIGALRM, ring)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    if sys.argv[2] == "open": os.open(sys.argv[1], os.O_RDONLY)
    else: os.truncate(sys.argv[1], 1)
except Late:
    print("goes on")
P
mkdir "$SCRATCH/mount"
is_mounted() { grep -q " $SCRATCH/mount fuse" /proc/self/mounts; }
# tries WHERE-FILES-ARE-LEASED CALL WORD
tries() {
  "$PROGRAMS/fuse_interrupts" "$SCRATCH/mount" & server=$!
  trap 'umount -l "$SCRATCH/mount" 2>/dev/null; kill -KILL $server 2>/dev/null' EXIT
  until_true is_mounted || skip 'no FUSE here'
  said=$(TIME=30 below "$3" "$1" python3 "$SCRATCH/late.py" "$SCRATCH/mount/file" "$2")
  [ "$said" = 'goes on' ] || fail "$2, $3 in $1: status $?: $said"
  kill -KILL "$server"
  umount -l "$SCRATCH/mount"
}
for word in strict reads; do
  for call in open truncate; do
    tries "$DIR" $call $word
    tries "$SCRATCH/mount" $call $word
  done
done
