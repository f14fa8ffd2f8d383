# SPDX-License-Identifier: Apache-2.0
# What the tests of durable targets share. Sourced after nothing: it sources test/lib/lib.sh itself.
. test/lib/lib.sh

DATA=$SCRATCH/data
mkdir -p "$DATA"

# with_fake HOW: from now on sluice finds a log daemon without a log beside it; see order_fake.cc.
with_fake() {
  export ORDER_FAKE=$1
  [ -e "$SCRATCH/fake/bin/sluice" ] && return
  mkdir -p "$SCRATCH/fake/bin" "$SCRATCH/fake/lib"
  cp "$SLUICE" "$SCRATCH/fake/bin/sluice"
  cp "$SLUICE_LIB" "$SCRATCH/fake/lib/libinterpose.so"
  cp "$PROGRAMS/order_fake" "$SCRATCH/fake/bin/sluice-order"
  SLUICE=$SCRATCH/fake/bin/sluice
}

# durable CMD…: with $DATA durable, or what ORDER says it is.
durable() {
  timeout -s KILL "${TIME:-60}" "$SLUICE" --run-dir "$SCRATCH/run" run \
    --order "${ORDER:-durable}@$DATA" --report "$SCRATCH/report.json" --no-summary "$@"
}
ordered() { ORDER=ordered durable "$@"; }

# log_daemon PID: the process of the log daemon that this sluice run has.
log_daemon() {
  local i pid
  for i in $(seq 1200); do
    pid=$(pgrep -P "$1" -x sluice-order) && echo "$pid" && return
    sleep 0.05
  done
  fail "no log daemon below $1"
}

# grown FILE BYTES: waits until the program has come so far.
grown() {
  local i
  for i in $(seq 1200); do
    [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -ge "$2" ] && return
    sleep 0.05
  done
  fail "$1 has fewer than $2 bytes after a minute"
}

# mark_of FILE: its mark in hex, or nothing.
mark_of() {
  python3 -c 'import os, sys
try: print(os.getxattr(sys.argv[1], "user.sluice.order").hex())
except OSError: pass' "$1"
}

# What may happen to a log daemon.
killed() { kill -KILL "$1"; }
stopped() {
  kill -STOP "$1"
  sleep 1
  kill -CONT "$1"
}
left_alone() { :; }

# loop WHAT: four threads write and fsync for 3 s; meanwhile WHAT happens to the log daemon. None of
# that may fail or hang.
loop() {
  local sluice_pid daemon count longest
  rm -f "$DATA"/loop*
  "$SLUICE" --run-dir "$SCRATCH/run" run --order "${ORDER:-durable}@$DATA" --no-summary \
    --report "$SCRATCH/report.json" -- \
    timeout -s KILL 60 "$PROGRAMS/order_loop" "$DATA" 4 3000 >"$SCRATCH/counts" 2>"$SCRATCH/said" &
  sluice_pid=$!
  daemon=$(log_daemon $sluice_pid) || exit 1
  grown "$DATA/loop0" 1
  "$1" "$daemon"
  wait $sluice_pid || fail "$1: the program ended with $?: $(cat "$SCRATCH/said")"
  read -r count longest <"$SCRATCH/counts"
  [ "$count" -gt 20 ] || fail "$1: only $count fsyncs"
  [ "$longest" -lt 10000 ] || fail "$1: one fsync took $longest ms"
}

power_cut=${BUILD:-build}/test/crash/power_cut

# What on_broken_disk needs, asked for where a reason to skip is still seen.
need_broken_disk() {
  [ "$(id -u)" = 0 ] && [ -e /dev/fuse ] && [ -e /dev/loop-control ] ||
    skip 'needs root, /dev/fuse and loop devices'
  [ -x "$power_cut" ] || skip 'needs libfuse3-dev to be built'
}

# on_broken_disk COMMAND...: with DISK set to a file system, and REFUSE to the file that takes what
# its disk is to refuse ("DISK KINDS AFTER COUNT", see recorder.h); in the command's environment
# only.
on_broken_disk() { "$power_cut" disk ext4 0 "$@"; }
