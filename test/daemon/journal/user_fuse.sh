#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A user mounts a file system of his own, which may say that its files are root's, or say nothing
# for ever. `sluice recover` of root believes and asks nothing there: neither in it, nor by a link
# that leads to it. Its user's own recovery is not concerned.
set -u
. test/lib/lib.sh
own_mounts
[ "$(id -u)" = 0 ] || skip 'needs root'
[ -e /dev/fuse ] || skip 'needs /dev/fuse'
his=$SCRATCH/his
mkdir "$his"
# Its server never answers, so whoever asks it is still there when time is over.
python3 - "$his" "$SCRATCH/mounted" <<'END' &
import ctypes, os, sys, time
server = os.open("/dev/fuse", os.O_RDWR)
how = f"fd={server},rootmode=40000,user_id=65011,group_id=0,allow_other".encode()
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"fuse", sys.argv[1].encode(), b"fuse", 0, how) != 0:
    open(sys.argv[2], "w").write("cannot")
    sys.exit(os.strerror(ctypes.get_errno()))
open(sys.argv[2], "w").write("mounted")
time.sleep(1000)
END
server=$!
trap 'kill -9 "$server" 2>/dev/null; umount -l "$his" 2>/dev/null' EXIT
until_true 30 test -s "$SCRATCH/mounted" || fail 'no mount'
[ "$(cat "$SCRATCH/mounted")" = mounted ] || skip 'no FUSE can be mounted here'
ln -s "$his/inner" "$SCRATCH/link"

for journal in "$his/journal" "$his/inner/../journal" "$SCRATCH/link/journal"; do
  timeout -s KILL 30 "$SLUICE" recover "$journal" >"$SCRATCH/out" 2>&1
  status=$?
  [ "$status" = 125 ] || [ "$status" = 2 ] || fail "$journal: $status: $(cat "$SCRATCH/out")"
  grep -q "65011" "$SCRATCH/out" || fail "$journal: does not name the user: $(cat "$SCRATCH/out")"
done
exit 0
