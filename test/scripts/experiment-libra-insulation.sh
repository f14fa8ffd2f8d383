#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 300
# Two tenants with small and large requests on a disk of known speed: in VOPs each gets half of it,
# and the disk is used; in operations, in bytes and by a straight line they do not.
set -u
. test/scripts/experiment.bash
need fio losetup mkfs.ext4 unshare
scripts/experiments/libra-insulation --help >/dev/null || fail help
[ "$(id -u)" = 0 ] || skip 'needs root'
[ -d /sys/fs/cgroup/blkio ] || [ -e /sys/fs/cgroup/cgroup.controllers ] || skip 'needs cgroups'
experiment libra-insulation
json "$SCRATCH/libra-insulation.json" 'all(any(r["idea"] == i and r["mmr"] < 0.8 for r in d["rows"])
  for i in ("ops", "bytes", "linear"))' | grep -q True || fail "the other ideas do not differ"
