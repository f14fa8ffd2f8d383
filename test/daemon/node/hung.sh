#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A file system whose server does not answer: the node goes on serving all others, whether a user
# brought it or the policy names it, and jobs on it are metered all the same.
set -u
. test/lib/site.bash
two_users
need python3 bindfs
mkdir -m 755 "$SCRATCH"/{n1,real,hung,site}
mkdir -m 777 "$SCRATCH/real/tree"
uncached=(-o 'attr_timeout=0,entry_timeout=0')
log=$SCRATCH/bindfs.log
bindfs -f "${uncached[@]}" "$SCRATCH/real" "$SCRATCH/hung" >"$log" 2>&1 &
his=$!
bindfs -f "${uncached[@]}" "$SCRATCH/real" "$SCRATCH/site" >"$log" 2>&1 &
sites=$!
over() {
  kill -CONT "$his" "$sites" 2>/dev/null
  umount -l "$SCRATCH/hung"
  umount -l "$SCRATCH/site"
  wait "$his" "$sites"
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
join() { # UID JOB [LIMIT]
  ask "$1" "{\"verb\": \"join\", \"job\": \"$2\"${3:+, \"limits\": [\"$3\"]}}"
}
join $ann before | grep -q '"segment"' || fail "before: $(join $ann before)"

kill -STOP "$his" "$sites"
# Hers: refused, and nobody waits for it.
for i in 1 2 3 4 5; do
  join $ann "a$i" "stat=5/s@$SCRATCH/hung/tree" >"$SCRATCH/out" || fail "no answer: $i"
  grep -q 'does not answer' "$SCRATCH/out" || fail "hung: $(cat "$SCRATCH/out")"
done
# The policy's: taken as it was.
join $bob his >"$SCRATCH/out" || fail 'no answer to another user'
grep -q '"segment"' "$SCRATCH/out" || fail "another user: $(cat "$SCRATCH/out")"
record=$(cat "$SCRATCH/n1/jobs"/*his/job.json)
grep -q 'metadata@scratch' <<<"$record" || fail "not metered: $record"
as $bob timeout 60 "$SLUICE" --run-dir "$SCRATCH/n1" jobs >"$SCRATCH/out" || fail 'jobs'

kill -CONT "$his" "$sites"
answers() {
  join $ann after "stat=5/s@$SCRATCH/hung/tree" >"$SCRATCH/out" &&
    grep -q '"segment"' "$SCRATCH/out"
}
until_true 60 answers || fail "after it answers again: $(cat "$SCRATCH/out")"
exit 0
