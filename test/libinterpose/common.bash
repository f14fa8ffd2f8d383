# SPDX-License-Identifier: Apache-2.0
# What the tests of guest behaviour share: a prepared tree $DIR, and ways to run a guest in it bare
# and under limits. Sourced after nothing: it sources test/lib/lib.sh itself.
. test/lib/lib.sh

DIR=$SCRATCH/dir
report=$SCRATCH/report.json
[ -x "$SLUICE" ] && [ -e "$SLUICE_LIB" ] || fail "sluice is not built"
mkdir -p "$DIR"
"$PROGRAMS/loop" prepare 1 "$DIR" >"$SCRATCH/prepared" || fail "cannot prepare $DIR"

# limited SPEC[,SPEC…] CMD…: under these limits (`none`: only counted), leaving $report. No test
# waits for ever: a guest that hangs is ended after ${TIME:-20} seconds and the status is 137.
limited() {
  local spec args=()
  [ "$1" = none ] || for spec in ${1//,/ }; do args+=(--limit "$spec"); done
  shift
  rm -f "$report"
  timeout -s KILL "${TIME:-20}" "$SLUICE" --run-dir "$SCRATCH/run" run ${JOB:+--job "$JOB"} \
    "${args[@]}" -q --report "$report" --no-summary -- "$@"
}

# calls_of JOB: what it has done so far; 0 while it is not there.
calls_of() {
  "$SLUICE" --run-dir "$SCRATCH/run" --json stat "$1" >"$SCRATCH/stat.json" 2>"$SCRATCH/stat.err" ||
    { echo 0 && return; }
  json "$SCRATCH/stat.json" 'sum(c["calls"] for c in d["calls"])'
}

# at_work JOB: waits until it has called something that is counted.
at_work() {
  local i
  for i in $(seq 600); do
    [ "$(calls_of "$1")" -gt 0 ] && return
    sleep 0.05
  done
  fail "job $1 does nothing: $(cat "$SCRATCH/stat.err")"
}

# guest SPECS CMD…: bare it must end well, under the limits too.
guest() {
  local specs=$1
  shift
  timeout -s KILL 20 "$@" || fail "bare, status $?: $*"
  limited "$specs" "$@" || fail "under $specs, status $?: $*"
}

# under_names CMD…: under patterns of whole paths, roles, gates of epochs, hints, and where small
# writes are gathered. It does its work in $DIR and $DIR/deep, by names relative and whole.
under_names() {
  local policy
  mkdir "$DIR/deep"
  cat >"$SCRATCH/roles.json" <<P
{"targets": {"scratch": {"path": "$DIR"}},
 "roles": {"g": {"a": {"path": "*/deep/*.x"}, "b": {"path": "*.log"}, "rest": {"rest": true}}}}
P
  cat >"$SCRATCH/after.json" <<P
{"targets": {"scratch": {"path": "$DIR", "after": {"write": "*/MANIFEST*", "durable": "*/small*"}}}}
P
  cat >"$SCRATCH/hints.json" <<P
{"targets": {"scratch": {"path": "$DIR", "small": "hints"}}}
P
  cat >"$SCRATCH/gathers.json" <<P
{"targets": {"scratch": {"path": "$DIR", "small": "close-to-open"}}}
P
  for policy in roles after hints gathers; do
    timeout -s KILL 20 "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run --no-summary \
      --policy "$SCRATCH/$policy.json" -- "$@" || fail "$policy: $?"
  done
}

# count KIND NAME FIELD: one number of the report.
count() { python3 "$top/test/libinterpose/report.py" "$report" "$@" || fail "report lacks $*"; }

# counted LOW HIGH KIND NAME FIELD: it lies between.
counted() {
  local low=$1 high=$2 value
  shift 2
  value=$(count "$@") || exit 1
  between "$low" "$value" "$high" "$*"
}
