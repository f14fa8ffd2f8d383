#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 120
# A file system that gives less than its costs say is told of: the server takes 5 ms a look-up, and
# the cost file says that it ends 2000 a second. explain, top and the metrics say so.
set -u
. test/lib/lib.sh
own_mounts
. test/lib/node.bash
[ "$(id -u)" = 0 ] && [ -c /dev/fuse ] || skip 'needs root and /dev/fuse'
need curl
jobs=
end_all() {
  kill $jobs 2>/dev/null
  end_node
  umount -l "$DATA" 2>/dev/null
}
trap end_all EXIT
python3 test/lib/slow_server.py "$DATA" 5 &
until_true mountpoint -q "$DATA" || fail 'the slow server does not serve'

cat >"$SCRATCH/s.cost.json" <<'C'
{"version": 1, "max_vops": 2000, "provisionable_vops": 1000,
 "read": [{"bytes": 4096, "cost": 1, "per_s": 2000, "threads": 8}, [65536, 4]],
 "write": [[4096, 1], [65536, 4]], "ops": {"stat": 1}}
C
cat >"$SCRATCH/policy.json" <<P
{"targets": {"scratch": {"path": "$DATA", "cost": "s.cost.json",
                         "capacity": {"vops": "calibrated"}}}}
P
METRICS_AT=127.0.0.1:0
start_node
$S run --job storm --no-summary -- python3 -c 'import os, sys, threading
def go(n):
    while True: os.stat("%s/f%d" % (sys.argv[1], n))
for n in range(32): threading.Thread(target=go, args=(n,)).start()' "$DATA" &
jobs=$!

explained() {
  local words='vops@scratch: Its costs may be out of date. Busy, it gave .* VOP/s, and 1k VOP/s'
  $S explain --job storm >"$SCRATCH/out" && grep -q "$words were measured" "$SCRATCH/out"
}
until_true 60 explained || fail "explain: $(cat "$SCRATCH/out")"
$S --json top --batch -n 1 >"$SCRATCH/top.json"
[ "$(json "$SCRATCH/top.json" 'd["supplies"][0]["drift"]["state"]')" = less ] ||
  fail "top: $(cat "$SCRATCH/top.json")"
told() { [ "$(metric 'costs_fit{target="scratch"}')" = 0 ]; }
until_true told || fail "no metric: $(curl -s "http://$(metrics_at)/metrics" | grep scratch)"
exit 0
