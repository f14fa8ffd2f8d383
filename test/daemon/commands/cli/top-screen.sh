#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# top on a terminal: draws, obeys keys and a new size, survives a silent daemon, and gives the
# terminal back as it was, when the user quits and when a signal ends it.
set -u
. test/lib/lib.sh
. test/daemon/commands/cli/fake.bash
need python3
fake=
trap 'kill $fake 2>/dev/null; rm -rf "$SCRATCH"' EXIT
stream() { # SUPPLY SERVED WAITERS
  echo "{\"supply\": \"$1\", \"demand\": null, \"grant\": 500, \"served\": $2,
    \"waiting\": $3, \"waiters\": $3, \"blocked\": 0.$3}"
}
job() { # NAME USER STREAM
  echo "{\"job\": \"$1\", \"user\": \"$2\", \"uid\": 1001, \"class\": \"gold\",
    \"nodes\": 1, \"processes\": 1,
    \"escaped\": [], \"state\": \"running\", \"override\": null, \"streams\": [$3]}"
}
many=$(for i in $(seq 60); do echo "$(job "many$i" zoe "$(stream data@home 0 0)"),"; done)
answer hello '{"role": "cluster", "name": "ctl"}'
answer top "{\"cycle\": 5, \"supplies\": [{\"supply\": \"metadata@scratch\", \"capacity\": 1000,
    \"granted\": 500, \"served\": 250, \"demand\": null}],
  \"jobs\": [$many $(job calm ann "$(stream metadata@scratch 400 0)"),
             $(job thirsty bob "$(stream metadata@scratch 100 5)")],
  \"nodes\": [{\"name\": \"n7\", \"role\": \"node\", \"state\": \"gone\", \"age_s\": 9, \"jobs\": 1,
               \"served\": {}, \"granted\": {}}], \"next\": null}"
answer explain '{"job": "thirsty"}'
answer pause '{"state": "paused"}'
start_fake
python3 - "$SLUICE" "$RUN" "$fake" "$SCRATCH/answers.json" <<'P'
import json, os, signal, sys
sys.path.insert(0, "test/lib")
import screen

sluice, run, fake, known = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]


def Screen():
    return screen.Screen([sluice, "--run-dir", run, "top", "-i", "0.5"])


s = Screen()
s.wait(r"cluster ctl")
s.wait(r"\[#+=+-+\].*JOB.*thirsty.*calm.*many")  # by waiting
s.key("s")
s.wait(r"by served")
s.wait(r"calm.*thirsty")
s.key("r")
s.wait(r"reversed")
s.wait(r"many.*rows 1-")
s.key("\x1b[F\x1bOF")  # End, however this terminal says it
s.wait(r"62 of 62")
s.key("/job=thir\n")
s.wait(r"/job=thir")
s.wait(r"JOB\s+USER[^~]*thirsty(?!.*many)")
s.key("n")
s.wait(r"NODE +ROLE")
s.key("n/\x1b")
s.wait(r"many")
s.key("?")
s.wait(r"less often")
s.key("x")
s.wait(r"JOB")
s.size(12, 50)
s.child.send_signal(signal.SIGWINCH)
s.wait(r"JOB")
s.wait(r"metadata@scratch served")  # no room for a bar
os.kill(fake, signal.SIGSTOP)
s.wait(r"no answer for")
os.kill(fake, signal.SIGCONT)
s.size(24, 120)
s.child.send_signal(signal.SIGWINCH)
s.wait(r"NODES +TREND")
s.wait(r"\| *[#*+=.:-]+\|")  # more than one look
s.key("/\x1bj")  # Escape: no filter; the cursor stays at calm, the last one
s.wait(r"by job")
s.wait(r"rows 1-")
s.key("p")
s.wait(r"pause 1001@calm\?  y yes")
s.key("n")
s.wait(r"Enter explain")
s.key("w\x1b[H\x1bOH")  # Home
s.wait(r"JOB.*thirsty.*calm")
s.key("p")
s.wait(r"pause 1001@thirsty\?  y yes")
answers = json.load(open(known))  # another job comes first meanwhile
answers["top"]["jobs"][-2]["streams"][0]["waiting"] = 9
with open(known + ".new", "w") as f:
    json.dump(answers, f)
os.rename(known + ".new", known)
s.wait(r"JOB.*calm.*thirsty.*pause 1001@thirsty\?  y yes")
s.key("y")
s.wait(r"1001@thirsty is paused.*another key: back")
s.key("x")
s.wait(r"JOB")
s.key("\r")
s.wait(r"thirsty.*another key: back")
s.key("x")
s.wait(r"JOB")
s.key("q")
s.end(0)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    s = Screen()
    s.wait(r"thirsty")
    s.child.send_signal(number)
    s.end(-number)
P
paused=$(asked '[q["job"] for q in r if q["verb"] == "pause"]')
[ "$paused" = "['1001@thirsty']" ] || fail "paused: $paused"
