#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 180
# A capacity that nobody wrote, on a real file system whose only server takes 5 ms a look-up: the
# node finds what it can do, makes room when machines without sluice come, takes it back when they
# go, and says why. A shadow only tells.
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

steered() { # MORE
  cat <<P
{"targets": {"scratch": {"path": "$DATA", "capacity": {"metadata":
   {"auto": true, "min": "10/s", "max": "20k/s", "latency": "60ms p90"$1}}}},
 "classes": {"tin": {"scratch": {"metadata": {"weight": 1}}}},
 "control": {"default_class": "tin"}}
P
}
storm='import os, sys, threading
def go(n):
    while True: os.stat("%s/f%d" % (sys.argv[1], n))
for n in range(32): threading.Thread(target=go, args=(n,)).start()'

steered '' >"$SCRATCH/policy.json"
$S policy check "$SCRATCH/policy.json" >"$SCRATCH/out" || fail 'policy check'
words='metadata steered from 10/s to 20k/s so that at most 10 % of the calls may take'
grep -q "$words longer than 60ms" "$SCRATCH/out" || fail "policy check: $(cat "$SCRATCH/out")"
METRICS_AT=127.0.0.1:0
start_node
$S run --job storm --no-summary -- python3 -c "$storm" "$DATA" &
jobs="$jobs $!"

# now EXPR: of the row of the supply, s.
now() {
  $S --json top -n 1 --batch >"$SCRATCH/top.json" 2>/dev/null &&
    json "$SCRATCH/top.json" "(lambda s: $1)(d['supplies'][0])"
}
holds() { [ "$(now "$1")" = True ]; }
# The mean of ten looks, a tenth of a second apart.
mean() {
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    now "s['capacity']"
    sleep 0.1
  done | python3 -c 'import sys; v = [float(x) for x in sys.stdin]; print(int(sum(v) / len(v)))'
}

until_true 60 holds "s['capacity'] > 40 and s['steered']['state'] in ('holding', 'falling')" ||
  fail "nothing is found: $(now s)"
alone=$(mean)
[ "$alone" -lt 400 ] || fail "it found $alone/s, which the server cannot do"
$S explain --job storm >"$SCRATCH/out"
words='metadata@scratch: Nobody wrote its capacity: it is .* now, between 10/s and 20k/s\. It '
words="$words.*: .* % of the calls took longer than 60ms, and 10 % may"
grep -Eq "$words" "$SCRATCH/out" || fail "explain: $(cat "$SCRATCH/out")"
$S stat storm >"$SCRATCH/out"
grep -q 'metadata@scratch: Nobody wrote its capacity' "$SCRATCH/out" ||
  fail "stat: $(cat "$SCRATCH/out")"
$S top --batch -n 1 | grep -q 'Nobody wrote its capacity' || fail "top: $($S top --batch -n 1)"
at=$(metrics_at)
curl -sf "http://$at/metrics" >"$SCRATCH/metrics" || fail 'no metrics'
for name in capacity_operations_per_second steered_operations_per_second slow_calls_ratio; do
  grep -q "^sluice_$name{resource=\"metadata\",target=\"scratch\"} [0-9]" "$SCRATCH/metrics" ||
    fail "no metric $name: $(grep scratch "$SCRATCH/metrics")"
done

python3 -c "$storm" "$DATA" & # a machine without sluice
foreign=$!
jobs="$jobs $foreign"
until_true 60 holds "s['capacity'] < 0.75 * $alone" ||
  fail "no room for others: $(now s), alone $alone"
kill -9 "$foreign"
until_true 60 holds "s['capacity'] > 0.8 * $alone" ||
  fail "it does not come back: $(now s), alone $alone"

steered ', "shadow": true' >"$SCRATCH/policy.json"
$S policy apply "$SCRATCH/policy.json" >"$SCRATCH/out" || fail 'policy apply'
grep -q 'capacity of metadata@scratch: steered .* -> 20k/s, and only told what it were steered' \
  "$SCRATCH/out" || fail "policy apply: $(cat "$SCRATCH/out")"
until_true 60 holds "s['capacity'] == 20000 and s['steered']['shadow'] and
  s['steered']['found'] < 1000" || fail "the shadow: $(now s)"
exit 0
