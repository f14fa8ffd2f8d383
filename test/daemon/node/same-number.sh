#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A scheduler numbers again from the beginning, and a process of a job that is over keeps that job
# for long. The new job of that number has its own user and class: its steps, its end and its
# registration mean it and not the other user's.
set -u
. test/lib/node.bash
two_users
python=/usr/bin/python3 # one that everybody can reach
policy 500/s
start_node
write_asker
announce() { echo "{\"job\":\"4711\",\"uid\":$1,\"nodes\":1}" >"$RUN/scheduler/4711"; }
register='{"verb":"register","job":"4711"}'

mkdir -m 700 "$RUN/scheduler"
announce "$ann"
is_hers() { ask "$register" | grep -q "/$ann@4711/"; }
until_true is_hers || fail "not registered: $(ask "$register")"
library=$RUN/jobs/$ann@4711/libinterpose.so
as "$ann" env LD_PRELOAD="$library" sleep 300 &
lingers=$!
stays() { $S --json jobs | grep -q '"processes": 1'; }
until_true stays || fail "nothing lingers: $($S --json jobs)"
rm "$RUN/scheduler/4711"
ask '{"verb":"release","job":"4711"}' >"$SCRATCH/said"
announce "$bob"
step="{\"verb\":\"step\",\"job\":\"4711\",\"uid\":$bob,\"gid\":$bob,\"step\":\"0\"}"
for question in "$step" "$register"; do
  ask "$question" | grep -q "/$bob@4711/" || fail "it is the other user's: $(ask "$question")"
done
ask '{"verb":"step-end","job":"4711","step":"0"}' | grep -q '"line"' ||
  fail "its step cannot end: $(ask '{"verb":"step-end","job":"4711","step":"0"}')"
rm "$RUN/scheduler/4711"
ask '{"verb":"release","job":"4711"}' | grep -q '"line"' || fail 'it cannot be released'
kill "$lingers"
exit 0
