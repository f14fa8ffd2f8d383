#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user writes over the memory of his own job: zeros, ones, garbage, processes that are others'.
# When its processes are gone, the job goes too, without a restart of the daemon; one whose process
# lives stays.
set -u
. test/lib/node.bash
two_users
python=/usr/bin/python3  # one that everybody can reach
as $ann "$python" -c 'import mmap' 2>/dev/null || skip "needs $python"
policy 500/s
start_node
cat >"$SCRATCH/scribble.py" <<'END'
import mmap, os, struct, sys
kind, path, slots, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
fd = os.open(path, os.O_RDWR)
whole = os.fstat(fd).st_size
m = mmap.mmap(fd, whole)
def claim(pid, space):  # pid, uid, pid_space, start_ticks: any such process
    for i in range(16):
        m[slots + i * size:slots + i * size + 24] = struct.pack("=IIQQ", pid, 0, space, 0)
if kind == "zeros":
    m[:] = bytes(whole)
elif kind == "ones":
    m[:] = b"\xff" * whole
elif kind == "garbage":
    m[:] = os.urandom(whole)
elif kind == "words":
    m[:] = b"\1\0\0\0" * (whole // 4)
elif kind == "init":
    claim(1, os.stat("/proc/self/ns/pid").st_ino)
elif kind == "nowhere":
    claim(7, 4026531000)
if kind == "stays":
    print("ready", flush=True)
    sys.stdin.read()
os._exit(0)
END
chmod a+r "$SCRATCH/scribble.py"
layout=$("$PROGRAMS/slot_layout") || fail 'no layout'
scribble() { # KIND
  as $ann "$SLUICE" --run-dir "$RUN" run --job "$1" --no-summary -- \
    "$python" "$SCRATCH/scribble.py" "$1" "$RUN/jobs/$ann@$1/segment" $layout
}
mkfifo "$SCRATCH/hold"
exec 9<>"$SCRATCH/hold"
scribble stays <"$SCRATCH/hold" >"$SCRATCH/stays" 9>&- &
until_true 20 grep -q ready "$SCRATCH/stays" || fail 'the job that stays does not begin'
for kind in zeros ones garbage words init nowhere; do
  scribble $kind || fail "$kind: status $?"
done
are_gone() { [ "$(field '[j["job"] for j in d]')" = "['stays']" ]; }
until_true 60 are_gone || fail "jobs of nobody: $($S jobs)"
$S --json explain --job "$ann@stays" >"$SCRATCH/out" || fail "explain: $(cat "$SCRATCH/out")"
exec 9>&-
