#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The memory of RUN is full but for less than a job, and what a job does not take of it is gone
# before its next try. The job begins all the same: what it took it keeps between its tries. Nobody
# keeps it who asks no more, and no daemon that starts anew. `sluice run` asks until there is room.
set -u
. test/lib/lib.sh
own_mounts
. test/lib/node.bash
two_users
start_small_node 64m
trap 'kill "${hers:-}" 2>/dev/null; end_node; umount -l "$RUN/jobs"' EXIT

# full WORD: `slices` until the job is made; `once`: one try; `free`: all the room is.
full() {
  "$python" - "$RUN" $bob "$1" <<'END'
import json, os, socket, sys
run, bob, word = sys.argv[1], int(sys.argv[2]), sys.argv[3]
path = run + "/jobs/.filler"
fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
def size():
    return os.fstat(fd).st_size
def fill():
    for step in (1 << 20, 4096):
        try:
            while True:
                os.posix_fallocate(fd, size(), step)
        except OSError as why:
            if why.errno != 28:
                raise
def ask_as_bob():
    told, tell = os.pipe()
    if os.fork() == 0:
        os.setgroups([])
        os.setresgid(bob, bob, bob)
        os.setresuid(bob, bob, bob)
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(run + "/sluiced.sock")
        s.send(json.dumps({"verb": "join", "job": "his"}).encode())
        os.write(tell, s.recv(1 << 17))
        os._exit(0)
    os.close(tell)
    os.wait()
    return json.loads(os.read(told, 1 << 17))
if word == "free":
    os.unlink(path)
    sys.exit()
fill()
for tries in range(1, 21):
    os.ftruncate(fd, size() - (3 << 20))
    answer = ask_as_bob()
    if "error" not in answer:
        sys.exit("there was room" if word == "once" else 0)
    fill()
    if "No space" not in answer["error"]:
        sys.exit(str(answer))
    if word == "once":
        sys.exit()
sys.exit(f"{tries} tries were in vain")
END
}
# KiB that no job has.
room() {
  local filler
  filler=$(stat -c '%b * %B' "$RUN/jobs/.filler" 2>/dev/null || echo 0)
  echo $((($(stat -f -c '%f * %S' "$RUN/jobs") + filler) / 1024))
}
all_is_free() { test "$(room)" -ge "$at_first"; }
begun() { compgen -G "$RUN/jobs/.new-*" >/dev/null; }
not_begun() { ! begun; }

at_first=$(room)
full slices || fail "$(cat "$SCRATCH/log")"
begun && fail "a job is made, and still begun: $(ls -A "$RUN/jobs")"
until_true 60 test ! -e "$RUN/jobs/$bob@his" || fail "not over: $(cat "$SCRATCH/log")"
until_true 60 all_is_free || fail "its room is not given back: $(room) KiB of $at_first"

full once || fail "with less than a job: $(cat "$SCRATCH/log")"
begun || fail 'nothing is kept'
until_true 60 not_begun || fail "not given back: $(ls -A "$RUN/jobs")"

full once || fail "again: $(cat "$SCRATCH/log")"
kill_node
begun || fail 'nothing is kept where a daemon is killed'
start_node
begun && fail "a daemon that starts keeps it: $(ls -A "$RUN/jobs")"

setpriv --reuid=$ann --regid=$ann --clear-groups env HOME=/ "$SLUICE" --run-dir "$RUN" run \
  --job hers --no-summary -- "$PROGRAMS/steady" 600 "$DATA" >"$SCRATCH/out" 2>&1 &
hers=$!
until_true 30 grep -q 'waiting: no room' "$SCRATCH/out" ||
  fail "she does not wait: $(cat "$SCRATCH/out")"
full free
until_true 60 is True "any(j['job'] == 'hers' and j['processes'] > 0 for j in d)" ||
  fail "not metered: $(cat "$SCRATCH"/{out,log})"
kill "$hers"
wait "$hers" 2>/dev/null
until_true 60 no_jobs || fail "not given back: $(ls -A "$RUN/jobs"; cat "$SCRATCH/log")"
