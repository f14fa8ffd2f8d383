#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A node without jobs does not wake at all; one whose jobs have what they want steps rarely; as soon
# as somebody waits it steps at its local cycle, and not for ever. What a reader asks is fresh all
# the same, a job that the scheduler announces is found, and all threads keep to CPUAffinity=.
set -u
. test/lib/node.bash
need curl taskset
SECOND=3 # an observation is so many seconds long; a slow machine makes steps fewer

steps() { # as the daemon counts; asking costs one
  curl -sf "http://$METRICS/metrics" | awk '$1 == "sluice_steps_total" { print $2 }'
}

# Of all its threads, from outside: nobody is asked, so nothing is woken.
wakes() {
  cat "/proc/$NODE"/task/*/status | awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }'
}

# The thread that keeps rights sleeps: what is looked for each second needs none.
rights_wakes() {
  cat "/proc/$NODE"/task/*/status |
    awk '/^Name/ { is_it = $2 == "sluiced-rights" }
         /^voluntary_ctxt_switches/ && is_it { n += $2 } END { print n + 0 }'
}

steps_seen() {
  local before after
  before=$(steps)
  sleep "$SECOND"
  after=$(steps)
  echo $((after - before))
}

sleeps() {
  local before
  before=$(wakes)
  sleep "$SECOND"
  [ $(($(wakes) - before)) -le 2 ]
}
is_fast() { [ "$(steps_seen)" -gt $((20 * SECOND)) ]; }
is_quiet() { # and alive
  local seen before
  before=$(rights_wakes)
  seen=$(steps_seen)
  [ $(($(rights_wakes) - before)) -le 1 ] || return 1
  [ "$seen" -ge 2 ] && [ "$seen" -le $((12 * SECOND)) ]
}
has_job() { "$SLUICE" --run-dir "$RUN" jobs 2>&1 | grep -q "$1"; }
answers() {
  METRICS=$(metrics_at)
  [ -n "$METRICS" ]
}

policy 1000/s
mkdir -m 0700 "$RUN/scheduler"
CPU=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
taskset -cp "$CPU" $$ >"$SCRATCH/pinned" || fail "$(cat "$SCRATCH/pinned")"
METRICS_AT=127.0.0.1:0
start_node
until_true answers || fail "no metrics: $(cat "$SCRATCH/log")"

for status in "/proc/$NODE"/task/*/status; do
  grep -q "^Cpus_allowed_list:[[:space:]]$CPU\$" "$status" ||
    fail "a thread is elsewhere: $(grep -E 'Name|allowed_list' "$status")"
done

until_true 30 sleeps || fail "without a job it wakes: $(wakes)"

# Asked, it looks: the health of a sleeping daemon is as good as ever.
curl -sf "http://$METRICS/health" >"$SCRATCH/health" && [ "$(cat "$SCRATCH/health")" = ok ] ||
  fail "not healthy: $(cat "$SCRATCH/health")"
first=$(steps)
is_fresh() { [ "$(steps)" -gt "$first" ]; } # handed over once a second
until_true is_fresh || fail "old figures are told"

# Nobody sends a message: the folder itself wakes it.
printf '{"job":"77","uid":%d,"class":"gold"}' "$(id -u)" >"$RUN/scheduler/77.new"
mv "$RUN/scheduler/77.new" "$RUN/scheduler/77"
until_true 20 has_job 77 || fail "an announcement is not seen: $(cat "$SCRATCH/log")"
rm "$RUN/scheduler/77"
until_true 20 no_jobs || fail "a released job stays: $(cat "$SCRATCH/log")"
until_true 30 sleeps || fail "when the last job is gone it wakes"

"$SLUICE" --run-dir "$RUN" run --no-summary --job still -- sleep 1000 &
STILL=$!
until_true 20 has_job still || fail "no job"
until_true 40 is_quiet || fail "with a job that sleeps: $(steps_seen) steps in $SECOND s"

# Far more than 1000/s: it waits all the time.
"$LOOP" prepare 1 "$DATA"
"$SLUICE" --run-dir "$RUN" run --no-summary --job eager -- \
  "$LOOP" stat 100000000 "$DATA" >"$SCRATCH/loop" 2>&1 &
EAGER=$!
until_true 60 is_fast || fail "somebody waits: $(steps_seen) steps in $SECOND s"
kill "$EAGER"
wait "$EAGER" 2>/dev/null
until_true 60 is_quiet || fail "nobody waits any more: $(steps_seen) steps in $SECOND s"

kill "$STILL"
wait "$STILL" 2>/dev/null
until_true 20 no_jobs || fail "jobs stay"
until_true 30 sleeps || fail "at the end it wakes"
