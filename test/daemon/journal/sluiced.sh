#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# sluiced --journal: a process of its own keeps the journals of users, here of one. Whatever dies, a
# program that syncs all the while sees no error and no long wait, and all is served again; a
# journal that cannot be recovered is refused with the reason, and so are jobs that would use its
# files; SIGTERM leaves none. A journal of all users, as older versions kept it, comes home first.
set -u
. test/lib/node.bash
own_mounts
way=sent_back # by the log's daemon, which found no file system that it knows
own_ext4 "$DATA" && way=answered
other="$DATA/other" DATA="$DATA/jobs"
mkdir -p "$other" "$DATA"
need pgrep python3
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
LOGS="$SCRATCH/journals"
LOG="$LOGS/$(id -u)/journal"
cat >"$SCRATCH/policy.json" <<END
{"targets": {"data": {"path": "$DATA", "order": "durable"}}}
END
start_logging() { start_node --journal "$LOGS" --journal-size 4MiB; }
served() { [ "$(grep -c 'the journal is served' "$SCRATCH/log")" -ge "$1" ]; }
told() { tail -n 5 "$SCRATCH/log"; }
keeper() { pgrep -P "$NODE" -x sluiced-journal; }
log_daemon() { pgrep -P "$(keeper)" -x sluice-order; }
gone() { ! kill -0 "$1" 2>/dev/null; }
answered() { json "$SCRATCH/report.json" "d['order']['$way']"; }
records() { # LOG
  "$SLUICE" --json recover --dry-run "$1" >"$SCRATCH/recover.json" || fail "no log: $(told)"
  json "$SCRATCH/recover.json" 'd["records"]'
}

# Overwrites alone may all be synced at home; what is appended goes to the log.
cat >"$SCRATCH/append.py" <<'END'
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
until_s = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until_s:
    os.write(fd, b"b" * 4096)
    os.fsync(fd)
    time.sleep(0.005)
END
logs_something() {
  "$SLUICE" --run-dir "$RUN" --json order >"$SCRATCH/order.json" &&
    [ "$(json "$SCRATCH/order.json" 'sum(j["fsync"]["journal"] for j in d["jobs"]) > 0')" = True ]
}

start_logging
[ ! -e "$LOG" ] || fail 'a journal that nobody needs'
"$SLUICE" --run-dir "$RUN" run --report "$SCRATCH/report.json" --no-summary -- \
  timeout -s KILL 60 "$PROGRAMS/order_loop" "$DATA" 4 12000 >"$SCRATCH/counts" 2>"$SCRATCH/said" &
work=$!
"$SLUICE" --run-dir "$RUN" run -- python3 "$SCRATCH/append.py" "$DATA/loop-appended" 12 &
appends=$!
until_true 20 served 1 || fail "the log is not served: $(told)"
if [ "$(id -u)" = 0 ]; then
  bits=$((1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7))
  bits=$((bits | 1 << 19 | 1 << 21 | 1 << 28))
  wanted=$(printf '%016x' $bits)
  for pid in $(keeper) $(log_daemon); do
    grep -q "^CapPrm:.*$wanted" "/proc/$pid/status" || fail "$(grep Cap "/proc/$pid/status")"
    grep -q '^NoNewPrivs:.*1' "/proc/$pid/status" || fail 'the log could get new privileges'
  done
fi
[ $way = sent_back ] || until_true logs_something || fail "no log: $(cat "$SCRATCH/order.json")"

# The log's daemon dies, sluiced starts it again.
first=$(log_daemon) || fail 'no log daemon'
kill -KILL "$first"
until_true 20 served 2 || fail "killed, it was not started again: $(told)"
grep -q 'not served: fsync is native.*why=.*signal 9' "$SCRATCH/log" || fail "not told: $(told)"
[ "$(log_daemon)" != "$first" ] || fail 'it is the same process'

# sluiced dies: all goes home by itself, and the next one serves anew.
second=$(log_daemon) kept_by=$(keeper)
kill -KILL "$NODE"
wait "$NODE" 2>/dev/null
until_true 20 gone "$second" || fail 'sluiced was killed, and its log daemon lives'
until_true 20 gone "$kept_by" || fail 'sluiced was killed, and the keeper of its log lives'
[ ! -e "$LOG" ] || fail "sluiced was killed, and $(records "$LOG") records are left"
start_logging
until_true 20 served 3 || fail "not served by the next sluiced: $(told)"
wait $work || fail "the program ended with $?: $(cat "$SCRATCH/said")"
wait $appends || fail "the program that appends ended with $?"
read -r count longest <"$SCRATCH/counts"
[ "$count" -gt 20 ] || fail "only $count fsyncs"
[ "$longest" -lt 10000 ] || fail "one fsync took $longest ms"
[ "$(answered)" -gt 0 ] || fail "the log answered nothing: $(cat "$SCRATCH/report.json")"
for file in "$DATA"/loop*; do
  [ "$(tr -d b <"$file" | tr -d x | wc -c)" = 0 ] || fail "$file holds other bytes"
done

# --order joins the node's job and log; one of its own is for who names one.
"$SLUICE" --run-dir "$RUN" run --order "durable@$other" --report "$SCRATCH/report.json" \
  --no-summary -- "$PROGRAMS/order_loop" "$other" 1 1500 >/dev/null || fail "--order: $?"
[ ! -e "$other/.sluice-order.$(id -u).log" ] || fail '--order made a log beside that of the node'
[ "$(answered)" -gt 0 ] || fail "--order: nothing answered: $(cat "$SCRATCH/report.json")"
"$SLUICE" --run-dir "$RUN" run --order "durable@$other" --order-journal "$SCRATCH/own" \
  --no-summary -- "$PROGRAMS/order_loop" "$other" 1 200 >/dev/null || fail "--order-journal: $?"
