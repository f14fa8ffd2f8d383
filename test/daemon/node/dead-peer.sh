#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who connects, leaves the connection to a child and ends is asked for no more: his number may be
# anybody's by now. He makes no job, joins none, and does not get out of his scheduler's class.
set -u
. test/lib/node.bash
two_users
python=/usr/bin/python3  # one that everybody can reach
as $ann "$python" -c 'import socket' 2>/dev/null || skip "needs $python"
cat >"$SCRATCH/policy.json" <<P
{"targets": {"s": {"path": "$DATA", "capacity": {"metadata": "1k/s"}}},
 "classes": {"gold": {"s": {"metadata": {"weight": 4}}}, "bronze": {"s": {"metadata": {}}}},
 "control": {"default_class": "bronze"}}
P
start_node
chmod 755 "$RUN"
# Asks for the job from a live process, or from the child of one that has ended.
cat >"$SCRATCH/ask.py" <<'END'
import json, os, select, socket, sys
how, path, job = sys.argv[1:4]
maker = os.fork()
if maker == 0:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    s.send(b'{"verb": "hello"}')  # it is served, so the daemon knows who it is
    s.recv(65536)
    watched = os.pidfd_open(os.getpid())
    if how == "dead" and os.fork() != 0:
        os._exit(0)
    if how == "dead":
        select.select([watched], [], [])
    s.send(json.dumps({"verb": "join", "job": job, "class": "gold"}).encode())
    print(json.loads(s.recv(65536)), flush=True)
    os._exit(0)
os.waitpid(maker, 0)
END
chmod a+r "$SCRATCH/ask.py"
ask() { # HOW JOB
  as $ann timeout 60 "$python" "$SCRATCH/ask.py" "$1" "$RUN/sluiced.sock" "$2" |
    cat >"$SCRATCH/said"
}
ask live lives
grep -q "'created': True" "$SCRATCH/said" || fail "a live one: $(cat "$SCRATCH/said")"
for job in ghost lives; do
  ask dead $job
  grep -q 'that asks to join has ended' "$SCRATCH/said" || fail "$job: $(cat "$SCRATCH/said")"
done

# Beside a job of the scheduler's, whose class he has.
SLURM_JOB_ID=901 SLURM_JOB_UID=$ann "$SLUICE" hook prolog --run-dir "$RUN" --class bronze ||
  fail 'no job 901'
ask live other
grep -q 'this is job 901, which is in class' "$SCRATCH/said" || fail "live: $(cat "$SCRATCH/said")"
ask dead other
grep -q 'that asks to join has ended' "$SCRATCH/said" || fail "dead: $(cat "$SCRATCH/said")"
$S --json jobs >"$SCRATCH/jobs.json"
[ "$(json "$SCRATCH/jobs.json" '[j for j in d if j["job"] in ("ghost", "other")]')" = '[]' ] ||
  fail "a job of nobody: $(cat "$SCRATCH/jobs.json")"
exit 0
