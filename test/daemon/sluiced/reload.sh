#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# SIGHUP: a good policy is taken over, a broken one is refused with its place and the old one stays,
# what cannot change while running is refused too.
set -u
. test/lib/site.bash
policy "$SCRATCH/p.json" 10k/s
write_config() {
  cat >"$SCRATCH/c.json" <<END
{"role": "cluster", "listen": "$1", "plain": true, "policy": "$SCRATCH/p.json", "log-level": "$2",
 "run-dir": "$SCRATCH/run"}
END
}
write_config 'tcp://127.0.0.1:*' info
start cluster --config "$SCRATCH/c.json"

capacity() {
  sleep 0.05
  curl -s "http://$METRICS/metrics" | sed -n 's/^sluice_capacity_operations_per_second{.*} //p'
}
capacity_is() { [ "$(capacity)" = "$1" ]; }
rejected_is() { curl -s "http://$METRICS/metrics" | grep -q "^sluice_policy_rejected_total $1\$"; }
hash_now() {
  python3 - test/lib "$SCRATCH/run" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from world import ask
print(ask(sys.argv[2], "hello")["policy_hash"])
END
}

until_true capacity_is 10000 || fail "capacity at the start: $(capacity)"
before=$(hash_now)
policy "$SCRATCH/p.json" 20k/s
kill -HUP "$PID"
until_true capacity_is 20000 || fail "capacity after a reload: $(capacity) $(cat "$LOG")"
after=$(hash_now)
[ "$before" != "$after" ] || fail "the hash of the policy did not change"

echo '{"targets": {"scratch": {"pth": "/"}}}' >"$SCRATCH/p.json"
kill -HUP "$PID"
until_true rejected_is 1 || fail "the broken policy was not counted: $(cat "$LOG")"
grep -q 'error .*stays why=.*p.json:1:26: unknown key .*did you mean .*path' "$LOG" ||
  fail "no helpful line: $(cat "$LOG")"
[ "$(hash_now)" = "$after" ] || fail "the broken policy was taken"
capacity_is 20000 || fail "capacity after a broken policy: $(capacity)"

policy "$SCRATCH/p.json" 30k/s
write_config 'tcp://127.0.0.1:1' info
kill -HUP "$PID"
until_true rejected_is 2 || fail "a new address was not refused: $(cat "$LOG")"
grep -q 'listen cannot change while the daemon runs' "$LOG" || fail "no reason: $(cat "$LOG")"
[ "$(hash_now)" = "$after" ] || fail "half of a refused configuration was taken"

write_config 'tcp://127.0.0.1:*' info
sed -i 's/"plain"/"cycle": "50ms", "plain"/' "$SCRATCH/c.json"
kill -HUP "$PID"
until_true rejected_is 3 || fail "a new cycle was not refused: $(cat "$LOG")"
grep -q 'cycle cannot change while the daemon runs' "$LOG" || fail "no reason: $(cat "$LOG")"

# What was applied over the socket stays, unless the file was edited since.
write_config 'tcp://127.0.0.1:*' info
kill -HUP "$PID"
until_true capacity_is 30000 || fail "after the repair: $(capacity)"
read_again() { [ "$(grep -c 'configuration read again' "$LOG")" = "$1" ]; }
so_often=$(grep -c 'configuration read again' "$LOG")
policy "$SCRATCH/applied.json" 40k/s
"$SLUICE" --run-dir "$SCRATCH/run" policy apply "$SCRATCH/applied.json" >/dev/null 2>&1 ||
  fail 'policy apply'
until_true capacity_is 40000 || fail "after policy apply: $(capacity)"
kill -HUP "$PID"
until_true read_again $((so_often + 1)) || fail "not read again: $(cat "$LOG")"
capacity_is 40000 || fail "after a reload of a file that nobody edited: $(capacity)"
policy "$SCRATCH/p.json" 50k/s
kill -HUP "$PID"
until_true capacity_is 50000 || fail "after an edit of the file: $(capacity)"

policy "$SCRATCH/p.json" 30k/s
write_config 'tcp://127.0.0.1:*' error
kill -HUP "$PID"
until_true capacity_is 30000 || fail "after the repair: $(capacity)"
stop "$PID"

# One whose file was edited while nobody ran is over, and does not come back with the file.
begin() { start cluster --config "$SCRATCH/c.json" --state-dir "$SCRATCH/state"; }
begin_again() { stop "$PID" && begin; }
write_config 'tcp://127.0.0.1:*' info
begin
"$SLUICE" --run-dir "$SCRATCH/run" policy apply "$SCRATCH/applied.json" >/dev/null 2>&1 ||
  fail 'policy apply'
begin_again
until_true capacity_is 40000 || fail "an applied policy after a restart: $(capacity)"
policy "$SCRATCH/p.json" 50k/s
begin_again
until_true capacity_is 50000 || fail "an edited file after a restart: $(capacity)"
policy "$SCRATCH/p.json" 30k/s
begin_again
until_true capacity_is 30000 || fail "the applied policy came back: $(capacity)"
stop "$PID"
