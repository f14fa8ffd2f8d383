#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# VOPs of what a disk does, shared by a node's daemon: two jobs that read what the page cache lacks
# get what their weights say, and one that reads what it has is held by nobody and takes nothing.
set -u
. test/lib/lib.sh
own_mounts
. test/lib/node.bash
jobs=
trap 'kill $jobs 2>/dev/null; wait $jobs 2>/dev/null; end_node; umount "$DATA" 2>/dev/null' EXIT
own_ext4 "$DATA" || skip 'needs an ext4 of its own'
grep -Eq '^Seccomp:[[:space:]]*0' /proc/self/status || skip 'below a filter sizes count'
for name in a b hot; do head -c 8388608 /dev/urandom >"$DATA/$name"; done
sync -f "$DATA"
cat >"$SCRATCH/s.cost.json" <<'C'
{"version": 1, "max_vops": 800, "provisionable_vops": 400, "charge": "device",
 "read": [[4096, 1], [65536, 4]], "write": [[4096, 1], [65536, 4]], "ops": {"open": 0.5}}
C
cat >"$SCRATCH/policy.json" <<P
{"targets": {"s": {"path": "$DATA", "cost": "s.cost.json", "capacity": {"vops": "calibrated"}}},
 "classes": {"gold": {"s": {"vops": {"weight": 3}}}, "tin": {"s": {"vops": {"weight": 1}}}}}
P
start_node
work() { # CLASS JOB CODE
  $S run --class "$1" --job "$2" --no-summary -- python3 -c "import os
f = os.open('$DATA/$2', os.O_RDONLY)
def cold():
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_RANDOM)
while True: $3" &
  jobs="$jobs $!"
}
cat "$DATA/hot" >/dev/null
work gold a '[cold(), [os.pread(f, 4096, 8192 * i) for i in range(500)]]'
work tin b '[cold(), [os.pread(f, 4096, 8192 * i) for i in range(500)]]'
work tin hot '[os.pread(f, 65536, 65536 * i) for i in range(100)]'
of() { echo "[s for j in d if j['job'] == '$1' for s in j['streams']][0]"; }
holds() { is True "$1"; }
shares() {
  until_true 60 holds "(abs($(of a)['served'] - 300) < 20 and abs($(of b)['served'] - 100) < 10 and
    $(of hot)['served'] < 2)"
}
shares || fail "not by what the disk did: $(field d)"
calls_of() { $S --json stat hot | python3 -c 'import json, sys
print(sum(c["calls"] for c in json.load(sys.stdin)["calls"]))'; }
# By sizes it would have got through 100 reads a second.
first=$(calls_of)
has_read() { [ "$(calls_of)" -gt $((first + 20000)) ]; }
until_true 60 has_read || fail "what is cached is held: $first, $(calls_of)"
exit 0
