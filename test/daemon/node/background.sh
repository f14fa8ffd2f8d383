#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# The node daemon holds the background work of its jobs back: it wakes for that only while they do
# I/O, says what it does, follows a change of the class, and no role has more than its job. When it
# is killed, what it limited ends by itself, and the next one goes on.
set -u
. test/lib/node.bash
. test/lib/background.bash
need curl
JOB=store
background_policy "$DATA" >"$SCRATCH/policy.json"
METRICS_AT=127.0.0.1:0
start_node

foreground little
guest $S run --class kv --job $JOB --summary -- 2>"$SCRATCH/out" &
runner=$!
trap 'foreground; kill $runner 2>/dev/null; end_node' EXIT
until_true is_held 100 || fail "it is not held back: $(told b; cat "$SCRATCH/said.err")"
until_true says $S explain --job $JOB \
  'now background work has what the foreground leaves: data:flush@s' ||
  fail "explain: $($S explain --job $JOB)"
says $S top --batch -n 1 'data:compaction-high@s' || fail "top: $($S top --batch -n 1)"
held='background_seconds_total{class="kv",state="holding"}'
counts() { [ "$(metric "$held" | cut -d. -f1)" -ge 1 ]; }
until_true counts || fail "no time is counted: $(metric 'background.*')"
of_high='{class="kv",role="compaction-high",target="s"}'
has_limit() { [ -n "$(metric "background_limit_bytes_per_second$of_high")" ]; }
until_true has_limit || fail 'no limit in the metrics'

# The job's own grant: half of what there is.
$S set $JOB data@s=50MB/s >/dev/null || fail 'set'
until_true is_held 50 || fail "a role has more than its job: $(told b)"
$S set $JOB data@s=policy >/dev/null || fail 'set back'
foreground much
until_true is_saturated || fail "no guard: $(told b)"
foreground little
until_true is_held 100 || fail "not again: $(told b)"

# A class without a control, and back.
$S set $JOB class=plain >/dev/null || fail 'set class'
until_true holds "b == {}" || fail "it is still kept: $(told b)"
until_true is_lifted || fail 'its limits stay'
$S set $JOB class=kv >/dev/null || fail 'set class'
until_true is_held 100 || fail "not after the class: $(told b)"

kill_node
until_true is_lifted || fail 'limits outlive the daemon'
start_node
until_true is_held 100 || fail "the next daemon does not go on: $(told b)"

# A job that does no I/O wakes nobody.
foreground
wait "$runner" || fail "status $?: $(cat "$SCRATCH/out")"
grep -q 'background work, tail-latency on data@s: ' "$SCRATCH/out" ||
  fail "summary: $(cat "$SCRATCH/out")"
$S run --class kv --job idle --no-summary -- sleep 300 &
runner=$!
until_true is "['idle']" "[j['job'] for j in d]" || fail "no idle job: $(field "d")"
steps_in_10_s() {
  local before began
  before=$(metric steps_total) began=$(date +%s%3N)
  sleep 10
  echo $((($(metric steps_total) - before) * 10000 / ($(date +%s%3N) - began)))
}
is_quiet() { [ "$(steps_in_10_s)" -le 130 ]; } # an eighth of a second each, and the two looks
is_quiet || is_quiet || is_quiet || fail "it is not quiet: $(steps_in_10_s) steps in 10 s"
kill "$runner"
end_node
trap - EXIT
exit 0
