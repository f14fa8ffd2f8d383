#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# Two users of a node with journals: each has his own, served with his rights and no more. A file of
# his that never answers hangs neither, what he makes durable by himself empties his own, and when
# his stands still, is killed or damaged the other's is as before.
set -u
. test/lib/journals.bash
[ -w /dev/fuse ] || skip 'no FUSE here'
python=/usr/bin/python3 # one that everybody can reach
as $bob "$python" -c 'import json' 2>/dev/null || skip "needs $python"
LOGS="$SCRATCH/logs" MNT="$SCRATCH/data/mnt"
mkdir -m 777 "$MNT" "$SCRATCH/talk"
server=
over() {
  umount -f "$MNT" 2>/dev/null || umount -l "$MNT" 2>/dev/null
  [ -z "$server" ] || kill -9 "$server" 2>/dev/null
  kill -9 "${pids[@]}" 2>/dev/null
  wait
  umount -l "$SCRATCH/data"
  rm -rf "$SCRATCH"
}
trap over EXIT
python3 test/lib/hung_fuse.py "$MNT" "$SCRATCH/talk/armed" 2>"$SCRATCH/fuse.log" &
server=$!
until_true 20 test -e "$MNT/f" || skip "no FUSE here: $(cat "$SCRATCH/fuse.log")"
cat >"$SCRATCH/policy.json" <<END
{"targets": {"data": {"path": "$SCRATCH/data", "order": "durable"},
             "his": {"path": "$MNT", "order": "durable"}}}
END
start_keeping() {
  start "$1" --role node --name n1 --run-dir "$RUN" --policy "$SCRATCH/policy.json" \
    --journal "$LOGS" --journal-size 4MiB
}

# A program that appends and syncs, and does what it is told to.
cat >"$SCRATCH/work.py" <<'END'
import ctypes, os, sys, time
path, talk, fuse = sys.argv[1:]
fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
def told(word):
    try:
        os.rename(talk + "." + word, talk + "." + word + "-begun")
        return True
    except FileNotFoundError:
        return False
while not told("end"):
    os.write(fd, b"b" * 4096)
    os.fsync(fd)
    if told("sync"):
        ctypes.CDLL(None).syncfs(fd)
        open(talk + ".synced", "w").close()
    if told("hang"):
        dirty = os.open(fuse, os.O_RDWR)
        os.pwrite(dirty, b"dirty", 0)
        os.fsync(dirty)
    time.sleep(0.01)
END
began() { # USER NAME
  as "$1" "$SLUICE" --run-dir "$RUN" run --job "$2" --no-summary -- "$python" "$SCRATCH/work.py" \
    "$SCRATCH/data/$2" "$SCRATCH/talk/$2" "$MNT/f" 2>"$SCRATCH/$2.err" &
  pids+=("$!")
  until_true 30 logs_more "$1" "$2" || fail "$2: no journal: $(cat "$SCRATCH/$2.err" "$LOG")"
}
of_job() { # NAME EXPR over its row, j, as root sees it
  "$SLUICE" --run-dir "$RUN" --json order >"$SCRATCH/order.json" 2>>"$SCRATCH/err" &&
    json "$SCRATCH/order.json" "[$2 for j in d['jobs'] if j['job'] == '$1'][0]"
}
of_log() { # UID EXPR over its row, j
  "$SLUICE" --run-dir "$RUN" --json order >"$SCRATCH/order.json" 2>>"$SCRATCH/err" &&
    json "$SCRATCH/order.json" "[$2 for j in d['journals'] if j['uid'] == $1][0]"
}
logs_more() { # UID NAME: since it was asked last
  local now before=${had[$1]:--1}
  now=$(of_job "$2" 'j["fsync"]["journal"]' 2>/dev/null) || return 1
  had[$1]=$now
  [ "$now" -gt "$before" ] && [ "$before" -ge 0 ]
}
declare -A had=()
log_daemon() { of_log "$1" 'j["pid"]'; }
says() { [ "$(of_log "$1" 'j["state"]')" = "$2" ]; }

start_keeping node
began $ann hers
began $bob his

