#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A file system whose server does not answer: the node goes on serving all others, whether a user
# brought it or the policy names it, and jobs on it are metered all the same. It can be ended and
# started again while nobody answers.
set -u
. test/lib/site.bash
two_users
need python3 bindfs
mkdir -m 755 "$SCRATCH"/{n1,real,hung,site,below}
mkdir -m 777 "$SCRATCH/real/tree"
uncached=(-o 'attr_timeout=0,entry_timeout=0')
log=$SCRATCH/bindfs.log
bindfs -f "${uncached[@]}" "$SCRATCH/real" "$SCRATCH/hung" >"$log" 2>&1 &
his=$!
# The policy's lies above one that is stopped: it takes requests and does not answer them, so that
# nothing ends who asks.
bindfs -f "${uncached[@]}" "$SCRATCH/real" "$SCRATCH/below" >"$log" 2>&1 &
below=$!
until_true 20 test -d "$SCRATCH/below/tree" || skip "no FUSE here: $(cat "$log")"
bindfs -f "${uncached[@]}" "$SCRATCH/below" "$SCRATCH/site" >"$log" 2>&1 &
sites=$!
over() {
  kill -CONT "$his" "$below" 2>/dev/null
  for at in hung site below; do umount -l "$SCRATCH/$at"; done
  wait "$his" "$sites" "$below"
}
trap 'over; kill -9 "${pids[@]}" 2>/dev/null; rm -rf "$SCRATCH"' EXIT
for place in hung site; do
  until_true 20 test -d "$SCRATCH/$place/tree" || skip "no FUSE here: $(cat "$log")"
done
cat >"$SCRATCH/p.json" <<END
{"targets": {"scratch": {"path": "$SCRATCH/site/tree", "capacity": {"metadata": "600/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 1}}}},
 "control": {"default_class": "gold"}}
END
start n1 --role node --name n1 --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/n1"
ask() { # UID REQUEST
  as "$1" timeout 60 /usr/bin/python3 - "$SCRATCH/n1/sluiced.sock" "$2" <<'P'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(sys.argv[2].encode())
print(s.recv(1 << 17).decode())
P
}
join() { # UID JOB [LIMIT [PLACE]]
  local more="${3:+, \"limits\": [\"$3\"]}${4:+, \"places\": [$4]}"
  ask "$1" "{\"verb\": \"join\", \"job\": \"$2\"$more}"
}
his_tree="{\"target\": \"$SCRATCH/hung/tree\", \"path\": \"$SCRATCH/hung/tree\",
  \"device\": 1, \"inode\": 2, \"mount_id\": 0, \"identity\": 0}"
join $ann before | grep -q '"segment"' || fail "before: $(join $ann before)"

kill -STOP "$his" "$below"
# Hers: the daemon does not look at it, with a place or without.
for i in 1 2 3 4 5; do
  join $ann "a$i" "stat=5/s@$SCRATCH/hung/tree" >"$SCRATCH/out" || fail "no answer: $i"
  grep -q 'does not say where' "$SCRATCH/out" || fail "hung: $(cat "$SCRATCH/out")"
done
join $ann told "stat=5/s@$SCRATCH/hung/tree" "$his_tree" >"$SCRATCH/out" || fail 'no answer: told'
grep -q '"segment"' "$SCRATCH/out" || fail "told: $(cat "$SCRATCH/out")"
# The policy's: taken as it was.
join $bob his >"$SCRATCH/out" || fail 'no answer to another user'
grep -q '"segment"' "$SCRATCH/out" || fail "another user: $(cat "$SCRATCH/out")"
record=$(cat "$SCRATCH/n1/jobs"/*his/job.json)
grep -q 'metadata@scratch' <<<"$record" || fail "not metered: $record"
as $bob timeout 60 "$SLUICE" --run-dir "$SCRATCH/n1" jobs >"$SCRATCH/out" || fail 'jobs'

# A thread looks at it and nothing ends that thread: the next daemon has the lock all the same.
first=$PID
kill -9 "$first"
is_stuck() { cat "/proc/$first/task"/*/stat 2>/dev/null | grep -q ') D '; }
until_true 20 is_stuck || fail 'no thread of it waits for the file system: this test shows nothing'
until_true 20 flock -n "$SCRATCH/n1/sluiced.lock" true || fail 'its other threads keep the lock'
start n2 --role node --name n1 --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/n1"
join $bob later | grep -q '"segment"' || fail "the next one: $(join $bob later)"
exit 0
