#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# A class promises its jobs requests: the node reserves the VOPs that they take, with what they
# cause. Beside a greedy neighbour of a hundred times its weight a store gets what it was promised;
# with a reservation of what its requests cost alone it does not. The reservation of the class
# bounds what its jobs can claim; what is lacking is told.
set -u
. test/lib/node.bash
need curl
METRICS_AT=127.0.0.1:0
jobs=
trap 'rm -f "$SCRATCH/wanted"; kill $jobs 2>/dev/null; end_node' EXIT
head -c 1048576 /dev/zero >"$DATA/data"
echo '{"version": 1, "max_vops": 800, "provisionable_vops": 400, "ops": {"open": 0.001,
 "close": 0.001, "stat": 0.001, "seek": 0.001},
 "read": [[4096, 1], [65536, 4]], "write": [[4096, 1], [65536, 4]]}' >"$SCRATCH/s.cost.json"
# of_kv SHARE
of_kv() {
  cat >"$SCRATCH/policy.json" <<P
{"roles": {"store": {"compaction": {"thread": "compact"}, "log": {"path": "*.log"},
                     "foreground": {"rest": true}}},
 "requests": {"get": {"call": "read", "role": "foreground"},
              "put": {"call": "write", "role": "log", "size": "4KiB", "causes": ["compaction"]}},
 "targets": {"s": {"path": "$DATA", "cost": "s.cost.json", "capacity": {"vops": "calibrated"}}},
 "classes": {"kv": {"s": {"vops": {$1, "weight": 1}}}, "bulk": {"s": {"vops": {"weight": 100}}}}}
P
}
promise='"requests": {"get": "40/s", "put": "20/s"}'
of_kv "$promise"
$S policy check "$SCRATCH/policy.json" >"$SCRATCH/out" 2>"$SCRATCH/err" || fail 'policy check'
grep -q 'promised 40 get/s, 20 put/s: at first 60 VOP/s' "$SCRATCH/out" ||
  fail "policy check: $(cat "$SCRATCH/out")"
grep -q 'may come to all that can be reserved' "$SCRATCH/err" ||
  fail "no warning: $(cat "$SCRATCH/err")"
start_node

echo '40 20' >"$SCRATCH/wanted"
$S run --class kv --job store --no-summary -- python3 test/lib/request_guest.py \
  "$DATA" "$SCRATCH/wanted" &
store=$!
jobs=$!
$S run --class bulk --job bulk --no-summary -- python3 -c "import os
f = os.open('$DATA/data', os.O_RDONLY)
while True: os.pread(f, 65536, 0)" &
jobs="$jobs $!"
of() { echo "[s for j in d if j['job'] == '$1' for s in j['streams']][0]"; }
holds() { is True "$1"; }
explained() { # EXPR over r, the row of requests, with get and put
  $S --json explain --job store >"$SCRATCH/said.json" 2>/dev/null || return 1
  [ "$(json "$SCRATCH/said.json" "(lambda r, get, put: $1)(d['requests'][0],
    *sorted(d['requests'][0]['requests'], key=lambda q: q['name']))" 2>/dev/null)" = True ]
}
# 40 GETs and 20 PUTs of 1 VOP, and each PUT causes 4: 140 VOP/s, of which 60 are their own.
until_true explained 'abs(get["own_vops"] - 1) < 0.1 and abs(put["own_vops"] - 1) < 0.1 and
  abs(put["caused_vops"] - 4) < 0.6 and 125 < r["need"] < 155 and r["reserved"] == r["need"]' ||
  fail "explain: $(cat "$SCRATCH/said.json")"
until_true holds "$(of store)['served'] > 125" || fail "less than promised: $(field d)"
until_true explained 'get["seen"] > 34 and put["seen"] > 17' ||
  fail "not as many as promised: $(cat "$SCRATCH/said.json")"
$S explain --job store >"$SCRATCH/out"
grep -Eq 'vops@s: it is promised 20 put/s and did .*; one costs [0-9.]+ VOP and causes ' \
  "$SCRATCH/out" &&
  grep -Eq 'what it is promised takes [0-9.]+ VOP/s now, and is reserved' "$SCRATCH/out" ||
  fail "explain: $(cat "$SCRATCH/out")"
$S explain open "$DATA/data" >"$SCRATCH/out"
grep -q 'no limit of this command line applies' "$SCRATCH/out" &&
  grep -q "daemon at $RUN.* gives jobs the limits of their class" "$SCRATCH/out" ||
  fail "explain a call: $(cat "$SCRATCH/out")"
within() { # METRIC LEAST MOST
  metric "$1" | awk -v a="$2" -v b="$3" '{ok = $1 >= a && $1 <= b} END {exit !ok}'
}
until_true within 'needed_vops_per_second{class="kv",target="s"}' 125 155 ||
  fail "metrics: $(metric '.*vops.*')"
until_true within 'lacking_vops_per_second{class="kv",target="s"}' 0 0 ||
  fail "lacking: $(metric 'lack.*')"
until_true within 'requests_total{class="kv",request="put",target="s"}' 20 1e9 ||
  fail 'no requests counted'
until_true within 'request_vops_total{class="kv",request="put",target="s",part="caused"}' 40 1e9 ||
  fail 'no VOPs counted'

# A limit that an operator sets leaves less than what is promised.
$S set store vops@s=30/s >/dev/null || fail 'set'
until_true explained 'r["reserved"] == 30 and r["limit"] == 30 and r["need"] > 60' ||
  fail "below a limit: $(json "$SCRATCH/said.json" 'd["requests"]')"
$S explain --job store | grep -Eq 'takes [0-9.]+ VOP/s now, and its limit leaves 30 VOP/s\.' ||
  fail "explain: $($S explain --job store)"
$S set store vops@s=policy >/dev/null || fail "set back"
until_true explained 'r["reserved"] == r["need"]' || fail "unset: $(cat "$SCRATCH/said.json")"

# The next daemon learns the same, however long the job has run.
kill_node
start_node
until_true explained 'abs(put["own_vops"] - 1) < 0.1 and put["caused_vops"] > 3 and
  125 < r["need"] < 155' || fail "after a restart: $(cat "$SCRATCH/said.json")"

# The reservation is the most: 100 of the 140.
of_kv "$promise, \"reservation\": \"25%\""
$S policy apply "$SCRATCH/policy.json" >/dev/null || fail 'policy apply'
until_true explained 'r["need"] > 125 and abs(r["reserved"] - 100) < 1' ||
  fail "more than the class may reserve: $(cat "$SCRATCH/said.json")"
until_true within 'lacking_vops_per_second{class="kv",target="s"}' 25 55 ||
  fail "nothing is lacking: $(metric '.*vops.*')"
$S explain --job store | grep -q 'of which 100 VOP/s can be reserved' ||
  fail "explain: $($S explain --job store)"

# Without a profile: what the requests cost alone, and the store falls behind.
of_kv '"reservation": "60/s"'
$S policy apply "$SCRATCH/policy.json" >/dev/null || fail 'policy apply'
until_true holds "abs($(of store)['reservation'] - 60) < 1 and $(of store)['served'] < 70" ||
  fail "a fixed reservation: $(field d)"
no_rows() { [ "$($S --json explain --job store | grep -c '"requests"')" = 0 ]; }
until_true no_rows || fail 'requests that nobody promises'
no_metric() { [ -z "$(metric 'needed_vops.*')" ]; }
until_true no_metric || fail "needs of nobody: $(metric 'needed.*')"

rm "$SCRATCH/wanted"
wait "$store" || fail "status $?"
exit 0
