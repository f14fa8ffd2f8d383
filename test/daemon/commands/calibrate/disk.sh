#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# disks
# starves
# Calibrations of a disk of known speed: costs are within 10 % of the analytic ones, three of them
# agree within 10 % at every point; or a point says that it is unstable. The file is refused for
# another mount, and a disk that has become slower is told.
# timeout: 400
set -u
. test/lib/lib.sh
own_mounts
. test/daemon/commands/calibrate/calibrate.bash
[ -n "${HAS_OWN_MOUNTS:-}" ] || skip 'needs root'
own_disk "$SCRATCH/disk" 200
limit "$SCRATCH/disk" 2000 52428800 || skip 'needs the throttle of cgroup v1 (blkio)'
for i in 1 2 3; do
  $SLUICE calibrate "$SCRATCH/disk" -o "$SCRATCH/$i.json" --short -q --size 32MiB \
    --only read/aligned --only write/aligned || fail "calibration $i: status $?"
done
nothing_left "$SCRATCH/disk"
python3 - "$SCRATCH" <<'E' || fail 'the costs'
import json, sys
costs, stable = {}, 0
for i in range(1, 4):
    d = json.load(open(f"{sys.argv[1]}/{i}.json"))
    for kind in "read", "write":
        assert len(d[kind]["aligned"]) == 7, d[kind]
        for p in d[kind]["aligned"]:
            if p.get("unstable"):
                continue
            stable += 1
            analytic = max(1, p["bytes"] * 2000 / 52428800)
            if not 0.9 <= p["cost"] / analytic <= 1.1:
                sys.exit(f"calibration {i}, {kind} {p['bytes']}: {p} for {analytic}")
            costs.setdefault((kind, p["bytes"]), []).append(p["cost"])
for point, seen in costs.items():
    if max(seen) > 1.1 * min(seen):
        sys.exit(f"{point}: {seen} and none says unstable")
print(stable, "of 42 stable")
if stable < 9:
    sys.exit("hardly one of them says that it is stable")
E
# A budget of a fifth: no more than that of what the disk can do, over the whole time.
reads() { awk -v disk="$(findmnt -no SOURCE "$SCRATCH/disk" | sed 's|/dev/||')" \
  '$3 == disk { print $4 }' /proc/diskstats; }
begun=$(date +%s%N) had=$(reads)
$SLUICE calibrate "$SCRATCH/disk" -o "$SCRATCH/slow.json" --short -q --size 32MiB --budget 20% \
  --only read/aligned/512 --only read/aligned/4096 || fail "with a budget: status $?"
per_s=$((($(reads) - had) * 1000000000 / ($(date +%s%N) - begun)))
[ $per_s -gt 0 ] && [ $per_s -lt 640 ] || fail "with a budget of 20 %: $per_s of 2000 reads/s"
# Of which mount it is true.
own_disk "$SCRATCH/other" 100
$SLUICE cost check "$SCRATCH/1.json" "$SCRATCH/other" >"$SCRATCH/out" 2>&1
[ $? = 2 ] && grep -q 'is not for .*/other: what is mounted is /dev/loop' "$SCRATCH/out" ||
  fail "another mount: $(cat "$SCRATCH/out")"
# A fifth of the speed is no noise.
limit "$SCRATCH/disk" 400 10485760
$SLUICE cost check "$SCRATCH/1.json" "$SCRATCH/disk" >"$SCRATCH/out" 2>&1
[ $? = 1 ] && grep -q 'DRIFTED' "$SCRATCH/out" || fail "a slower disk: $(cat "$SCRATCH/out")"
nothing_left "$SCRATCH/disk"
