#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 400
# Three tenants whose mixtures change get what they reserved beside a greedy neighbour, and a fourth
# that does not fit is refused. An unmodified db_bench gets the GETs and PUTs that it was promised
# while it compacts; with a reservation of what they cost alone it does not.
set -u
. test/scripts/experiment.bash
need fio db_bench losetup mkfs.ext4 unshare
scripts/experiments/libra-reservations --help >/dev/null || fail help
[ "$(id -u)" = 0 ] || skip 'needs root'
[ -d /sys/fs/cgroup/blkio ] || [ -e /sys/fs/cgroup/cgroup.controllers ] || skip 'needs cgroups'
experiment libra-reservations
is() { [ "$(json "$SCRATCH/libra-reservations.json" "$1")" = True ] || fail "not so: $1"; }
is 'd["refused"]["status"] == 2 and "500 VOP/s more than" in d["refused"]["why"]'
is 'min(d["stores"][0]["ratio"].values()) > min(d["stores"][1]["ratio"].values()) + 0.1'
exit 0
