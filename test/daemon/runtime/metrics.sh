#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# /metrics of every role is what promtool accepts, listens on loopback, has no label that a scraper
# sets itself; /health answers, also beside two hundred idle connections; who has the port first
# does not keep a daemon from serving its jobs, which takes the port when it is free.
set -u
. test/lib/site.bash
need promtool
policy "$SCRATCH/p.json"
port_of() { echo "${METRICS##*:}"; }

is_whole() { # Asked for, and not as they were before the first cycle.
  local name
  curl -sf -D "$SCRATCH/head" "http://$METRICS/metrics" >"$SCRATCH/metrics" || return
  for name in sluice_cycles_total sluice_policy_load_timestamp_seconds \
    sluice_capacity_operations_per_second process_resident_memory_bytes process_open_fds; do
    grep -q "^$name" "$SCRATCH/metrics" || return
  done
}
checked() { # ROLE: the metrics of what runs
  until_true 20 is_whole || fail "$1: $(cat "$SCRATCH/metrics")"
  grep -qi '^content-type: text/plain; version=0.0.4' "$SCRATCH/head" ||
    fail "$1: $(cat "$SCRATCH/head")"
  promtool check metrics <"$SCRATCH/metrics" >"$SCRATCH/lint" 2>&1 ||
    fail "$1: promtool: $(cat "$SCRATCH/lint")"
  [ ! -s "$SCRATCH/lint" ] || fail "$1: promtool: $(cat "$SCRATCH/lint")"
  grep -qE '[{,](job|instance)="' "$SCRATCH/metrics" && fail "$1: labels of the scraper"
  grep -q "^sluice_build_info{version=\".*\",role=\"$1\"} 1\$" "$SCRATCH/metrics" ||
    fail "$1: $(cat "$SCRATCH/metrics")"
  [ "$(curl -s "http://$METRICS/health")" = ok ] || fail "$1: health"
  [ "$(curl -s -o /dev/null -w '%{http_code}' "http://$METRICS/else")" = 404 ] || fail "$1: else"
  local hexport
  hexport=$(printf '%04X' "$(port_of)")
  grep -hE "^ *[0-9]+: [0-9A-F]+:$hexport .* 0A " /proc/net/tcp /proc/net/tcp6 |
    grep -vE ' 0100007F:' && fail "$1: listens beyond loopback"
}

start cluster --role cluster --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/c" \
  --listen 'tcp://127.0.0.1:*' --plain
checked cluster
cluster=$PID taken=$METRICS
parent=$(sed -n 's/.* address=\(tcp:[^ ]*\).*/\1/p' "$LOG" | head -1)
start relay --role relay --name r1 --parent "$parent" --plain --run-dir "$SCRATCH/r" \
  --listen 'tcp://127.0.0.1:*'
has_plan() { curl -s "http://$METRICS/metrics" | grep -q '^sluice_capacity_operations_per_second'; }
until_true 20 has_plan || fail "relay: no plan: $(cat "$LOG")"
checked relay
stop "$PID"
timeout 20 "$SLUICED" --role node --run-dir "$SCRATCH/n" --metrics 192.0.2.1:9742 \
  >"$SCRATCH/out" 2>&1
[ $? = 125 ] || fail "an address of another machine was taken: $(cat "$SCRATCH/out")"
grep -q "metrics 192.0.2.1:9742: cannot listen there" "$SCRATCH/out" ||
  fail "said: $(cat "$SCRATCH/out")"
start node --role node --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/n" --metrics-jobs
checked node
node=$PID
grep -q '^sluice_controller_connected' "$SCRATCH/metrics" && fail "node: no parent is no lost one"
grep -q '_tokens' "$SCRATCH/metrics" && fail "node: a unit of our own"
grep -q '^sluice_delayed_requests_total{' "$SCRATCH/metrics" || fail "node: nothing of delays"

# Series of a job are there while it runs; of a daemon that was not asked for them never.
"$SLUICE" --run-dir "$SCRATCH/n" run --job hydro --no-summary -- sleep 30 &
pids+=("$!")
job_seen() { curl -s "http://$METRICS/metrics" | grep -q '^sluice_job_.*{job_id="hydro",uid='; }
until_true 20 job_seen || fail "no series of the job: $(cat "$LOG")"
checked node
curl -s "http://$taken/metrics" | grep -q '^sluice_job_' && fail "series of jobs, not asked for"

# Clients that say nothing, or too much, do not keep others waiting for long.
exec 3<>"/dev/tcp/${METRICS%:*}/$(port_of)" 4<>"/dev/tcp/${METRICS%:*}/$(port_of)"
head -c 100000 /dev/zero | timeout 5 curl -s -o /dev/null --data-binary @- "http://$METRICS/metrics"
timeout 20 curl -sf "http://$METRICS/health" >/dev/null || fail "silent clients block the others"
exec 3>&- 4>&-

stop "$node"
stop "$cluster"

# Somebody else, who may be anybody, has the port: the daemon serves all the same, and says so.
python3 - "$SCRATCH/port" <<'END' &
import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
open(sys.argv[1], "w").write(str(s.getsockname()[1]))
time.sleep(600)
END
squatter=$!
until_true 60 test -s "$SCRATCH/port" || fail 'nobody has the port'
taken=127.0.0.1:$(cat "$SCRATCH/port")
"$SLUICED" --role node --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/late" --metrics "$taken" \
  >"$SCRATCH/late.log" 2>&1 &
late=$!
pids+=("$late" "$squatter")
until_true 60 grep -q 'somebody else has their port' "$SCRATCH/late.log" ||
  fail "a taken port: $(cat "$SCRATCH/late.log")"
until_true 60 test -S "$SCRATCH/late/sluiced.sock" ||
  fail "it does not serve: $(cat "$SCRATCH/late.log")"
# Nor is anybody sent there with a key.
"$SLUICE" --run-dir "$SCRATCH/late" report --dashboard >"$SCRATCH/out" 2>&1 &&
  fail "sent to the other: $(cat "$SCRATCH/out")"
grep -q 'somebody else has its port' "$SCRATCH/out" || fail "dashboard: $(cat "$SCRATCH/out")"
kill "$squatter"
wait "$squatter" 2>/dev/null
healthy() { [ "$(curl -s -m 5 "http://$taken/health")" = ok ]; }
until_true 60 healthy || fail "the port is free, and not taken: $(cat "$SCRATCH/late.log")"

"$SLUICE" --run-dir "$SCRATCH/late" report --dashboard >"$SCRATCH/out" 2>&1 ||
  fail "dashboard: $(cat "$SCRATCH/out")"

# Header lines without end are not kept: whoever sends them is hung up on.
python3 - "${taken##*:}" <<'END' || fail 'header lines without end'
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
sent = 0
try:
    s.sendall(b"GET /health HTTP/1.1\r\n")
    while sent < 64 << 20:
        s.sendall(b"a:b\r\n" * 10000)
        sent += 50000
except OSError:
    pass
sys.exit(sent >= 64 << 20)
END

# Idle connections, as many as one user can hold, do not blind it.
python3 - "${taken##*:}" <<'END' || fail 'idle connections blind /health'
import http.client, socket, sys
port = int(sys.argv[1])
held = []
for _ in range(200):
    s = socket.socket()
    s.settimeout(60)
    s.connect(("127.0.0.1", port))
    held.append(s)
ask = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
ask.request("GET", "/health")
sys.exit(ask.getresponse().status != 200)
END
stop "$late"
