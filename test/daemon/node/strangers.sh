#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# What a user may do with files that are his must not stop the daemon, or reach others: a lease on
# his segment while the daemon starts, rules of his epochs that change under its eyes and name
# paths for root to open, more jobs than are his, and names that are the scheduler's.
set -u
. test/lib/node.bash
two_users
python=/usr/bin/python3
as $bob "$python" -c 'import json' 2>/dev/null || skip "needs $python"
cat >"$SCRATCH/policy.json" <<END
{"targets": {"scratch": {"path": "$DATA", "capacity": {"metadata": "5k/s"},
                         "after": {"write": "*/MANIFEST*", "durable": "*/rank*"}}}}
END
start_node
has_job() { "$SLUICE" --run-dir "$RUN" jobs 2>/dev/null | grep -q "$1"; }

# ---- a name of the scheduler's ----
job $bob 4242 true 2>"$SCRATCH/said" && fail "a user made the scheduler's job 4242"
grep -q "the scheduler's" "$SCRATCH/said" || fail "job 4242: $(cat "$SCRATCH/said")"
[ ! -e "$RUN/jobs/$bob@4242" ] || fail "the scheduler's job 4242 was made"

# ---- more jobs than are his ----
"$python" - "$RUN/sluiced.sock" $bob <<'END' || fail "one user can have all the jobs"
import json, os, socket, sys
os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
made = 0
for i in range(200):
    s.send(json.dumps({"verb": "join", "job": f"flood{i}"}).encode())
    answer = json.loads(s.recv(1 << 17))
    if "error" in answer:
        sys.exit(0 if "too many jobs" in answer["error"] and made == 32 else str(answer))
    made += 1
sys.exit(f"{made} jobs")
END
job $ann ours true || fail "another user has no place any more"
until_true 60 eval '! has_job flood' || fail "jobs without a process stay: $(ls "$RUN/jobs")"

# ---- a lease on his segment, and rules that change ----
job $bob held "$PROGRAMS/hold_lease" "$RUN/jobs/$bob@held" >"$SCRATCH/said" 2>"$SCRATCH/err" &
holder=$!
until_true 60 grep -q there "$SCRATCH/said" || fail "no job: $(cat "$SCRATCH/err")"
kill -KILL "$NODE"
wait "$NODE" 2>/dev/null
until_true 60 grep -q held "$SCRATCH/said" || fail "no lease: $(cat "$SCRATCH/err")"
# A lease is broken by force after 45 s at the earliest: half of that is not waiting for it.
rm -f "$RUN/sluiced.sock"
begun=$SECONDS
"$SLUICED" --role node --name n1 --run-dir "$RUN" --policy "$SCRATCH/policy.json" --metrics none \
  >>"$SCRATCH/log" 2>&1 &
NODE=$!
serves() { [ -S "$RUN/sluiced.sock" ] && "$SLUICE" --run-dir "$RUN" jobs >"$SCRATCH/out" 2>&1; }
until_true 100 serves || fail "$(cat "$SCRATCH/log")"
[ $((SECONDS - begun)) -lt 40 ] || fail "the daemon waited for a user's lease"
grep -q 'lease' "$SCRATCH/log" || fail "nothing was said of the lease: $(cat "$SCRATCH/log")"
job $ann more true || fail "another user is not served"

# It ends, and the job is taken over; its rules go on changing, and hurt nobody.
until_true 120 grep -q 'job taken over.*held' "$SCRATCH/log" || fail "the job was not taken over"
for _ in 1 2 3 4 5 6; do
  kill -KILL "$NODE"
  wait "$NODE" 2>/dev/null
  rm -f "$RUN/sluiced.sock"
  start_node
  until_true 60 has_job held || fail "the job is gone"
  kill -0 "$NODE" || fail "the daemon died of a user's memory: $(cat "$SCRATCH/log")"
done
job $ann last true || fail "the daemon does not serve any more"
kill "$holder" 2>/dev/null
wait "$holder" 2>/dev/null
exit 0
