#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Standard error that cannot be written, full or closed, changes nothing of what `sluice run` does:
# the program runs, also when the daemon of its journal is killed, its status is told, and the
# report is there. The journal never stands where messages go.
. test/lib/lib.sh
need setsid
DIR=$SCRATCH/dir
mkdir "$DIR"
S="$SLUICE --no-daemon --run-dir $SCRATCH/run"

for to in /dev/full closed; do
  case $to in
    closed) mute() { "$@" 2>&-; } ;;
    *) mute() { "$@" 2>"$to"; } ;;
  esac
  mute $S run --no-summary --limit open=1000/s -- sh -c 'exit 7'
  [ $? = 7 ] || fail "$to: status $?"
  # There is no daemon that knows the class: that is warned of.
  mute "$SLUICE" --run-dir "$SCRATCH/run" run --no-summary --class gold -- touch "$SCRATCH/ran"
  [ -e "$SCRATCH/ran" ] || fail "$to: with a warning it does not run"
  rm -f "$SCRATCH/ran" "$SCRATCH/report.json"
  mute $S run --summary --report "$SCRATCH/report.json" --limit open=1000/s -- true
  [ $? = 0 ] && [ -s "$SCRATCH/report.json" ] || fail "$to: no report beside a summary"

  rm -f "$SCRATCH/go_on"
  mkfifo "$SCRATCH/go_on"
  cat >"$SCRATCH/work.py" <<'P'
import os, sys
fd = os.open(sys.argv[1] + "/file", os.O_CREAT | os.O_WRONLY)
for i in range(20):
    os.write(fd, b"x" * 100)
    os.fsync(fd)
open(sys.argv[2]).read()
for i in range(20):
    os.write(fd, b"x" * 100)
    os.fsync(fd)
sys.exit(5)
P
  mute $S run --no-summary --order "durable@$DIR" --report "$SCRATCH/report.json" -- \
    python3 "$SCRATCH/work.py" "$DIR" "$SCRATCH/go_on" &
  job=$!
  journal() { pgrep -f "^[^ ]*sluice-order serve .*$DIR"; }
  until_true journal >"$SCRATCH/pid" || fail "$to: no journal"
  until_true test -s "$DIR/file" || fail "$to: the program does not begin"
  order=$(cat "$SCRATCH/pid")
  case $(readlink "/proc/$order/fd/2") in
    *sluice-order*) fail "$to: the journal is where messages go" ;;
  esac
  kill -9 "$order"
  echo >"$SCRATCH/go_on"
  wait "$job"
  [ $? = 5 ] || fail "$to: the journal's daemon was killed: status $?"
  [ "$(stat -c %s "$DIR/file")" = 4000 ] || fail "$to: $(stat -c %s "$DIR/file") bytes"
  rm -rf "$DIR/file" "$DIR"/.sluice-order*
done
exit 0
