#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two users have a job of one name, with different loads: the history shows both, each with its own
# load; the name alone is refused to an operator; each user sees his own under the plain name.
set -u
. test/lib/node.bash
two_users
policy 5k/s
start_node
umask 000
"$LOOP" prepare 1 "$DATA" >/dev/null || fail prepare
chmod -R a+rwX "$DATA"
work() { # UID JOB CALLS
  as "$1" "$SLUICE" --run-dir "$RUN" run --no-summary --job "$2" -- "$LOOP" open "$3" "$DATA" \
    >"$SCRATCH/said" 2>&1 || fail "run of $2: $(cat "$SCRATCH/said")"
}
work $ann work 100
work $bob work 2000
work $bob alone 50
name() { id -nu "$1" 2>/dev/null || echo "$1"; }
hers=$(name $ann)@work his=$(name $bob)@work

sum="$SCRATCH/sum"
asked() { "$@" report --run-dir "$RUN" --last 5m --json "${what[@]}" >"$sum" 2>"$SCRATCH/err"; }
opened='{j["job"]: j["done"] for j in d[0]["jobs"]}'
is_told() { # EXPR COMMAND…
  asked "${@:2}" && [ "$(json "$sum" "$1")" = True ]
}
told() { until_true 30 is_told "$@" || fail "${what[*]}: $(cat "$sum" "$SCRATCH/err")"; }

what=(--history)
told "set($opened) == {'$hers', '$his', 'alone'}" "$SLUICE"
told "100 <= $opened['$hers'] < 1000 and $opened['$his'] >= 2000" "$SLUICE"
told "{u['job'] for u in d[0]['uses']} == {'$hers', '$his', 'alone'}" "$SLUICE"
for form in --text --html; do
  "$SLUICE" report --run-dir "$RUN" --last 5m --history $form >"$SCRATCH/out" || fail "$form"
  for job in "$hers" "$his" alone; do
    grep -q "$job" "$SCRATCH/out" || fail "$form: no $job: $(cat "$SCRATCH/out")"
  done
done
told "set($opened) == {'work'} and $opened['work'] < 1000" as $ann "$SLUICE"

what=(--job work)
for form in --text --json --html; do
  "$SLUICE" report --run-dir "$RUN" --job work $form >"$SCRATCH/out" 2>"$SCRATCH/err"
  [ $? = 2 ] && [ ! -s "$SCRATCH/out" ] || fail "$form: not refused: $(cat "$SCRATCH/out")"
  grep -qF "more than one job \"work\": say which of $hers, $his" "$SCRATCH/err" ||
    fail "$form: $(cat "$SCRATCH/err")"
done
told "set($opened) == {'work'} and $opened['work'] < 1000" as $ann "$SLUICE"
told "set($opened) == {'work'} and $opened['work'] >= 2000" as $bob "$SLUICE"
what=(--job "$hers")
told "set($opened) == {'work'} and $opened['work'] < 1000" "$SLUICE"
what=(--job "$bob@work")
told "set($opened) == {'work'} and $opened['work'] >= 2000" "$SLUICE"
what=(--job alone)
told "set($opened) == {'alone'}" "$SLUICE"
work 0 work 500
what=(--job work)
told "set($opened) == {'work'} and 500 <= $opened['work'] < 2000" "$SLUICE"

# What the node wrote at the end of a job of the scheduler goes to the job of that user alone.
mkdir -p "$RUN/results"
for job in work gone; do
  printf '{"version": 1, "jobs": [{"job": "%s", "user": "%s", "class": "kept"}]}' $job \
    "$(name $bob)" >"$RUN/results/$job.json"
done
class='d[0]["jobs"][0]["class"]'
told "$class == 'bronze'" "$SLUICE"
what=(--job "$hers")
told "$class == 'bronze'" "$SLUICE"
what=(--job "$his")
told "$class == 'kept' and $opened['work'] >= 2000" "$SLUICE"
what=(--job "$(name $bob)@gone")
told "$class == 'kept'" "$SLUICE"
what=(--job "$(name $ann)@gone")
asked "$SLUICE" && fail "bob's result is told as ann's: $(cat "$sum")"
grep -q 'remembers no such job' "$SCRATCH/err" || fail "$(cat "$SCRATCH/err")"
