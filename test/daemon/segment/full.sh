#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 480
# One user fills the memory of RUN: with files of jobs that run, and of jobs that are over, which he
# has open and which no name of his leads to. Jobs of others begin and are metered all the same, his
# number of jobs counts those that he holds, and all is given back when he lets go; after a restart
# of the daemon too.
set -u
. test/lib/lib.sh
own_mounts
. test/lib/node.bash
two_users
start_small_node 400m
grep -q 'users can fill it' "$SCRATCH/log" && fail "RUN/jobs is its own: $(cat "$SCRATCH/log")"
trap 'kill -9 "${filler:-}" 2>/dev/null; end_node; umount -l "$RUN/jobs"' EXIT


# He joins jobs as `sluice run` would, opens their files, lets the jobs end, and the files grow.
setpriv --reuid=$bob --regid=$bob --clear-groups "$python" - "$RUN" \
  >"$SCRATCH/filler" 2>&1 <<'END' &
import json, os, socket, sys, time
run = sys.argv[1]
def ask(**request):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(run + "/sluiced.sock")
    s.send(json.dumps(request).encode())
    return json.loads(s.recv(1 << 17))
def job_that_ends(name):
    """Its folder; who joined ends when the second value is closed."""
    told, tell = os.pipe()
    hold, let_go = os.pipe()
    if os.fork() == 0:
        os.close(let_go)
        os.write(tell, ask(verb="join", job=name, path_parts=2).get("segment", "no").encode())
        os.read(hold, 1)
        os._exit(0)
    os.close(hold)
    return os.path.dirname(os.read(told, 4096).decode()), let_go
grows, reads, folders = [], [], []
for i in range(3):
    folder, let_go = job_that_ends(f"old{i}")
    grows.append(os.open(folder + "/segment", os.O_RDWR))
    reads.append(os.open(folder + "/paths", os.O_RDONLY))
    folders.append(folder)
    os.close(let_go)
while any(map(os.path.exists, folders)):
    time.sleep(0.05)
print("over", flush=True)
# They are taken from him a moment later, for good.
for fd in reads:
    while True:
        try:
            os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDWR))
        except PermissionError:
            break
        time.sleep(0.05)
# Of a running one as well.
grows.append(os.open(ask(verb="join", job="kept")["segment"], os.O_RDWR))
while True:
    for fd in list(reads):
        try:
            grows.append(os.open(f"/proc/self/fd/{fd}", os.O_RDWR))
            reads.remove(fd)
            print("reopened", flush=True)
        except PermissionError:
            pass
    for fd in grows:
        try:
            os.posix_fallocate(fd, os.fstat(fd).st_size, 4 << 20)
        except OSError as why:
            print("full" if why.errno == 28 else why, flush=True)
            time.sleep(0.01)
END
filler=$!
until_true 60 grep -qs full "$SCRATCH/filler" || fail "no filler: $(cat "$SCRATCH"/{filler,log})"
grep -q reopened "$SCRATCH/filler" && fail 'a reader of a job that is over became a writer'

others_run() { # WHEN
  local i hers
  for i in 1 2 3; do
    setpriv --reuid=$ann --regid=$ann --clear-groups env HOME=/ "$SLUICE" --run-dir "$RUN" run \
      --job "hers$i" --no-summary -- "$PROGRAMS/steady" 600 "$DATA" >"$SCRATCH/out" 2>&1 &
    hers=$!
    is_metered() {
      "$SLUICE" --run-dir "$RUN" jobs --json >"$SCRATCH/jobs" &&
        [ "$(json "$SCRATCH/jobs" "any(j['job'] == 'hers$i' and j['processes'] > 0
          for j in d)")" = True ]
    }
    until_true 90 is_metered || fail "$1: hers$i: $(cat "$SCRATCH"/{out,log}; df "$RUN/jobs")"
    kill "$hers"
    wait "$hers" 2>/dev/null
  done
}
others_run 'RUN is full'
grep -q 'cut back' "$SCRATCH/log" || fail "nothing is said: $(cat "$SCRATCH/log")"
kill_node
start_node
others_run 'after a restart'

# Those that are over and held are among the jobs that he may have. What he filled just before he
# was stopped is cut back by the next look.
kill -STOP "$filler"
as $bob "$python" - "$RUN/sluiced.sock" <<'END' || fail "what he holds does not count"
import json, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
end, made = time.monotonic() + 60, 0
while made < 64:
    s.send(json.dumps({"verb": "join", "job": f"more{made}"}).encode())
    answer = json.loads(s.recv(1 << 17))
    if "No space" in answer.get("error", "") and time.monotonic() < end:
        time.sleep(0.1)
        continue
    if "error" in answer:
        sys.exit(None if "over but not gone" in answer["error"] else str(answer))
    made += 1
sys.exit("no end")
END
kill -KILL "$filler"
wait "$filler" 2>/dev/null
until_true 60 no_jobs || fail "not given back: $(ls -A "$RUN/jobs"; cat "$SCRATCH/log")"
