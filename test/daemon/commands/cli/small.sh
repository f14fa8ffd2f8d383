#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the commands say of small I/O in a job that runs, with a daemon and without: jobs and explain
# tell which target has what, and what came of it, by the rows of the report.
set -u
. test/lib/node.bash
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$SCRATCH"' EXIT
mkdir "$DATA/late" "$DATA/own"
policy 100k/s
python3 - "$SCRATCH/policy.json" "$DATA/late" <<'P' || fail 'cannot make a policy'
import json, sys
site = json.load(open(sys.argv[1]))
site["targets"]["late"] = {"path": sys.argv[2], "small": "close-to-open"}
json.dump(site, open(sys.argv[1], "w"))
P

# It writes a file in small pieces, tells its number, and waits. Its bytes lie in the heap.
export PYTHONMALLOC=malloc
cat >"$SCRATCH/writes.py" <<'P'
import os, sys
f = os.open(sys.argv[1] + "/f", os.O_WRONLY | os.O_CREAT)
for _ in range(1000): os.write(f, b"x" * 10)
os.close(f)
print(os.getpid(), flush=True)
sys.stdin.read()
P
mkfifo "$SCRATCH/hold"
exec 9<>"$SCRATCH/hold"
begin() { # SLUICE… run, with its options
  rm -f "$SCRATCH/pid"
  "$@" --job tiny --small "strict@$DATA/own" -- python3 "$SCRATCH/writes.py" "$DATA/late" \
    <"$SCRATCH/hold" >"$SCRATCH/pid" 9>&- &
  job=$!
  until_true test -s "$SCRATCH/pid" || fail 'it does not begin'
  pid=$(cat "$SCRATCH/pid")
}
modes="small I/O: close-to-open in $DATA/late; strict in $DATA/own"
targets="[{'target': '$DATA/late', 'modes': ['close-to-open']},
          {'target': '$DATA/own', 'modes': ['strict']}]"
says() { # COMMAND…: it tells modes, and counts as the summary does
  "$@" >"$SCRATCH/out" || fail "$*: status $?"
  grep -qF "  $modes" "$SCRATCH/out" || fail "$*, modes: $(cat "$SCRATCH/out")"
  grep -qE '  gathered: 9[0-9]{2} small writes, 9\.[0-9]+ KiB in [0-9]+ to the kernel' \
    "$SCRATCH/out" || fail "$*, counts: $(cat "$SCRATCH/out")"
}
is_told() { # ROW COMMAND…: the same as JSON, by the rows of the report
  local where=$1
  shift
  "$@" >"$SCRATCH/out.json" || fail "$*: status $?"
  [ "$(json "$SCRATCH/out.json" "$where['small']['targets'] == $targets")" = True ] ||
    fail "$*, modes: $(cat "$SCRATCH/out.json")"
  [ "$(json "$SCRATCH/out.json" "$where['small']['gathered'] == $report")" = True ] ||
    fail "$*, counts: $(cat "$SCRATCH/out.json")"
}
tells() { # SLUICE…
  "$@" --json stat tiny >"$SCRATCH/stat.json" || fail stat
  report=$(json "$SCRATCH/stat.json" "d['gathered']")
  says "$@" explain --job tiny
  is_told d "$@" --json explain --job tiny
  says "$@" explain "$pid"
  is_told d "$@" --json explain "$pid"
  is_told "[j for j in d if j['job'] == 'tiny'][0]" "$@" --json jobs
  "$@" jobs >"$SCRATCH/out" || fail jobs
  grep -qE "^tiny .*$modes, 9[0-9]{2} small calls became [0-9]+\$" "$SCRATCH/out" ||
    fail "jobs: $(cat "$SCRATCH/out")"
}

begin $S --no-daemon run -q --policy "$SCRATCH/policy.json" --no-summary
tells $S --no-daemon
exec 9>&-
wait "$job" || fail "the job: status $?"
until_true no_jobs || fail "left over: $(ls -A "$RUN/jobs")"

# A job of a daemon: who may read its files reads them, others ask the daemon.
start_node
exec 9<>"$SCRATCH/hold"
begin $S run --no-summary
tells $S
write_asker
echo '{"verb": "explain", "job": "tiny"}' | python3 "$SCRATCH/ask.py" "$RUN/sluiced.sock" \
  >"$SCRATCH/asked" || fail 'the daemon does not answer'
is_told d cat "$SCRATCH/asked"

# Of a call, what its target has.
$S --no-daemon explain --policy "$SCRATCH/policy.json" write "$DATA/late/f" >"$SCRATCH/out" ||
  fail 'explain of a call'
grep -qF "small I/O: close-to-open in $DATA/late" "$SCRATCH/out" || fail "$(cat "$SCRATCH/out")"
$S --no-daemon explain --policy "$SCRATCH/policy.json" write "$DATA/f" >"$SCRATCH/out" ||
  fail 'explain of a call elsewhere'
grep -q 'small I/O' "$SCRATCH/out" && fail "elsewhere: $(cat "$SCRATCH/out")"

# An area that is damaged names no target, and does no harm.
printf 'damaged!' | dd of="$RUN/jobs/tiny/rings" conv=notrunc status=none || fail 'cannot damage it'
$S explain --job tiny >"$SCRATCH/out" || fail 'explain of a damaged area'
grep -qx "  small I/O: close-to-open in $DATA/late" "$SCRATCH/out" || fail "$(cat "$SCRATCH/out")"
exec 9>&-
wait "$job" || fail "the job: status $?"
end_node
