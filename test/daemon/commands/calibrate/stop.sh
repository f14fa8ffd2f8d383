#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A calibration that is interrupted, or killed, leaves nothing on the file system; the next one
# removes what a killed one could not, goes on where it was, and removes what it kept for that.
# timeout: 300
set -u
. test/lib/lib.sh
own_mounts
. test/daemon/commands/calibrate/calibrate.bash
[ -n "${HAS_OWN_MOUNTS:-}" ] || skip 'needs root'
disk=$SCRATCH/disk out=$SCRATCH/costs.json
own_disk "$disk" 200
before=$(free_kib "$disk")

# Measured again in another order nothing would be the same: the samples are compared.
calibrate() { exec $SLUICE calibrate "$disk" -o "$out" --short --size 32MiB "$@" 2>"$SCRATCH/err"; }
samples() { cat "$out.state" 2>/dev/null | grep -c '"step"'; }
wait_for() { # COMMAND...
  for _ in $(seq 1000); do
    "$@" && return 0
    kill -0 $pid 2>/dev/null || fail "it ended: $(cat "$SCRATCH/err")"
    sleep 0.02
  done
  fail "never: $*"
}
has_samples() { [ "$(samples)" -ge "$1" ]; }
has_directory() { ls -d "$disk"/.sluice-calibrate.* >"$SCRATCH/found" 2>/dev/null; }
only='--only read/aligned/4096 --only op/ --only read/aligned/65536'

calibrate $only & pid=$!
wait_for has_samples 2
kill -INT $pid
wait $pid
[ $? = 130 ] || fail "after SIGINT: status $?, $(cat "$SCRATCH/err")"
grep -q 'interrupted; the same command goes on' "$SCRATCH/err" || fail "$(cat "$SCRATCH/err")"
[ ! -e "$out" ] || fail 'an output of an interrupted one'
nothing_left "$disk"
first=$(grep -m1 '"step"' "$out.state")

# Other options are not the same calibration.
$SLUICE calibrate "$disk" -o "$out" --short 2>"$SCRATCH/err"
[ $? = 2 ] && grep -q 'with other options; --restart begins anew' "$SCRATCH/err" ||
  fail "other options: $(cat "$SCRATCH/err")"

calibrate $only & pid=$!
wait_for has_directory
kill -KILL $pid
wait $pid 2>/dev/null
# Its children end after it, and until then it is not over.
until_true flock -n "$out.state" true || fail 'a process still measures'
grep -q "$(basename "$(cat "$SCRATCH/found")")" "$out.state" || fail 'the directory is not noted'
had=$(samples)
[ "$had" -ge 2 ] && grep -qF "$first" "$out.state" || fail 'what was measured is lost'
# A line that was cut off is nothing.
printf '{"step":"op/st' >>"$out.state"

calibrate $only & pid=$!
wait $pid || fail "the last: status $?, $(cat "$SCRATCH/err")"
grep -q "going on after $had measurements" "$SCRATCH/err" || fail "$(cat "$SCRATCH/err")"
nothing_left "$disk"
[ ! -e "$out.state" ] || fail 'the state is left'
$SLUICE cost show "$out" >/dev/null || fail 'the output'
for _ in $(seq 200); do
  [ "$(free_kib "$disk")" -ge $((before - 64)) ] && break
  sleep 0.05
done
[ "$(free_kib "$disk")" -ge $((before - 64)) ] || fail "space: $before, now $(free_kib "$disk")"
for _ in $(seq 200); do umount "$disk" 2>/dev/null && exit 0; sleep 0.05; done
fail 'a process still has the disk'
