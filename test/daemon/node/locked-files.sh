#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# A user who holds the lock of a file of his job keeps the node from nobody else: write() holds it
# while it reads memory, and his is a file of a FUSE that does not answer. Also after a restart.
set -u
. test/lib/site.bash
two_users
. test/lib/hung_memory.bash
mkdir -m 755 "$SCRATCH/n1"
cp /bin/sleep "$SCRATCH/nap"
over() {
  end_memory
  kill -9 "${pids[@]}" 2>/dev/null
  wait
  rm -rf "$SCRATCH"
}
trap over EXIT

cat >"$SCRATCH/hold.py" <<'END'
"""FILE MEMORY READY: lets FILE grow, and writes to it from MEMORY once READY is gone."""
import mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR)
memory = mmap.mmap(os.open(sys.argv[2], os.O_RDONLY), 65536, prot=mmap.PROT_READ)
while os.path.exists(sys.argv[3]):
    time.sleep(0.02)
os.ftruncate(file, os.fstat(file).st_size + (64 << 20))
os.write(file, memory)
END
node() {
  start n1 --role node --name n1 --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/n1"
}
policy "$SCRATCH/p.json"
node
of_bob() { # JOB: it is metered
  as "$bob" timeout 60 "$SLUICE" run --job "$1" --run-dir "$SCRATCH/n1" --no-summary -- true \
    2>"$SCRATCH/err" || return 1
  cat "$SCRATCH/err" >&2
  [ ! -s "$SCRATCH/err" ]
}
late() { [ "$(grep -c 'cannot be tidied: its owner holds the lock' "$LOG")" -ge "$1" ]; }

# She watches for the area of a job's directories and holds it in the moment in which it is hers.
cat >"$SCRATCH/catch.py" <<'END'
"""DIR MEMORY: opens DIR/paths, or what is to become it, and writes to it from MEMORY."""
import mmap, os, sys
memory = mmap.mmap(os.open(sys.argv[2], os.O_RDONLY), 65536, prot=mmap.PROT_READ)
names = [sys.argv[1] + "/paths.new", sys.argv[1] + "/paths"]
print("watches", flush=True)
while True:
    for name in names:
        try:
            os.write(os.open(name, os.O_WRONLY), memory)
        except OSError:
            pass
END
for i in 1 2 3 4 5 6; do
  kill -CONT "$server"
  as "$ann" "$SLUICE" run --job "p$i" --run-dir "$SCRATCH/n1" --no-summary -- "$SCRATCH/nap" 1000 &
  until_true 20 test -e "$SCRATCH/n1/jobs/$ann@p$i/segment" || fail "no job p$i"
  as "$ann" python3 "$SCRATCH/catch.py" "$SCRATCH/n1/jobs/$ann@p$i" "$SCRATCH/hung/memory" \
    >"$SCRATCH/catches" &
  until_true 20 grep -q watches "$SCRATCH/catches" || fail 'she does not watch'
  kill -STOP "$server"
  as "$ann" timeout 20 "$SLUICE" run --job "p$i" --paths --run-dir "$SCRATCH/n1" --no-summary -- \
    true
  of_bob "after-$i" || fail "bob, when she holds a new area ($i)"
  kill -CONT "$server"
  pkill -9 -u "$ann" -f "$SCRATCH/(catch.py|nap)"
done

# While her job lives, its file cannot be cut back; when it is over it cannot be cleared away.
as "$ann" "$SLUICE" run --job hers --run-dir "$SCRATCH/n1" --no-summary -- "$SCRATCH/nap" 1000 &
until_true 20 test -e "$SCRATCH/n1/jobs/$ann@hers/segment" || fail 'no job'
hold ksys_write "$SCRATCH/n1/jobs/$ann@hers/segment"
of_bob one || fail 'bob, while her job lives'
until_true 60 late 1 || fail "nobody is told: $(cat "$LOG")"
pkill -u "$ann" -f "^$SCRATCH/nap"
gone() { compgen -G "$SCRATCH/n1/jobs/.gone-$ann@hers*" >/dev/null; }
until_true 90 gone || fail "her job stays: $(ls -A "$SCRATCH/n1/jobs")"
of_bob two || fail 'bob, when her job is over'

# Nothing of that keeps a daemon from ending, or the next from starting.
stop "$PID"
node
of_bob three || fail 'bob, after a restart'

# A daemon that cannot tidy any more is to be started anew, although somebody still waits for her.
waits() { pgrep -P "$(pgrep -P "$PID" -x sluiced-tidy)" >/dev/null; }
until_true 60 waits || fail 'nobody waits for her lock'
pkill -9 -P "$PID" -x sluiced-tidy || fail 'nobody tidies'
wait "$PID" && fail 'it goes on without'
grep -q 'the process that tidies the files of jobs has ended' "$LOG" || fail "$(cat "$LOG")"
node

# Who waits for her is killed, and so says nothing when it has the lock. She is tidied all the same.
until_true 60 waits || fail 'nobody waits for her lock'
pkill -9 -P "$(pgrep -P "$PID" -x sluiced-tidy)"

memory_comes
away() { ! gone; }
until_true 60 away || fail "it is not cleared away: $(ls -A "$SCRATCH/n1/jobs")"
of_bob four || fail 'bob, at the end'
exit 0