# His rights, and nothing else.
for user in $ann $bob; do
  status=/proc/$(log_daemon $user)/status
  for set in CapInh CapPrm CapEff CapAmb; do
    grep -q "^$set:.*0000000000000000" "$status" || fail "$user: $(cat "$status")"
  done
  [ "$(awk '$1 == "Uid:" {print $2, $3, $4, $5}' "$status")" = "$user $user $user $user" ] ||
    fail "$user: $(cat "$status")"
  grep -q '^NoNewPrivs:.*1' "$status" || fail "$user: could get new privileges"
  [ "$(stat -c %u:%a "$LOGS/$user" "$LOGS/$user/own" "$LOGS/$user/own/journal" | tr '\n' ' ')" = \
    "0:711 $user:700 $user:600 " ] || fail "$(ls -laR "$LOGS/$user")"
done
other=$(log_daemon $ann)
as $bob kill -CONT "$other" 2>/dev/null && fail "bob sends signals to the daemon of ann's journal"
as $bob ls -l "/proc/$(log_daemon $bob)/fd" >/dev/null 2>&1 &&
  fail "bob looks into a process that root has begun"

# A file of hers that he may write is not for his journal, which could not bring it home.
as $ann sh -c 'umask 0; : >"$1"' - "$SCRATCH/data/shared"
cat >"$SCRATCH/shared.py" <<'END'
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
for _ in range(40):
    os.write(fd, b"s" * 100)
    os.fsync(fd)
open(sys.argv[2] + ".shared", "w").close()
while not os.path.exists(sys.argv[2] + ".over"):
    time.sleep(0.02)
END
as $bob "$SLUICE" --run-dir "$RUN" run --job shared --no-summary -- "$python" "$SCRATCH/shared.py" \
  "$SCRATCH/data/shared" "$SCRATCH/talk/his" 2>"$SCRATCH/shared.err" &
pids+=("$!")
until_true 30 test -e "$SCRATCH/talk/his.shared" ||
  fail "bob cannot sync: $(cat "$SCRATCH/shared.err")"
[ "$(of_job shared 'j["fsync"]["journal"]')" = 0 ] || fail "bob's journal has a file of ann's"
touch "$SCRATCH/talk/his.over"

# What he syncs by himself empties his own journal, and not hers. Each comes home by itself as well,
# every few seconds, so what counts is whose does so more often while he syncs.
checkpoints() { of_log "$1" 'j["checkpoints"]'; }
batches() { of_log "$1" 'j["batches"]'; }
hers_are_told() { [ "$(batches $ann)" -gt "$her_batches" ]; }
his_grew() { [ $(($(checkpoints $bob) - his_before)) -gt 3 ]; }
sync_as_bob() {
  rm -f "$SCRATCH/talk/his.synced"
  touch "$SCRATCH/talk/his.sync"
  until_true 30 test -e "$SCRATCH/talk/his.synced" || fail "bob's sync does not return"
}
his_is_emptied_more() {
  his_before=$(checkpoints $bob) hers_before=$(checkpoints $ann)
  until_true 60 eval 'sync_as_bob; his_grew' || fail "bob's sync does not empty his journal"
  her_batches=$(batches $ann)
  until_true 30 hers_are_told || fail "ann's figures stand still: $(cat "$SCRATCH/order.json")"
  his_more=$(($(checkpoints $bob) - his_before)) hers_more=$(($(checkpoints $ann) - hers_before))
  [ "$hers_more" -lt "$his_more" ]
}
his_is_emptied_more || his_is_emptied_more || his_is_emptied_more ||
  fail "bob's syncs emptied his journal $his_more times, and ann's $hers_more times"

# His is killed: it is started again, and hers is the same.
kill -KILL "$(log_daemon $bob)"
until_true 20 grep -q "not served: fsync is native.*uid=$bob.*signal 9" "$LOG" ||
  fail "not told: $(cat "$LOG")"
