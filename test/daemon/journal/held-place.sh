#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# A user who holds the lock of his journal's directory keeps nobody else from a journal: listing it
# holds that while it writes to memory, and his is a file of a FUSE that does not answer.
set -u
. test/lib/journals.bash
. test/lib/hung_memory.bash
over() {
  end_memory
  kill -9 "${pids[@]}" 2>/dev/null
  umount -l "$SCRATCH/data"
  wait
  rm -rf "$SCRATCH"
}
trap over EXIT
cat >"$SCRATCH/hold.py" <<'PY'
"""DIR MEMORY READY: lists DIR into MEMORY once READY is gone."""
import ctypes, mmap, os, sys, time
getdents64 = {"x86_64": 217, "aarch64": 61}[os.uname().machine]
directory = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
memory = mmap.mmap(os.open(sys.argv[2], os.O_RDWR), 65536)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
while os.path.exists(sys.argv[3]):
    time.sleep(0.02)
ctypes.CDLL(None).syscall(getdents64, directory, ctypes.c_void_p(at), 65536)
PY
node() {
  start node --role node --name n1 --run-dir "$RUN" --policy "$SCRATCH/policy.json" \
    --journal "$SCRATCH/log" --journal-size 4MiB --journal-total 8MiB --journal-idle 1s
}
durable() { # UID NAME: a durable job of his, which its journal serves
  as "$1" timeout 60 "$SLUICE" --run-dir "$RUN" run --job "$2" --no-summary -- true
}
place="$SCRATCH/log/$ann/own"
node
durable "$ann" hers || fail "hers: $(cat "$LOG")"
until_true 20 test -d "$place" || fail "no journal: $(ls -laR "$SCRATCH/log")"
hold getdents "$place"

# Her journal ends, and its directory cannot go.
emptied() {
  "$SLUICE" --run-dir "$RUN" --json order >"$SCRATCH/order" 2>/dev/null &&
    [ "$(json "$SCRATCH/order" "[j for j in d['journals']
      if j['uid'] == $ann and j['state'] == 'serving']")" = '[]' ]
}
until_true 60 emptied || fail "hers is served: $(cat "$SCRATCH/order")"
durable "$bob" one || fail "his: $(cat "$LOG")"
keeper=$(pgrep -P "$PID" -x sluiced-journal)
kill -9 "$PID" "$keeper"
until_true 20 sh -c "! kill -0 $keeper 2>/dev/null" || fail 'the keeper lives'
node
durable "$bob" two || fail "his, after a restart: $(cat "$LOG")"

memory_comes
gone() { [ ! -e "$place" ]; }
until_true 60 gone || fail "hers stays: $(ls -laR "$SCRATCH/log") $(cat "$LOG")"
exit 0
