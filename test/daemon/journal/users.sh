#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sluice order on a node whose sluiced keeps journals: a file of a job is open, then durable, then
# safe itself, as its program goes on; a user sees his own jobs and journal and no more, root all.
# A journal ends when its user has had no job for a while, and there is room for so many of them.
set -u
. test/lib/journals.bash
python=/usr/bin/python3 # one that everybody can reach
as $bob "$python" -c 'import json' 2>/dev/null || skip "needs $python"
start node --role node --name n1 --run-dir "$RUN" --policy "$SCRATCH/policy.json" \
  --journal "$SCRATCH/log" --journal-size 4MiB --journal-total 8MiB --journal-idle 1s
metric() { curl -s "http://$METRICS/metrics" | sed -n "s/^$1 //p"; }
has() { [ "$(metric "$1")" = "$2" ]; }

# A program that writes, and goes on when it is told to.
cat >"$SCRATCH/steps.py" <<'END'
import os, sys, time
path, talk = sys.argv[1:]
def told(step):
    with open(talk + ".at", "a") as at:
        at.write(step)
    while step not in open(talk + ".go").read():
        time.sleep(0.02)
fd = os.open(path + "/file", os.O_RDWR | os.O_CREAT, 0o600)
os.write(fd, b"x" * 8192)
told("0")
os.fsync(fd)  # from now on it is held, and what is written is noted
os.pwrite(fd, b"y" * 8192, 0)
told("1")
os.fsync(fd)
told("2")
END
mkdir -m 777 "$SCRATCH/talk"
began() { # USER NAME: a job of that name
  mkdir -m 777 "$SCRATCH/data/$2"
  : >"$SCRATCH/talk/$2.go"
  as "$1" "$SLUICE" --run-dir "$RUN" run --job "$2" -- "$python" "$SCRATCH/steps.py" \
    "$SCRATCH/data/$2" "$SCRATCH/talk/$2" 2>"$SCRATCH/$2.err" &
  pids+=("$!")
  until_true 60 test -s "$SCRATCH/talk/$2.at" || fail "$2 does not run: $(cat "$SCRATCH/$2.err")"
  until_true 60 is_served "$1" "$2" || fail "$2 is not served: $(cat "$SCRATCH/$1.json")"
  echo 0 >"$SCRATCH/talk/$2.go"
  until_true 60 grep -q 1 "$SCRATCH/talk/$2.at" || fail "$2 does not sync: $(cat "$SCRATCH/$2.err")"
}
is_served() { # USER NAME
  order "$1" && json "$SCRATCH/$1.json" '[j["job"] for j in d["jobs"]]' | grep -q "'$2'"
}
order() { # UID WORDS…
  local uid=$1
  shift
  as "$uid" "$SLUICE" --run-dir "$RUN" --json order "$@" >"$SCRATCH/$uid.json" 2>"$SCRATCH/err"
}
seen() { # UID EXPRESSION over that user's picture, d
  order "$1" && json "$SCRATCH/$1.json" "$2"
}
shown() { cat "$SCRATCH/$1.json"; }
is() { [ "$(seen "$1" "$2")" = "$3" ]; }
job() { echo "[j for j in d['jobs'] if j['job'] == '$1'][0]$2"; }

began $ann hers
began $bob his
is $ann '[j["job"] for j in d["jobs"]]' "['hers']" || fail "ann sees $(shown $ann)"
is $bob '[j["job"] for j in d["jobs"]]' "['his']" || fail "bob sees $(shown $bob)"
is 0 'sorted(j["job"] for j in d["jobs"])' "['hers', 'his']" || fail "root: $(shown 0)"
files() { echo "[$(printf "'$SCRATCH/log/%s/own/journal', " "$@" | sed 's/, $//')]"; }
is 0 'sorted(j["file"] for j in d["journals"])' "$(files $ann $bob)" || fail "root: $(shown 0)"
is 0 '{j["state"] for j in d["journals"]}' "{'serving'}" || fail "root: $(shown 0)"
is $ann '[j["file"] for j in d["journals"]]' "$(files $ann)" || fail "ann: $(shown $ann)"
is $bob '[j["file"] for j in d["journals"]]' "$(files $bob)" || fail "bob: $(shown $bob)"
until_true has sluice_journal_served 1 || fail 'the metrics do not say that all are served'
# Metrics are told once a cycle: these may be from before the second one was served.
has_room_of_both() { [ "$(metric sluice_journal_room_bytes)" -gt $((7 << 20)) ]; }
until_true has_room_of_both || fail 'the room is not that of both'
order $bob hers && fail "bob looks at ann's job"
grep -q 'no job hers' "$SCRATCH/err" || fail "bob is told $(cat "$SCRATCH/err")"
order 0 "$ann@hers" || fail "root does not find $ann@hers: $(cat "$SCRATCH/err")"
as $bob cat "$RUN/journals/$ann" >/dev/null 2>&1 && fail 'a user reads the status of a log'
as $bob ls "$SCRATCH/log/$ann/own" >/dev/null 2>&1 && fail "bob looks into ann's journal"

