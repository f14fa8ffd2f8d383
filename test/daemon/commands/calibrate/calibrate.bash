# SPDX-License-Identifier: Apache-2.0
# What the tests of `sluice calibrate` share: an ext4 of their own, on a disk of known speed. Such a
# test needs root; the mounts go with it (own_mounts), the limits are taken back here.

need python3 mkfs.ext4 losetup findmnt
limits=/sys/fs/cgroup/blkio/blkio.throttle
limited=

# own_disk DIR MIB: an ext4 of this size there.
own_disk() {
  mkdir -p "$1" && truncate -s "$2M" "$1.image" && mkfs.ext4 -q -m 0 "$1.image" &&
    mount -o loop "$1.image" "$1" || fail "no disk for $1"
}

# limit DIR REQUESTS BYTES: per second, of reads and of writes; 0 is no limit. False where this
# kernel cannot.
limit() {
  local device kind
  device=$(findmnt -no MAJ:MIN "$1" | tr -d ' ')
  [ -w "${limits}.read_iops_device" ] || return 1
  for kind in read write; do
    echo "$device $2" >"${limits}.${kind}_iops_device" || return 1
    echo "$device $3" >"${limits}.${kind}_bps_device" || return 1
  done
  limited="$limited $1"
}

unlimit() {
  local dir
  for dir in $limited; do limit "$dir" 0 0; done
}
trap unlimit EXIT

# nothing_left DIR: neither names nor space.
nothing_left() {
  local left
  left=$(ls -A "$1" | grep -vx lost+found)
  [ -z "$left" ] || fail "left in $1: $left"
}

# free_kib DIR
free_kib() { df --output=avail -k "$1" | tail -n 1; }
