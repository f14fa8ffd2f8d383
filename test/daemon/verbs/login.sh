#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A login node (--view cluster) shows users their own jobs on all nodes, through a relay too, and
# lets them lower and pause them; of others they see, change and learn nothing. Its root sees the
# node. Without the controller they are told so, and programs run.
set -u
. test/lib/lib.sh
own_mounts # jobs of these users that are there from elsewhere are not seen
. test/lib/site.bash
two_users
need python3
cat >"$SCRATCH/p.json" <<END
{"targets": {"scratch": {"path": "$SCRATCH/data", "capacity": {"metadata": "600/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 3}}},
             "bronze": {"scratch": {"metadata": {"weight": 1}}}},
 "control": {"nodes": "n1,login,login2", "default_class": "gold"}}
END
mkdir -m 755 "$SCRATCH"/{ctl,relay,n1,login,login2}
listens() { sed -n 's/.*listening address=\([^ ]*\).*/\1/p' "$LOG" | head -1; }
start ctl --role cluster --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/ctl" \
  --listen 'tcp://127.0.0.1:*' --plain
ctl=$(listens) controller=$PID ctl_log=$LOG
start relay --role relay --name r1 --parent "$ctl" --run-dir "$SCRATCH/relay" \
  --listen 'tcp://127.0.0.1:*' --plain
below=$(listens)
start n1 --role node --name n1 --parent "$ctl" --plain --run-dir "$SCRATCH/n1"
start login --role node --name login --parent "$ctl" --plain --run-dir "$SCRATCH/login" \
  --view cluster
start login2 --role node --name login2 --parent "$below" --plain --run-dir "$SCRATCH/login2" \
  --view cluster
at() { # UID PLACE WORDS…
  local uid=$1 place=$2
  shift 2
  as "$uid" "$SLUICE" --run-dir "$SCRATCH/$place" "$@"
}
job() { # UID NAME
  at "$1" n1 run --job "$2" --no-summary -- "$PROGRAMS/steady" 600 "$SCRATCH/data" \
    >"$SCRATCH/$2.out" 2>&1 &
  pids+=("$!")
}
job $ann annswork
job $bob bobswork
names() { # UID PLACE
  at "$1" "$2" --json jobs 2>"$SCRATCH/err" >"$SCRATCH/jobs" || return 1
  json "$SCRATCH/jobs" 'sorted((j["job"], j["nodes"]) for j in d)'
}
sees() { [ "$(names "$1" "$2")" = "$3" ]; }
both="[('annswork', 1), ('bobswork', 1)]"
until_true 30 sees 0 ctl "$both" || fail "the cluster: $(names 0 ctl) $(cat "$SCRATCH/err")"

for place in login login2; do
  until_true 20 sees $ann $place "[('annswork', 1)]" ||
    fail "$place: ann sees $(names $ann $place) $(cat "$SCRATCH/err")"
  sees $bob $place "[('bobswork', 1)]" || fail "$place: bob sees $(names $bob $place)"
  sees 0 $place '[]' || fail "$place: its root sees $(names 0 $place)"
  at $ann $place --json top --batch -n 1 >"$SCRATCH/top" || fail "$place: top"
  grep -q annswork "$SCRATCH/top" || fail "$place: top: $(cat "$SCRATCH/top")"
  grep -q bobswork "$SCRATCH/top" && fail "$place: top shows another's job"
  at $ann $place explain --job annswork >"$SCRATCH/out" || fail "$place: explain"
  grep -q 'It is in class gold' "$SCRATCH/out" || fail "$place: $(cat "$SCRATCH/out")"
  at $ann $place stat annswork >"$SCRATCH/out" || fail "$place: stat"
  reports() { # its history begins a look after the job was seen
    at $ann $place report --job annswork --last 10s >"$SCRATCH/out" 2>&1 &&
      grep -q 'metadata@scratch' "$SCRATCH/out"
  }
  until_true 20 reports || fail "$place: report: $(cat "$SCRATCH/out")"
  for words in 'explain --job' stat pause resume 'report --job'; do
    at $bob $place $words annswork >"$SCRATCH/out" 2>&1 && fail "$place: bob: $words"
    grep -qE 'no (such )?job' "$SCRATCH/out" || fail "$place: $words: $(cat "$SCRATCH/out")"
  done
  at $bob $place set $ann@annswork metadata=5/s >"$SCRATCH/out" 2>&1 && fail "$place: bob sets"

  # His own he may lower; the class is an operator's.
  at $ann $place set annswork class=bronze >"$SCRATCH/out" 2>&1 && fail "$place: ann sets a class"
  grep -q 'only an operator' "$SCRATCH/out" || fail "$place: class: $(cat "$SCRATCH/out")"
  at $ann $place set annswork metadata=50/s >"$SCRATCH/out" 2>&1 || fail "$(cat "$SCRATCH/out")"
  at $ann $place pause annswork >"$SCRATCH/out" 2>&1 || fail "$place: $(cat "$SCRATCH/out")"
  is_held() { "$SLUICE" --run-dir "$SCRATCH/ctl" --json jobs >"$SCRATCH/jobs" &&
    [ "$(json "$SCRATCH/jobs" '[j["state"] for j in d if j["job"] == "annswork"]')" = \
      "['$1']" ]; }
  is_held paused || fail "$place: not paused at the cluster"
  grep -q "changed by hand.*by_uid=$ann through=" "$ctl_log" || fail "$place: not in the log"
  at $ann $place resume annswork >/dev/null || fail "$place: resume"
  is_held running || fail "$place: not resumed"
done
grep -q 'through=login ' "$ctl_log" && grep -q 'through=r1 ' "$ctl_log" ||
  fail "who passed it on is not in the log: $(grep 'by hand' "$ctl_log")"
ask() { # UID PLACE REQUEST
  as "$1" /usr/bin/python3 - "$SCRATCH/$2/sluiced.sock" "$3" <<'P'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(sys.argv[2].encode())
print(s.recv(1 << 17).decode())
P
}
ask $ann login '{"verb": "policy-apply", "text": "{}"}' | grep -q error || fail 'policy-apply'
ask $ann ctl '{"verb": "policy"}' | grep -q '"error"' || fail 'anybody reads the policy'
ask $ann ctl '{"verb": "policy-log"}' | grep -q '"error"' || fail 'anybody reads old policies'
ask $ann login "{\"verb\": \"explain\", \"job\": \"$(printf '%9000s' x)\"}" |
  grep -q 'too large' || fail 'a question that is too large'
ask $ann login '{"verb": "history", "job": 5}' | grep -q '"error"' || fail 'a job that is a number'

# ---- without the controller ----
kill -STOP "$controller"
for place in login login2; do
  at $ann $place jobs >"$SCRATCH/out" 2>&1 && fail "$place: jobs of a hung controller"
  grep -q 'does not answer' "$SCRATCH/out" || fail "$place: hung: $(cat "$SCRATCH/out")"
  at $ann $place run -- true || fail "$place: a program beside a hung controller"
done
kill -CONT "$controller"
# The programs above had jobs, which a controller that did not hear of their end shows for 25 s.
until_true 60 sees $ann login "[('annswork', 1)]" || fail "after the pause: $(cat "$SCRATCH/err")"
exit 0
