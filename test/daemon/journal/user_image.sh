#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A user may mount a file system of his own by a line of /etc/fstab, and gives it the uuid of that
# which a journal is for. Nothing of the journal comes home to it, and it keeps nothing from coming
# home. A copy that root mounts does, for nobody can tell which is meant.
set -u
. test/lib/lib.sh
own_mounts
need python3
[ "$(id -u)" = 0 ] || skip 'needs root'
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
home=$SCRATCH/home
his=$SCRATCH/his
journal=$SCRATCH/journal
mkdir "$home" "$his"
truncate -s 64M "$SCRATCH/image" "$SCRATCH/copy"
mkfs.ext4 -q "$SCRATCH/image" 2>/dev/null && mount -o loop "$SCRATCH/image" "$home" ||
  skip 'needs mkfs.ext4 and loop devices'
uuid=$(blkid -s UUID -o value "$SCRATCH/image")
pids=
device=
cut=
end() {
  # shellcheck disable=SC2086
  [ -z "$pids" ] || kill -9 $pids 2>/dev/null
  umount -l "$his" "$home" "$SCRATCH"/of_bob/*/usb 2>/dev/null
  for one in $device $cut; do losetup -d "$one"; done
}
trap end EXIT

cat >"$SCRATCH/work.py" <<'END'
import os, sys, time
fd = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT, 0o600)
for block in range(40):
    os.pwrite(fd, b"%04d" % block * 1024, block * 4096)
    os.fsync(fd)
open(sys.argv[2], "w").close()
time.sleep(600)
END
sync -f "$home"
"$SLUICE" --run-dir "$SCRATCH/run" run --order "durable@$home" --order-journal "$journal" \
  --no-summary -- python3 "$SCRATCH/work.py" "$home" "$SCRATCH/done" 2>"$SCRATCH/err" &
run=$!
pids=$run
until_true 60 test -e "$SCRATCH/done" || fail "no work is done: $(cat "$SCRATCH/err")"
# All ends at one moment, and the disk is as it is then.
pids="$run $(pgrep -f "$SCRATCH/" | grep -vx "$$\|$run" | tr "\n" " ")"
# shellcheck disable=SC2086
kill -STOP $pids
cp "$SCRATCH/image" "$SCRATCH/cut"
# shellcheck disable=SC2086
kill -9 $pids
wait "$run" 2>/dev/null
pids=
until_true 30 umount "$home" 2>/dev/null || fail 'home is still in use'
echo 11111111-2222-3333-4444-555555555555 >"$SCRATCH/boot"
mount --bind "$SCRATCH/boot" /proc/sys/kernel/random/boot_id || skip 'no file can be mounted there'

mkfs.ext4 -q -U "$uuid" "$SCRATCH/copy" 2>/dev/null
device=$(losetup -f --show "$SCRATCH/copy")
touch "$SCRATCH/fstab"
mount --bind "$SCRATCH/fstab" /etc/fstab || skip 'no fstab can be mounted'
mount "$device" "$his" || fail 'no mount'
users() { echo "$device $his ext4 noauto,user 0 0" >"$SCRATCH/fstab"; }
recover() { # STATUS WORDS: what it ends with, and says
  timeout 100 "$SLUICE" recover "$journal" >"$SCRATCH/out" 2>&1
  local had=$?
  [ $had = "$1" ] || fail "$had: $(cat "$SCRATCH/out")"
  grep -q "$2" "$SCRATCH/out" || fail "does not say '$2': $(cat "$SCRATCH/out")"
}

# His is the only one that can be written.
cut=$(losetup -f --show "$SCRATCH/cut") # that can be written, for its own journal
mount -o ro "$cut" "$home" || fail 'no mount of what was cut'
users
recover 125 "uuid $uuid is not mounted for writing"

# Both can be, and root mounted both.
mount -o remount,rw "$home" || fail 'no mount for writing'
: >"$SCRATCH/fstab"
recover 125 'two mounted file systems have the uuid'

# Only root's counts.
users
recover 0 'brought home'
python3 - "$home/file" <<'END' || fail 'bytes that were acknowledged are lost'
import sys
want = b"".join(b"%04d" % block * 1024 for block in range(40))
sys.exit(open(sys.argv[1], "rb").read() != want)
END
[ -z "$(find "$his" -type f)" ] || fail "the user has: $(find "$his" -type f)"

# He renames a directory above his mount, which the line names by a tag: no note fits any more.
umount "$his" "$home"
mkdir -p "$SCRATCH/of_bob/x/usb"
chown -R $bob "$SCRATCH/of_bob"
mount "$device" "$SCRATCH/of_bob/x/usb" || fail 'no mount'
echo "LABEL=no-such-label $SCRATCH/of_bob/x/usb ext4 noauto,user 0 0" >"$SCRATCH/fstab"
at=$SCRATCH/of_bob/x/usb
doubted() {
  timeout 100 "$SLUICE" recover "$at/journal" >"$SCRATCH/out" 2>&1
  grep -q "of /etc/fstab has" "$SCRATCH/out" || fail "$1: $(cat "$SCRATCH/out")"
}
doubted 'as mounted'
mv "$SCRATCH/of_bob/x" "$SCRATCH/of_bob/y"
at=$SCRATCH/of_bob/y/usb
doubted 'renamed'
umount "$at"
exit 0
