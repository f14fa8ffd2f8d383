#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A signal at any moment leaves no file, no process and a result of what was done; a target that is
# full, read-only or not there is told clearly; what others have in the target stays.
# timeout: 300
set -u
. test/daemon/commands/replay/replay.bash
replay="$(dirname "$SLUICE")/sluice-replay"
trap 'kill $pid 2>/dev/null; umount "$SCRATCH/full" 2>/dev/null; rm -rf "$SCRATCH"' EXIT
pid=
mkdir "$SCRATCH/d"
echo mine >"$SCRATCH/d/sluice-replay.other"
trace "$SCRATCH/t.csv" 1 open,close,getattr,mkdir,unlink \
  500,500,2000,100,200 500,500,2000,100,200 500,500,2000,100,200 500,500,2000,100,200 \
  500,500,2000,100,200 500,500,2000,100,200 500,500,2000,100,200 500,500,2000,100,200

until_true() {
  local i
  for i in $(seq 600); do "$@" && return; sleep 0.05; done
  return 1
}

# Those that were started, however deep.
children_of() { pgrep -f "sluice-replay $SCRATCH/t.csv" || true; }

for signal in INT TERM HUP; do
  # The moment, after its directory was made: while files are made, in full flow.
  for after in 0.02 0.15 1.2; do
    rm -f "$SCRATCH/r.json"
    "$replay" "$SCRATCH/t.csv" --target "$SCRATCH/d" --files 5000 --jobs 2 --processes 2 \
      -o "$SCRATCH/r.json" >"$SCRATCH/out" 2>&1 &
    pid=$!
    until ls -d "$SCRATCH"/d/sluice-replay.???????? >/dev/null 2>&1; do sleep 0.01; done
    [ $after != 1.2 ] || until [ -n "$(pgrep -P $pid)" ]; do sleep 0.05; done
    sleep $after
    kill -$signal $pid 2>/dev/null
    wait $pid
    status=$?
    case $signal:$status in
      INT:130 | TERM:143 | HUP:129) ;;
      *) fail "$signal after $after s: status $status: $(cat "$SCRATCH/out")" ;;
    esac
    [ "$(ls -A "$SCRATCH/d")" = sluice-replay.other ] ||
      fail "$signal after $after s: left behind $(ls -A "$SCRATCH/d")"
    [ -z "$(children_of)" ] || fail "$signal after $after s: still running: $(children_of)"
    ls "$SCRATCH" | grep -q '^r\.json\..*\|^\.r\.json' && fail "a temporary result is left"
  done
  [ "$(json "$SCRATCH/r.json" 'd["finished"]')" = False ] || fail "$signal: it says finished"
  between 500 "$(total "$SCRATCH/r.json" done getattr)" 12000 "$signal: stats done"
  between 0 "$(total "$SCRATCH/r.json" offered getattr)" 12000 "$signal: stats offered till then"
done

# A process that hangs in a call is ended: nobody lets it through.
S=$SLUICE\ --run-dir\ $SCRATCH/run
$S run --job held --no-summary --limit "rename=0@$SCRATCH/d" -- \
  "$replay" <(printf '# interval: 1s\ntime_s,rename,getattr\n0,50,50\n1,50,50\n') \
  --target "$SCRATCH/d" --files 20 -o "$SCRATCH/r.json" >"$SCRATCH/out" 2>&1 &
pid=$!
stats_done() { # those of the trace, and the rename waits
  $S --json stat held >"$SCRATCH/s.json" 2>/dev/null && $S --json top -n 1 >"$SCRATCH/top.json" &&
    [ "$(json "$SCRATCH/s.json" 'sum(c["calls"] for c in d["calls"] if c["op"] == "stat")')" \
      -ge 100 ] && grep -q '"waiters":1' "$SCRATCH/top.json"
}
until_true stats_done || fail "held up: $(cat "$SCRATCH/s.json" "$SCRATCH/top.json")"
kill -INT $pid
wait $pid
[ $? = 130 ] || fail "held up: status $?: $(cat "$SCRATCH/out")"
[ "$(ls -A "$SCRATCH/d")" = sluice-replay.other ] || fail "held up: left $(ls -A "$SCRATCH/d")"
between 0 "$(total "$SCRATCH/r.json" done rename)" 1 "held up: renames done"
between 90 "$(total "$SCRATCH/r.json" done getattr)" 110 "held up: stats"
between 1 "$(total "$SCRATCH/r.json" lag_max_s rename)" 10 "held up: lag of renames"

# A job that is killed from outside is an error, and the files still go.
"$replay" "$SCRATCH/t.csv" --target "$SCRATCH/d" --files 50 >"$SCRATCH/out" 2>&1 &
pid=$!
has_children() { [ -n "$(pgrep -P $pid)" ]; }
until_true has_children || fail 'no process of a job'
kill -KILL $(pgrep -P $pid)
wait $pid
[ $? = 125 ] || fail "killed job: status $?"
grep -q 'was ended by signal 9' "$SCRATCH/out" || fail "killed job: $(cat "$SCRATCH/out")"
[ "$(ls -A "$SCRATCH/d")" = sluice-replay.other ] || fail "killed job: left $(ls -A "$SCRATCH/d")"

# The one that started all is killed: its processes end. (The files stay: nobody is left to remove
# them; here the test does.)
"$replay" "$SCRATCH/t.csv" --target "$SCRATCH/d" --files 50 --processes 2 >/dev/null 2>&1 &
pid=$!
until_true has_children || fail 'no process of a job'
kill -KILL $pid
wait $pid 2>/dev/null
no_children() { [ -z "$(children_of)" ]; }
until_true no_children || fail "processes outlived the replay: $(children_of)"
rm -rf "$SCRATCH"/d/sluice-replay.????????
[ "$(cat "$SCRATCH/d/sluice-replay.other")" = mine ] || fail "a file of others was touched"

refused() { # STATUS TEXT TARGET [OPTION...]
  local status=$1 text=$2
  shift 2
  rm -f "$SCRATCH/r.json"
  "$replay" "$SCRATCH/t.csv" -o "$SCRATCH/r.json" --target "$@" >"$SCRATCH/out" 2>&1
  local got=$?
  [ $got = "$status" ] || fail "$*: status $got: $(cat "$SCRATCH/out")"
  grep -qF "$text" "$SCRATCH/out" || fail "$*: said $(cat "$SCRATCH/out")"
  [ ! -e "$SCRATCH/r.json" ] || fail "$*: a result was written"
}
refused 125 'No such file or directory' "$SCRATCH/nowhere/at/all"
refused 125 'Not a directory' "$SCRATCH/t.csv"
refused 125 'cannot' /proc
mkdir "$SCRATCH/full"
mount -t tmpfs -o size=256k,nr_inodes=200 none "$SCRATCH/full" 2>/dev/null ||
  skip 'all passed but the full disk: cannot mount here'
refused 125 'No space left on device' "$SCRATCH/full"
is_empty "$SCRATCH/full" full
# Full in the middle: the writes fail, and that is what the result says.
trace "$SCRATCH/t.csv" 1 write 1638400
"$replay" "$SCRATCH/t.csv" --target "$SCRATCH/full" --files 20 --depth 1 -o "$SCRATCH/r.json" \
  >"$SCRATCH/out" || fail "full later: status $?"
grep -q 'write: .* failed; the last one: No space left' "$SCRATCH/out" ||
  fail "full later: $(cat "$SCRATCH/out")"
is_empty "$SCRATCH/full" 'full later'
