#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# One user fills the memory of RUN with the segment of a job, on which he holds a lease. He takes it
# anew in the moment in which the daemon ends it. He gets none while the daemon has the segment, nor
# after his job is over. A lease from a time without a daemon he loses with his job.
set -u
. test/lib/lib.sh
own_mounts
. test/lib/node.bash
two_users
start_small_node 200m
trap 'kill -9 "${holder:-}" "${keeper:-}" 2>/dev/null; end_node; umount -l "$RUN/jobs"' EXIT

# holder JOB: says "leased" and "lost". Its end is the end of the job.
cat >"$SCRATCH/holder.py" <<'END'
import fcntl, json, os, signal, socket, sys, time
run, job = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(run + "/sluiced.sock")
s.send(json.dumps({"verb": "join", "job": job}).encode())
fd = os.open(json.loads(s.recv(1 << 17))["segment"], os.O_RDWR)
is_leased, said = False, ""
def say(what):
    global said
    if what != said:
        print(said := what, flush=True)
def lease():
    global is_leased
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        is_leased = True
    except OSError as why:
        is_leased = False
        if why.errno == 13: say("lost")
def again(*_):
    try: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError: pass
    lease()
signal.signal(signal.SIGIO, again)
while True:
    if not is_leased: lease()
    say("leased" if is_leased else said or "no lease")
    try: os.posix_fallocate(fd, os.fstat(fd).st_size, 4 << 20)
    except OSError: pass
    time.sleep(0.01)
END
setpriv --reuid=$bob --regid=$bob --clear-groups "$python" "$SCRATCH/holder.py" "$RUN" held \
  >"$SCRATCH/holder" 2>&1 &
holder=$!
until_true 60 grep -qs lease "$SCRATCH/holder" || fail "no holder: $(cat "$SCRATCH"/{holder,log})"
grep -q leased "$SCRATCH/holder" && fail 'he got a lease while the daemon runs'

kill_node
until_true 60 grep -qs leased "$SCRATCH/holder" || fail "no lease: $(cat "$SCRATCH/holder")"
start_node
until_true 90 grep -q 'holds leases on its files' "$SCRATCH/log" || fail "$(cat "$SCRATCH/log")"
until_true 30 grep -qs lost "$SCRATCH/holder" ||
  fail "he takes leases on a job that is over: $(cat "$SCRATCH"/{holder,log})"

# What he has open he may fill: between two looks, and at once when a job finds no room.
tried=0
has_job() { # without limits it would run as well
  tried=$((tried + 1))
  setpriv --reuid=$ann --regid=$ann --clear-groups env HOME=/ "$SLUICE" --run-dir "$RUN" run \
    --job "hers$tried" --no-summary -- true >"$SCRATCH/out" 2>&1 &&
    grep -q "job made job=hers$tried " "$SCRATCH/log"
}
until_true 60 has_job || fail "RUN is full: $(cat "$SCRATCH"/{out,log}; df "$RUN/jobs")"
kill -9 $holder
nothing_left() { [ -z "$(find "$RUN/jobs" -mindepth 1 -maxdepth 1 -name '.gone-*')" ]; }
until_true 30 nothing_left || fail "it stays: $(ls -laR "$RUN/jobs"; cat "$SCRATCH/log")"
