#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# VOPs shared by a node's daemon: three jobs with requests of other sizes, or of metadata, get what
# their weights say of the file system; the policy carries its cost file; VOPs are shown as VOPs.
set -u
. test/lib/node.bash
jobs=
trap 'kill $jobs 2>/dev/null; end_node' EXIT
head -c 1048576 /dev/zero >"$DATA/data"
cat >"$SCRATCH/s.cost.json" <<'C'
{"version": 1, "max_vops": 800, "provisionable_vops": 400,
 "read": [[4096, 1], [65536, 4]], "write": [[4096, 1], [65536, 4]], "ops": {"stat": 0.5}}
C
shared() { # CLASSES
  cat <<P
{"targets": {"scratch": {"path": "$DATA", "cost": "s.cost.json",
                         "capacity": {"vops": "calibrated"}}},
 "classes": {$1}, "control": {"default_class": "tin"}}
P
}
shared '"gold": {"scratch": {"vops": {"reservation": "25%", "weight": 2}}},
        "tin": {"scratch": {"vops": {"weight": 1}}}' >"$SCRATCH/policy.json"
start_node
rm "$SCRATCH/s.cost.json" # it is in the policy

work() { # CLASS JOB CODE
  $S run --class "$1" --job "$2" --no-summary -- python3 -c "import os, sys
d = '$DATA'
f = os.open(d + '/data', os.O_RDONLY)
while True: $3" &
  jobs="$jobs $!"
}
work gold large 'os.pread(f, 65536, 0)'
work tin small 'os.pread(f, 4096, 0)'
work tin names 'os.stat(d + "/data")'
of() {
  echo "[s for j in d if j['job'] == '$1' for s in j['streams'] if s['supply'][:4] == 'vops'][0]"
}
holds() { is True "$1"; }
# 400 VOP/s by weight 2, 1, 1; nobody is below his reservation.
shares() {
  until_true holds "(abs($(of large)['served'] - 200) < 15 and
    abs($(of small)['served'] - 100) < 10 and abs($(of names)['served'] - 100) < 10)"
}
shares || fail "not by weight and reservation: $(field "$(of large)"), $(field "$(of small)"), \
$(field "$(of names)")"
$S explain --job large >"$SCRATCH/out"
grep -q 'vops@scratch: it may use .* VOP/s and used .* VOP/s' "$SCRATCH/out" ||
  fail "explain: $(cat "$SCRATCH/out")"
grep -q 'reservation 100 VOP/s' "$SCRATCH/out" || fail "explain: $(cat "$SCRATCH/out")"
$S top --batch -n 1 | grep -q '^small .* vops@scratch' || fail "top: $($S top --batch -n 1)"
$S set small vops@scratch=20/s | grep -q 'vops@scratch=20 VOP/s' || fail set
until_true holds "abs($(of small)['served'] - 20) < 3" || fail "the limit is not kept: $(field d)"
until_true holds "$(of large)['served'] > 240" || fail "what is left is not used: $(field d)"
$S set small vops@scratch=20MB/s 2>"$SCRATCH/err" && fail 'a limit in bytes was taken'
grep -q 'measured in virtual IOPs' "$SCRATCH/err" || fail "set: $(cat "$SCRATCH/err")"

# Reservations beyond the floor are refused with the arithmetic, by whoever reads the policy.
echo '{"version": 1, "max_vops": 800, "provisionable_vops": 400, "read": [[4096, 1], [65536, 4]],
 "write": [[4096, 1], [65536, 4]]}' >"$SCRATCH/s.cost.json"
shared '"gold": {"scratch": {"vops": {"reservation": "75%"}}},
        "tin": {"scratch": {"vops": {"reservation": "150/s"}}}' >"$SCRATCH/more.json"
for verb in 'policy check' 'policy apply'; do
  $S $verb "$SCRATCH/more.json" >"$SCRATCH/out" 2>"$SCRATCH/err"
  [ $? = 2 ] || fail "$verb took it: $(cat "$SCRATCH/out")"
  grep -q '300 VOP/s (gold) + 150 VOP/s (tin) = 450 VOP/s, 50 VOP/s more than the 400 VOP/s' \
    "$SCRATCH/err" || fail "$verb: $(cat "$SCRATCH/err")"
done
shared '"tin": {"scratch": {"vops": {"limit": "10%"}}}' >"$SCRATCH/policy.json"
$S policy check "$SCRATCH/policy.json" >"$SCRATCH/out" || fail 'policy check'
grep -q 'on scratch a small random request costs about 1 VOP: it gives 800 VOP/s at most' \
  "$SCRATCH/out" || fail "policy check: $(cat "$SCRATCH/out")"
$S policy apply "$SCRATCH/policy.json" >/dev/null || fail 'policy apply'
until_true holds "abs($(of names)['served'] - 40) < 6" || fail "the new policy: $(field d)"

# A user's own limit under the daemon, with a cost file that the daemon cannot read.
chmod 600 "$SCRATCH/s.cost.json"
$S run --limit "vops=10k/s@$DATA" --cost "$SCRATCH/s.cost.json" --no-summary \
  --report "$SCRATCH/r.json" -- dd if="$DATA/data" of=/dev/null bs=64k count=2 \
  status=none || fail 'a limit of its own'
[ "$(json "$SCRATCH/r.json" '[c["unit"] for c in d["channels"]]')" = "['vops', 'vops']" ] ||
  fail "the report: $(cat "$SCRATCH/r.json")"
