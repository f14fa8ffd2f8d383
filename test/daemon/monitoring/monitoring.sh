#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# A real Prometheus scrapes a cluster and a node with a job that waits. Rules and dashboard that
# are shipped speak of metrics that exist, parse, and show what they must.
set -u
. test/lib/site.bash
need prometheus promtool python3
[ -x "$(dirname "$SLUICE")/sluice-order" ] || skip "sluice-order is not built"
here=$top/test/daemon/monitoring
shipped=$top/daemon/monitoring
cp "$shipped/alerts.yml" "$here/monitoring-rules.yml" "$SCRATCH"
promtool check rules "$SCRATCH/alerts.yml" >"$SCRATCH/out" 2>&1 || fail "$(cat "$SCRATCH/out")"
promtool test rules "$SCRATCH/monitoring-rules.yml" >"$SCRATCH/out" 2>&1 ||
  fail "$(cat "$SCRATCH/out")"
for name in $(sed -n 's/.*- alert: //p' "$SCRATCH/alerts.yml"); do
  grep -A3 "alertname: $name\$" "$SCRATCH/monitoring-rules.yml" | grep -q exp_labels ||
    fail "no test sees $name fire"
done

cat >"$SCRATCH/p.json" <<END2
{"targets": {"scratch": {"path": "$SCRATCH/data",
                         "capacity": {"metadata": "50/s", "data": "1MB/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 1}, "data": {"weight": 1}}}},
 "control": {"nodes": "n1"}}
END2
mkdir "$SCRATCH/data"
printf x >"$SCRATCH/data/file"
start cluster --role cluster --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/c" \
  --listen 'tcp://127.0.0.1:*' --plain
cluster=$METRICS
parent=$(sed -n 's/.* address=\(tcp:[^ ]*\).*/\1/p' "$LOG" | head -1)
[ -n "$parent" ] || fail "where does the cluster listen? $(cat "$LOG")"
start node --role node --name n1 --parent "$parent" --plain --run-dir "$SCRATCH/n" \
  --journal "$SCRATCH/journal" --journal-size 4MiB
node=$METRICS
"$SLUICE" --run-dir "$SCRATCH/n" run --job hydro --class gold --no-summary -- \
  sh -c "while cat '$SCRATCH/data/file'; do :; done" >/dev/null 2>&1 &
pids+=("$!")

port=$(free_port)
cat >"$SCRATCH/prometheus.yml" <<END2
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: sluice
    static_configs: [{targets: ["$cluster", "$node"]}]
END2
prometheus --config.file="$SCRATCH/prometheus.yml" --storage.tsdb.path="$SCRATCH/tsdb" \
  --web.listen-address="127.0.0.1:$port" >"$SCRATCH/prometheus.log" 2>&1 &
pids+=("$!")
ready() { curl -sf "http://127.0.0.1:$port/-/ready"; }
until_true 60 ready || fail "Prometheus: $(cat "$SCRATCH/prometheus.log")"
python3 "$here/monitoring.py" "http://127.0.0.1:$port" "$shipped/grafana.json" \
  "$top/daemon/runtime/metrics.def" || fail "see above"
