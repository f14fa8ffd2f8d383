#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A neighbour who lists a user's public directory holds its lock (SECURITY.md). His journal, whose
# first file lies there, goes on all the same: what it has comes home again and again, and its
# daemon ends when it is told to.
set -u
. test/lib/journals.bash
. test/lib/hung_memory.bash
over() {
  end_memory
  pkill -9 -u "$bob" -f "$SCRATCH/"
  kill -9 "${pids[@]}" 2>/dev/null
  wait
  umount -l "$SCRATCH/data"
  rm -rf "$SCRATCH"
}
trap over EXIT
python=/usr/bin/python3
place="$SCRATCH/data/his"
install -d -m 755 -o "$bob" "$place" "$place/pub"
install -d -m 700 -o "$bob" "$place/priv"
cat >"$SCRATCH/hold.py" <<'END'
"""DIR MEMORY READY: once READY is gone, lists DIR into MEMORY."""
import ctypes, mmap, os, sys, time
directory = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
memory = mmap.mmap(os.open(sys.argv[2], os.O_RDWR), 65536)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
while os.path.exists(sys.argv[3]):
    time.sleep(0.02)
getdents64 = {"x86_64": 217, "aarch64": 61}[os.uname().machine]
ctypes.CDLL(None).syscall(getdents64, directory, ctypes.c_void_p(at), 65536)
END
cat >"$SCRATCH/work.py" <<'END'
"""PLACE: files in PLACE/pub and PLACE/priv, then the second grows and is written anew for ever."""
import os, sys
fds = [os.open(f"{sys.argv[1]}/{name}", os.O_RDWR | os.O_CREAT, 0o600)
       for name in ("pub/first", "pub/second", "priv/first", "priv/second")]
for fd in fds:
    for block in range(20):
        os.pwrite(fd, b"x" * 4096, block * 4096)
        os.fsync(fd)
open(sys.argv[1] + "/priv/done", "w").close()
while True:
    os.ftruncate(fds[3], 0)
    for block in range(512):
        os.pwrite(fds[3], b"y" * 8192, block * 8192)
        os.fsync(fds[3])
END
start node --role node --name n1 --run-dir "$RUN" --policy "$SCRATCH/policy.json" \
  --journal "$SCRATCH/log" --journal-size 4MiB
as "$bob" "$SLUICE" --run-dir "$RUN" run --job his --no-summary -- \
  "$python" "$SCRATCH/work.py" "$place" 2>"$SCRATCH/err" &
until_true 60 test -e "$place/priv/done" || fail "he does not work: $(cat "$SCRATCH/err" "$LOG")"
checkpoints() {
  "$SLUICE" --run-dir "$RUN" --json order >"$SCRATCH/order.json" 2>/dev/null &&
    json "$SCRATCH/order.json" 'sum(j["checkpoints"] for j in d["journals"])'
}
has_more() { local now; now=$(checkpoints) && [ "$now" -gt "$before" ]; }
before=0
until_true 60 has_more || fail "nothing comes home: $(cat "$SCRATCH/order.json")"

hold getdents "$place/pub"
for _ in 1 2 3; do
  before=$(checkpoints)
  until_true 60 has_more || fail "nothing comes home any more: $(cat "$SCRATCH/order.json")"
done
pkill -9 -u "$bob" -f "$SCRATCH/work.py"
stop "$PID"
until_true 60 eval '! pgrep -f "sluice-order.*$SCRATCH/" >"$SCRATCH/left"' ||
  fail "the daemon of his journal stays: $(cat "$LOG")"
exit 0
