#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# Who may read what at the metrics port: without a key nobody sees a job, with one a user sees his
# own and root all; a wrong key, a foreign name in Host and another origin get nothing. The same of
# the verb `history` of the local socket, on a node and on a cluster.
set -u
. test/lib/site.bash
two_users
need python3
cat >"$SCRATCH/p.json" <<END
{"targets": {"scratch": {"path": "$SCRATCH/data", "capacity": {"metadata": "600/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 3}}}},
 "control": {"nodes": "n1", "default_class": "gold"}}
END
mkdir -m 755 "$SCRATCH/c" "$SCRATCH/n"
start cluster --role cluster --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/c" \
  --listen 'tcp://127.0.0.1:*' --plain
cluster_metrics=$METRICS
listens=$(sed -n 's/.*listening address=\([^ ]*\).*/\1/p' "$LOG" | head -1)
start node --role node --name n1 --parent "$listens" --plain --run-dir "$SCRATCH/n"
job() { # UID NAME
  as "$1" "$SLUICE" --run-dir "$SCRATCH/n" run --job "$2" --no-summary -- \
    "$PROGRAMS/steady" 600 "$SCRATCH/data" >"$SCRATCH/$2.out" 2>&1 &
  pids+=("$!")
}
job $ann annswork
job $bob bobswork

get() { # METRICS PATH [CURL OPTIONS...]
  local at=$1 path=$2
  shift 2
  curl -s "$@" "http://$at$path"
}
key_of() { # UID RUN_DIR
  as "$1" "$SLUICE" report --dashboard --run-dir "$2" | sed 's/.*#//'
}
both_seen() {
  get "$1" /dashboard/now.json -H "Authorization: Bearer $2" >"$SCRATCH/now"
  grep -q annswork "$SCRATCH/now" && grep -q bobswork "$SCRATCH/now"
}

for daemon in "$METRICS $SCRATCH/n" "$cluster_metrics $SCRATCH/c"; do
  read -r at dir <<<"$daemon"
  root_key=$(key_of 0 "$dir") ann_key=$(key_of $ann "$dir") bob_key=$(key_of $bob "$dir")
  [ ${#root_key} = 48 ] && [ ${#ann_key} = 48 ] && [ "$ann_key" != "$bob_key" ] ||
    fail "$dir: keys $root_key $ann_key $bob_key"
  until_true 40 both_seen "$at" "$root_key" || fail "$dir: root sees $(cat "$SCRATCH/now")"

  get "$at" /dashboard/now.json >"$SCRATCH/now"
  grep -q '"supplies":\[{' "$SCRATCH/now" || fail "$dir: no sums: $(cat "$SCRATCH/now")"
  grep -qE 'annswork|bobswork|6400[12]' "$SCRATCH/now" && fail "$dir: anybody sees jobs"
  get "$at" /dashboard/now.json -H "Authorization: Bearer $ann_key" >"$SCRATCH/now"
  grep -q annswork "$SCRATCH/now" || fail "$dir: the owner does not see his job"
  grep -q bobswork "$SCRATCH/now" && fail "$dir: a user sees another's job"
  past='/dashboard/history.json?supply=metadata@scratch&interval=1'
  has_past() {
    get "$at" "$past&job=bobswork&uid=$bob" -H "Authorization: Bearer $bob_key" |
      grep -q '"served":\[[0-9.]'
  }
  until_true 10 has_past || fail "$dir: no history for the owner"
  ops="/dashboard/ops.json?interval=1&job=bobswork&uid=$bob"
  has_ops() {
    get "$at" "$ops" -H "Authorization: Bearer $bob_key" | grep -q '"op":"open"'
  }
  [ "$dir" != "$SCRATCH/n" ] || until_true 10 has_ops || fail "$dir: no ops for the owner"
  for key in "$ann_key" wrong ''; do
    get "$at" "$past&job=bobswork&uid=$bob" ${key:+-H "Authorization: Bearer $key"} |
      grep -q bobswork && fail "$dir: the history of another's job with key '$key'"
    get "$at" "$ops" ${key:+-H "Authorization: Bearer $key"} | grep -q bobswork &&
      fail "$dir: the ops of another's job with key '$key'"
  done

  code() { get "$at" "$@" -o /dev/null -w '%{http_code}'; }
  [ "$(code /)" = 200 ] || fail "$dir: no page"
  [ "$(code /dashboard/now.json -H 'Authorization: Bearer wrong')" = 401 ] || fail "$dir: wrong key"
  [ "$(code /dashboard/now.json -H 'Authorization: Basic eDp5')" = 401 ] || fail "$dir: basic"
  for path in / /dashboard/now.json /dashboard/page.js "$past" "$ops"; do
    for host in evil.example "evil.example:${at##*:}" 127.0.0.1.evil.example ''; do
      [ "$(code "$path" -H "Host: $host" -H "Authorization: Bearer $root_key")" = 200 ] &&
        fail "$dir: $path answers as '$host'"
    done
  done
  [ "$(code / -H "Host: localhost:9999")" = 200 ] || fail "$dir: not through a tunnel"
  head=$(get "$at" / -o /dev/null -D -)
  for words in "default-src 'none'" "frame-ancestors 'none'" nosniff no-store no-referrer; do
    echo "$head" | grep -qF "$words" || fail "$dir: no $words in $head"
  done
  echo "$head" | grep -qi 'access-control' && fail "$dir: other origins are let in"
  get "$at" /dashboard/now.json -X OPTIONS -o /dev/null -w '%{http_code}' | grep -q 200 &&
    fail "$dir: a preflight is granted"

  as $ann "$SLUICE" report --job annswork --run-dir "$dir" --last 10s >"$SCRATCH/out" 2>&1 ||
    fail "$dir: the owner's report: $(cat "$SCRATCH/out")"
  grep -q 'metadata@scratch' "$SCRATCH/out" || fail "$dir: $(cat "$SCRATCH/out")"
  as $ann "$SLUICE" report --job bobswork --run-dir "$dir" >"$SCRATCH/out" 2>&1 &&
    fail "$dir: another's report"
  as $ann "$SLUICE" report --history --run-dir "$dir" --json | grep -q bobswork &&
    fail "$dir: another's history"
done
exit 0
