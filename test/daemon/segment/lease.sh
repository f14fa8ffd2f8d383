#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# One user lets an area of his job grow until the memory of RUN is full, and takes a lease on it. He
# gets none while the daemon runs. One that the daemon finds after a restart he keeps until the
# kernel takes it. His job goes, and the area is cut back in both cases.
set -u
. test/lib/lib.sh
own_mounts
. test/lib/node.bash
two_users
start_small_node 200m
trap 'kill -9 "${holder:-}" 2>/dev/null; end_node; umount -l "$RUN/jobs"' EXIT

setpriv --reuid=$bob --regid=$bob --clear-groups "$python" - "$RUN" \
  >"$SCRATCH/holder" 2>&1 <<'END' &
import fcntl, json, os, signal, socket, sys, time
run = sys.argv[1]
signal.signal(signal.SIGIO, lambda *_: None)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(run + "/sluiced.sock")
s.send(json.dumps({"verb": "join", "job": "held", "path_parts": 16}).encode())
paths = os.path.dirname(json.loads(s.recv(1 << 17))["segment"]) + "/paths"
lease = None
while os.path.exists(paths):
    if lease is None:
        fd = os.open(paths, os.O_RDWR | os.O_NONBLOCK)
        for step in 4 << 20, 64 << 10, 4 << 10:  # to the last page
            try:
                while True:
                    os.posix_fallocate(fd, os.fstat(fd).st_size, step)
            except OSError as why:
                said = "full" if why.errno == 28 else why
        print(said, flush=True)
        os.close(fd)
        fd = os.open(paths, os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            lease = fd
            print("leased", flush=True)
        except OSError:
            os.close(fd)
            print("no lease", flush=True)
    time.sleep(0.01)
print("gone", flush=True)
time.sleep(600)
END
holder=$!
until_true 60 grep -qs full "$SCRATCH/holder" || fail "no holder: $(cat "$SCRATCH"/{holder,log})"
until_true 60 grep -qs lease "$SCRATCH/holder" || fail 'he tries no lease'

tried=0
has_job() { # without limits it would run as well
  tried=$((tried + 1))
  setpriv --reuid=$ann --regid=$ann --clear-groups env HOME=/ "$SLUICE" --run-dir "$RUN" run \
    --job "hers$tried" --no-summary -- true >"$SCRATCH/out" 2>&1 &&
    grep -q "job made job=hers$tried " "$SCRATCH/log"
}
until_true 60 has_job || fail "RUN is full: $(cat "$SCRATCH"/{out,log}; df "$RUN/jobs")"
until_true 60 grep -q 'cut back' "$SCRATCH/log" || fail "nothing is said: $(cat "$SCRATCH/log")"
grep -q leased "$SCRATCH/holder" && fail 'he got a lease while the daemon runs'

# Nobody has it open while there is no daemon. The next one finds a full RUN and a lease.
kill_node
until_true 60 grep -qs leased "$SCRATCH/holder" || fail "no lease: $(cat "$SCRATCH/holder")"
start_node
until_true 150 has_job || fail "after a restart: $(cat "$SCRATCH"/{out,log}; df "$RUN/jobs")"
for said in 'a lease on one of its files' 'holds leases on its files'; do
  until_true 60 grep -q "$said" "$SCRATCH/log" || fail "no word: $(cat "$SCRATCH/log")"
done
# Until his files can be cut back he gets no job.
setpriv --reuid=$bob --regid=$bob --clear-groups "$python" - "$RUN" >"$SCRATCH/bobs" 2>&1 <<'END'
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1] + "/sluiced.sock")
s.send(json.dumps({"verb": "join", "job": "more"}).encode())
print(s.recv(1 << 17).decode())
END
grep -q 'a lease or a lock on a file of a job' "$SCRATCH/bobs" ||
  fail "he goes on: $(cat "$SCRATCH/bobs")"
# The kernel leaves him his lease for 45 s.
has_room() { [ "$(df --output=avail -m "$RUN/jobs" | tail -1)" -gt 100 ]; }
until_true 90 has_room || fail "not cut back: $(cat "$SCRATCH/log"; df "$RUN/jobs")"
