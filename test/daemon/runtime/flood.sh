#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# One user holds thousands of connections to the metrics port, silent ones and ones that send a byte
# now and then, and makes new ones for those that end: others get /health and /metrics all the same,
# and he is told what he did. No request multiplies an answer.
set -u
. test/lib/site.bash
two_users
as $bob /usr/bin/python3 -c 'import socket' 2>/dev/null || skip 'needs /usr/bin/python3'
policy "$SCRATCH/p.json"
start node --role node --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/n"
: >"$SCRATCH/told"
chmod 666 "$SCRATCH/told"
for kind in silent slow silent slow; do
  setpriv --reuid=$bob --regid=$bob --clear-groups /usr/bin/python3 - "${METRICS##*:}" "$kind" \
    "$SCRATCH/told" <<'END' &
import select, socket, sys, time
port, kind, told = int(sys.argv[1]), sys.argv[2], sys.argv[3]
held = {}
sent, refused, rounds = 0.0, 0, 0
while True:
    while len(held) < 800:
        s = socket.socket()
        s.settimeout(60)
        try:
            s.connect(("127.0.0.1", port))
        except OSError:
            s.close()
            break
        s.setblocking(False)
        held[s.fileno()] = s
    ready = select.poll()
    for fd in held:
        ready.register(fd, select.POLLIN)
    for fd, _ in ready.poll(200):
        try:
            refused += b"503" in held[fd].recv(100)
        except OSError:
            pass
        held.pop(fd).close()
    if kind == "slow" and time.monotonic() - sent > 1:
        sent = time.monotonic()
        for s in held.values():
            try:
                s.send(b"G")
            except OSError:
                pass
    rounds += 1
    if rounds == 2:
        print(kind, "held", file=open(told, "a"), flush=True)
    if refused >= 100:
        print("refused", file=open(told, "a"), flush=True)
        refused = 0
END
  pids+=("$!")
done
both_hold() { [ "$(grep -c held "$SCRATCH/told")" = 4 ]; }
until_true 120 both_hold || fail "no flood: $(cat "$SCRATCH/told")"
# Without a bound the queue takes more than a minute: 3200 connections, 64 at a time, 2 s each.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  [ "$(as $ann curl -s -m 30 "http://$METRICS/health")" = ok ] || fail 'no /health for others'
  as $ann curl -sf -m 30 "http://$METRICS/metrics" >"$SCRATCH/metrics" || fail 'no /metrics'
done
grep -q '^process_open_fds' "$SCRATCH/metrics" || fail "metrics: $(cat "$SCRATCH/metrics")"
until_true 60 grep -q refused "$SCRATCH/told" || fail 'he is not told'
# A request that names thousands of ranges has one answer, of the size of the file.
ranges="bytes=0-$(printf ',0-%.0s' $(seq 2600))"
size_of() { # CURL-OPTION…
  as $ann curl -sf -m 30 "$@" "http://$METRICS/dashboard/chart.js" | wc -c
}
whole=$(size_of)
[ "$whole" -gt 1000 ] || fail 'no script'
[ "$(size_of -H "Range: $ranges")" = "$whole" ] || fail 'ranges multiply an answer'
# The daemon itself has descriptors left, and serves.
as $ann "$SLUICE" --run-dir "$SCRATCH/n" jobs >"$SCRATCH/out" || fail "jobs: $(cat "$SCRATCH/out")"
exit 0
