#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# File systems that are full, read-only, or become so while they are calibrated: a clear error, and
# nothing is left behind.
# timeout: 200
set -u
. test/lib/lib.sh
own_mounts
. test/daemon/commands/calibrate/calibrate.bash
[ -n "${HAS_OWN_MOUNTS:-}" ] || skip 'needs root'
disk=$SCRATCH/disk out=$SCRATCH/costs.json
samples() { cat "$out.state" 2>/dev/null | grep -c '"step"'; }
refused() { # STATUS TEXT ARGS...
  local status=$1 text=$2
  shift 2
  $SLUICE calibrate "$disk" -o "$out" --short "$@" 2>"$SCRATCH/err"
  local got=$?
  [ $got = "$status" ] && grep -qE -- "$text" "$SCRATCH/err" ||
    fail "status $got, $(cat "$SCRATCH/err"); wanted $status, $text"
  [ ! -e "$out" ] || fail "an output after: $text"
}
own_disk "$disk" 200
refused 2 'a file of 4 GiB and as much for new ones' --size 4GiB
head -c 110M /dev/zero >"$disk/others"
refused 2 'are free; a file of 32 MiB .* stay free for others'
mount -o remount,ro "$disk"
refused 2 'is read-only, and a calibration writes'
mount -o remount,rw "$disk"
rm "$disk/others"
nothing_left "$disk"

# Others fill it in the middle.
$SLUICE calibrate "$disk" -o "$out" --short --size 32MiB 2>"$SCRATCH/err" &
pid=$!
for _ in $(seq 1000); do
  [ "$(samples)" -ge 2 ] && break
  sleep 0.02
done
fallocate -l $(($(free_kib "$disk") - 8192))K "$disk/others" || fail "cannot fill it"
wait $pid
[ $? = 125 ] && grep -q 'are free now, less than' "$SCRATCH/err" ||
  fail "filled up: $(cat "$SCRATCH/err")"
rm "$disk/others"
nothing_left "$disk"
[ ! -e "$out" ] && [ -e "$out.state" ] || fail 'the state of a calibration that can go on'

# The disk fails in the middle: ext4 takes nothing any more.
command -v xfs_io >/dev/null || exit 0
had=$(samples)
$SLUICE calibrate "$disk" -o "$out" --short --size 32MiB 2>"$SCRATCH/err" &
pid=$!
for _ in $(seq 1000); do
  [ "$(samples)" -gt "$had" ] && break
  sleep 0.02
done
xfs_io -x -c 'shutdown' "$disk" || exit 0
wait $pid
[ $? = 125 ] && grep -q "$disk: .*Input/output error" "$SCRATCH/err" ||
  fail "a failed disk: $(cat "$SCRATCH/err")"
[ ! -e "$out" ] || fail 'an output of a failed disk'
