#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A person with many uids, those that /etc/subuid gives her, has the places of one at the local
# socket, and the jobs of one. Who finds no place is told so in one line, and the program runs.
set -u
. test/lib/lib.sh
own_mounts
. test/lib/node.bash
two_users
[ -n "${HAS_OWN_MOUNTS:-}" ] && [ -e /etc/subuid ] || skip 'needs mounts of its own, /etc/subuid'
python=/usr/bin/python3  # one that everybody can reach
as $ann "$python" -c 'import json' 2>/dev/null || skip "needs $python"
mkdir -m 1777 "$SCRATCH/tmp"
umask 022
first=700000
echo "$ann:$first:1000" >"$SCRATCH/subuid"
mount --bind "$SCRATCH/subuid" /etc/subuid || skip 'cannot mount a file'
policy 500/s
start_node

# Connects as each uid that it reads, asks, and keeps the connection or leaves it. Says the answer.
cat >"$SCRATCH/hold.py" <<'END'
import os, socket, sys
held = []
for line in sys.stdin:
    uid, *words = line.split(maxsplit=1)
    os.seteuid(int(uid))  # the kernel tells who connects
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(sys.argv[1])
    os.seteuid(0)
    try:
        s.send((words[0] if words else '{"verb":"hello"}').encode())
    except BrokenPipeError:
        pass  # refused: the reason can still be read
    print(uid, s.recv(1 << 17).decode(), flush=True)
    held = held + [s] if sys.argv[2] == "keep" else []
END
holder=
hold() { # NAME keep|leave: reads from descriptor 8, writes to $SCRATCH/NAME
  mkfifo "$SCRATCH/words.$1"
  python3 "$SCRATCH/hold.py" "$RUN/sluiced.sock" "$2" <"$SCRATCH/words.$1" >"$SCRATCH/$1" 2>&1 &
  holder=$!
  exec 8>"$SCRATCH/words.$1"
}
let_go() {
  exec 8>&-
  wait "$holder"
}
answers() { [ "$(wc -l <"$SCRATCH/$1")" = "$2" ]; }
ask() { # NAME COUNT UID [REQUEST]: the COUNT-th one
  echo "${@:3}" >&8
  until_true 60 answers "$1" "$2" || fail "no answer: $(cat "$SCRATCH/$1")"
}

# ---- places ----
hold places keep
ask places 1 $ann
ask places 2 $first
ask places 3 $((first + 1))
ask places 4 $((first + 999))
[ "$(grep -c '"role"' "$SCRATCH/places")" = 4 ] || fail "four places: $(cat "$SCRATCH/places")"
ask places 5 $((first + 2))
tail -n 1 "$SCRATCH/places" | grep -q 'too many connections' || fail 'a fifth place by a fifth uid'
ask places 6 $((first + 1000))
ask places 7 $bob
[ "$(grep -c '"role"' "$SCRATCH/places")" = 6 ] || fail "others: $(cat "$SCRATCH/places")"

# Who is refused at the greeting waits for a while, and the program runs: a line for each.
sluice() { # UID STATUS ARGS…
  as "$1" TMPDIR="$SCRATCH/tmp" "$SLUICE" --run-dir "$RUN" "${@:3}" >"$SCRATCH/out" \
    2>"$SCRATCH/err"
  local got=$?
  [ $got = "$2" ] || fail "${*:3}: status $got, not $2: $(cat "$SCRATCH/err")"
}
says() { grep -q "$1.*$RUN/sluiced.sock: too many connections at once.*try again" "$SCRATCH/err"; }
sluice $ann 7 run -q -- sh -c 'echo ran; exit 7'
[ "$(cat "$SCRATCH/out")" = ran ] || fail "the program: $(cat "$SCRATCH/out")"
[ "$(wc -l <"$SCRATCH/err")" = 2 ] || fail "not two lines: $(cat "$SCRATCH/err")"
says '^sluice: waiting: ' || fail "run: $(cat "$SCRATCH/err")"
says '^sluice: warning: running without a daemon: ' || fail "run: $(cat "$SCRATCH/err")"
sluice $ann 7 run -q --order "ordered@$SCRATCH/data" -- sh -c 'exit 7'
says '^sluice: warning: running without a daemon: ' || fail "run --order: $(cat "$SCRATCH/err")"
sluice $ann 0 jobs
says '^sluice: warning: ' || fail "jobs: $(cat "$SCRATCH/err")"
sluice $ann 125 policy get
says '^sluice: ' || fail "policy get: $(cat "$SCRATCH/err")"
sluice $bob 7 run -q -- sh -c 'exit 7'
[ ! -s "$SCRATCH/err" ] || fail "bob has a place: $(cat "$SCRATCH/err")"
let_go

# ---- jobs: each lives as long as the process that asked ----
hold jobs leave
for i in {1..32}; do
  ask jobs "$i" $((i % 2 ? ann : first + i)) "{\"verb\":\"join\",\"job\":\"j$i\"}"
done
[ "$(grep -c '"preload"' "$SCRATCH/jobs")" = 32 ] || fail "not 32: $(tail -n 1 "$SCRATCH/jobs")"
join='{"verb":"join","job":"more"}'
ask jobs 33 $((first + 500)) "$join"
tail -n 1 "$SCRATCH/jobs" | grep -q 'too many jobs' || fail 'one more job by one more uid'
ask jobs 34 $bob "$join"
tail -n 1 "$SCRATCH/jobs" | grep -q '"preload"' || fail "bob: $(tail -n 1 "$SCRATCH/jobs")"

# ---- the file changes ----
: >"$SCRATCH/subuid"
count=34
has_another() { ask jobs $((count += 1)) $((first + 600)) "$join" && tail -n 1 "$SCRATCH/jobs" |
  grep -q '"preload"'; }
until_true 20 has_another || fail "still hers: $(tail -n 1 "$SCRATCH/jobs")"
let_go
exit 0