# There is no room for a third: that job has the fsync of its files, and root is told why.
"$SLUICE" --run-dir "$RUN" run --job third --no-summary -- "$python" -c \
  'import os, sys; os.fsync(os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)); sys.stdin.read()' \
  "$SCRATCH/data/third" < <(until [ -e "$SCRATCH/over" ]; do sleep 0.1; done) &
third=$!
until_true 20 test -e "$SCRATCH/data/third" || fail 'without room for its journal no job runs'
why='[j["why"] for j in d["journals"] if j["uid"] == 0]'
until_true 20 is 0 "$why" "['2 journals of 4 MiB are all that journal-total allows']" ||
  fail "root is not told: $(shown 0)"
has sluice_journal_served 0 || until_true has sluice_journal_served 0 || fail 'all are served?'

# Written, and not asked for.
is $ann "$(job hers '["open"]["bytes"]')" 8192 || fail "open: $(shown $ann)"
is $ann "$(job hers '["open"]["files"]')" 1 || fail "open: $(shown $ann)"
is $ann "$(job hers '["durable"]["files"]')" 0 || fail "durable: $(shown $ann)"
order $ann hers || fail "ann's job: $(cat "$SCRATCH/err")"
name=$(json "$SCRATCH/$ann.json" "$(job hers '["files"][0]["name"]')")
[ "$name" = "$SCRATCH/data/hers/file" ] ||
  fail "the file has no name: $(shown $ann)"

# Asked for: no longer open, and soon at home, by the log or by a sync. The other's stays open.
echo 1 >"$SCRATCH/talk/hers.go"
until_true grep -q 2 "$SCRATCH/talk/hers.at" || fail 'the fsync does not return'
is $ann "$(job hers '["open"]["files"]')" 0 || fail "still open: $(shown $ann)"
# On a machine that is busy enough a living daemon may be silent for a moment, or taken for absent.
native=$(job hers '["fsync"]["native"]')
is 0 "$(job hers '["fsync"]["answered"]') + $native['silent'] + $native['absent']" 2 ||
  fail "not counted: $(shown 0)"
is $bob "$(job his '["open"]["bytes"]')" 8192 || fail "bob's: $(shown $bob)"
log="[j for j in d['journals'] if j['uid'] == $ann][0]"
at_home() {
  is 0 "$(job hers '["durable"]["files"]') + $log['durable']['files']" 0 &&
    is 0 "$log['logged'] == 0 or $log['checkpoints'] > 0" True &&
    is 0 "$log['logged'] + $log['synced'] >= $(job hers '["fsync"]["answered"]')" True
}
until_true at_home || fail "not at home: $(shown 0)"

# For people, and again and again.
as 0 "$SLUICE" --run-dir "$RUN" order --watch -n 2 -i 0.1 >"$SCRATCH/out" || fail '--watch'
[ "$(grep -c '^journal ' "$SCRATCH/out")" = 6 ] || fail "--watch: $(cat "$SCRATCH/out")"
as $ann "$SLUICE" --run-dir "$RUN" order hers >"$SCRATCH/out" || fail 'a job for people'
grep -q 'by the program itself' "$SCRATCH/out" || fail "a job: $(cat "$SCRATCH/out")"
as $ann "$SLUICE" --run-dir "$RUN" order -i 0 2>"$SCRATCH/err"
[ $? = 2 ] || fail 'an interval of nothing was taken'

# When they have no job any more, their journals end, and there is room.
for name in hers his; do echo 12 >"$SCRATCH/talk/$name.go"; done
until_true 20 is 0 '[j["uid"] for j in d["journals"]]' '[0]' || fail "they stay: $(shown 0)"
until_true 20 is 0 '[j["state"] for j in d["journals"]]' "['serving']" || fail "room: $(shown 0)"
[ ! -e "$SCRATCH/log/$ann" ] && [ ! -e "$RUN/journals/$ann" ] || fail 'her journal is still there'
touch "$SCRATCH/over"
wait $third || fail "the third job: $?"
stop "$PID"
[ -z "$(ls "$SCRATCH/log")" ] || fail "left: $(ls "$SCRATCH/log")"