[ -e "$SCRATCH/own" ] || fail '--order-journal was not heeded'

# Another log daemon for the same jobs is refused.
"${SLUICE%/*}/sluice-order" serve --jobs "$RUN/jobs" --journal "$SCRATCH/second" \
  --status "$RUN/journals/$(id -u)" 2>"$SCRATCH/err"
[ $? = 4 ] && grep -q 'another journal daemon serves' "$SCRATCH/err" ||
  fail "a second log daemon: $(cat "$SCRATCH/err")"

# SIGTERM: what a program has just synced is brought home first.
"$SLUICE" --run-dir "$RUN" run -- python3 "$SCRATCH/append.py" "$DATA/last" 12 &
work=$!
[ $way = sent_back ] || until_true 20 logs_something || fail "no log: $(cat "$SCRATCH/order.json")"
sleep 0.5
third=$(log_daemon) kept_by=$(keeper)
kill "$NODE"
wait "$NODE" || fail "SIGTERM: status $?: $(told)"
until_true 20 gone "$third" && until_true 20 gone "$kept_by" || fail 'something was left running'
[ ! -e "$LOGS/$(id -u)" ] || fail "SIGTERM left $(records "$LOG") records"
wait $work || fail "the program ended with $? when sluiced ended"

# All are killed at once: what the journal has is left.
start_logging
"$SLUICE" --run-dir "$RUN" run -- python3 "$SCRATCH/append.py" "$DATA/left" 600 2>"$SCRATCH/err" &
work=$!
until_true 20 served 4 || fail "the log is not served: $(told)"
[ $way = sent_back ] || until_true 20 logs_something || fail "no log: $(cat "$SCRATCH/order.json")"
writer=$(pgrep -f "$DATA/left" | tr '\n' ' ')
# shellcheck disable=SC2086
kill -KILL "$NODE" "$(keeper)" "$(log_daemon)" $writer
wait "$NODE" $work 2>/dev/null
[ -s "$LOG" ] || fail 'no journal is left'

# A log that cannot be read: kept as it is, told, and no job with a durable target begins: its files
# may lack what the log has. Those that ran go on, and others begin.
cp "$LOG" "$SCRATCH/good"
dd if=/dev/urandom of="$LOG" bs=4096 count=4 conv=notrunc status=none
cp "$LOG" "$SCRATCH/bad"
start_logging
until_true 20 grep -q 'not served: fsync is native.*kept as it is' "$SCRATCH/log" ||
  fail "nobody was told why: $(told)"
timeout 20 "$SLUICE" --run-dir "$RUN" run -- touch "$SCRATCH/began" 2>"$SCRATCH/err"
[ $? = 2 ] || fail "a durable job was not refused: $(cat "$SCRATCH/err")"
grep -q 'your journal on this node is not recovered' "$SCRATCH/err" || fail "$(cat "$SCRATCH/err")"
[ ! -e "$SCRATCH/began" ] || fail 'a refused job ran'
cp "$SCRATCH/policy.json" "$SCRATCH/durable.json"
echo '{"targets": {"data": {"path": "'"$DATA"'"}}}' >"$SCRATCH/policy.json"
kill -HUP "$NODE"
until_true 20 grep -q 'configuration read again' "$SCRATCH/log" || fail "not read again: $(told)"
timeout 20 "$SLUICE" --run-dir "$RUN" run -- "$PROGRAMS/order_loop" "$DATA" 2 300 >/dev/null ||
  fail "a job without a durable target: $?"
cp "$SCRATCH/durable.json" "$SCRATCH/policy.json"
cmp -s "$LOG" "$SCRATCH/bad" || fail 'a log that cannot be read was written'
cp "$SCRATCH/good" "$LOG"
kill -HUP "$NODE"
begins() { timeout 20 "$SLUICE" --run-dir "$RUN" run -- touch "$1"; }
until_true 20 begins "$SCRATCH/began" 2>/dev/null || fail "mended, no durable job: $(told)"
end_node

# A journal of all users, as older versions kept it: in a file that is named, or beside the new.
cp "$SCRATCH/good" "$SCRATCH/old"
"$SLUICED" --role node --name n1 --run-dir "$RUN" --metrics none --journal "$SCRATCH/old" \
  >"$SCRATCH/out" 2>&1
[ $? = 2 ] && grep -q 'name a directory for them.*What it held is at home' "$SCRATCH/out" ||
  fail "a journal of all users: $(cat "$SCRATCH/out")"
[ "$(records "$SCRATCH/old")" = 0 ] || fail "it has $(records "$SCRATCH/old") records"
cp "$SCRATCH/good" "$LOGS/log"
start_logging
[ ! -e "$LOGS/log" ] || fail "a journal of all users stays: $(told)"
end_node
cp "$SCRATCH/bad" "$LOGS/log"
start_logging
timeout 20 "$SLUICE" --run-dir "$RUN" run -- touch "$SCRATCH/began-old" 2>"$SCRATCH/err"
[ $? = 2 ] || fail "a durable job beside a damaged journal of all: $(cat "$SCRATCH/err")"
grep -q "no journals are kept.*$LOGS/log" "$SCRATCH/log" || fail "not told: $(told)"
cmp -s "$LOGS/log" "$SCRATCH/bad" || fail 'a journal that cannot be read was written'
rm "$LOGS/log"
kill -HUP "$NODE"
until_true 20 begins "$SCRATCH/began-old" 2>/dev/null || fail "mended, no durable job: $(told)"
end_node