until_true 30 says $bob serving || fail "not started again: $(cat "$LOG")"
until_true 30 logs_more $bob his || fail "bob's has nothing more: $(cat "$SCRATCH/order.json")"
[ "$(of_log $bob 'j["deaths"]')" = 1 ] || fail "$(cat "$SCRATCH/order.json")"
[ "$(of_log $ann 'j["deaths"]')" = 0 ] || fail "$(cat "$SCRATCH/order.json")"
[ "$(log_daemon $ann)" = "$other" ] || fail "bob's journal was killed, and ann's is another process"

# A file that he serves himself, and that never answers, hangs who syncs it; not his journal.
touch "$SCRATCH/talk/armed" "$SCRATCH/talk/his.hang"
is_stuck() {
  local pid
  for pid in $(pgrep -f "$SCRATCH/work.py $SCRATCH/data/his "); do
    grep -q ') D ' "/proc/$pid/stat" 2>/dev/null && return
  done
  return 1
}
until_true 30 is_stuck || fail "bob's program does not hang: this shows nothing: $(cat "$LOG")"
began $bob again
says $bob serving || fail "bob's: $(cat "$SCRATCH/order.json")"
umount -f "$MNT" 2>/dev/null || umount -l "$MNT"
kill -9 "$server"
wait "$server" 2>/dev/null
server=

# His stands still: hers goes on.
stopped=$(log_daemon $bob)
kill -STOP "$stopped"
until_true 30 says $bob silent || fail "bob's journal is not silent: $(of_log $bob j)"
had=()
for _ in 1 2 3; do
  until_true 20 logs_more $ann hers || fail "ann's stands still: $(cat "$SCRATCH/order.json")"
done
says $ann serving || fail "ann's: $(cat "$SCRATCH/order.json")"
kill -CONT "$stopped"
until_true 30 says $bob serving || fail "bob's journal stays silent: $(cat "$LOG")"

# All are killed at once, and hers is damaged: his comes home, and his jobs run.
keeper=$(pgrep -P "$PID" -x sluiced-journal)
work=$(pgrep -f "$SCRATCH/work.py" | tr '\n' ' ')
# shellcheck disable=SC2086
kill -9 "$PID" "$keeper" "$(log_daemon $ann)" "$(log_daemon $bob)" $work 2>/dev/null
until_true 20 sh -c "! kill -0 $keeper 2>/dev/null" || fail 'the keeper lives'
[ -s "$LOGS/$ann/own/journal" ] && [ -s "$LOGS/$bob/own/journal" ] ||
  fail "none left: $(ls -R "$LOGS")"
head -c 8192 /dev/zero | dd of="$LOGS/$ann/own/journal" conv=notrunc status=none
start_keeping again
until_true 20 grep -q "not served: fsync is native.*uid=$ann.*kept as it is" "$LOG" ||
  fail "nobody is told: $(cat "$LOG")"
runs() { as $bob "$SLUICE" --run-dir "$RUN" run -- true; }
until_true 20 runs 2>"$SCRATCH/err" || fail "bob's job: $(cat "$SCRATCH/err" "$LOG")"
as $ann "$SLUICE" --run-dir "$RUN" run -- true 2>"$SCRATCH/err"
[ $? = 2 ] && grep -q 'your journal on this node is not recovered' "$SCRATCH/err" ||
  fail "ann's job runs on files that lack something: $(cat "$SCRATCH/err")"
# He stops his: the node's end is not his to hold up, and his journal is empty after it.
until_true 30 says $bob serving || fail "bob's journal is not served: $(cat "$LOG")"
as $bob kill -STOP "$(log_daemon $bob)" || fail 'bob cannot stop what has his rights'
stop "$PID"
[ ! -e "$LOGS/$bob/own/journal" ] || fail "left by a process that was stopped: $(cat "$LOG")"

# Its keeper is killed: his journal is brought home all the same, and the next daemon has it served.
start_keeping last
until_true 20 runs 2>"$SCRATCH/err" || fail "bob's job: $(cat "$SCRATCH/err" "$LOG")"
until_true 30 says $bob serving || fail "bob's journal is not served: $(cat "$LOG")"
his=$(log_daemon $bob)
kill -9 "$(pgrep -P "$PID" -x sluiced-journal)"
until_true 30 sh -c "! kill -0 $his 2>/dev/null" || fail "bob's journal goes on without a keeper"
stop "$PID"
exit 0
