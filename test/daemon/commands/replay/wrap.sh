#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# waits
# --wrap: every job is a process tree of its own below a command, with its own limits; the files are
# made outside of them, and there is one result of all. --only-job and --start-at do it by hand.
set -u
. test/daemon/commands/replay/replay.bash
trap 'rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/d"
{
  echo '# interval: 1s'
  echo 'time_s,op,count,job'
  for i in 0 1; do
    echo "$i,getattr,100,slow"
    echo "$i,getattr,100,quick"
  done
} >"$SCRATCH/t.csv"
cat >"$SCRATCH/limit" <<'E2'
#!/bin/sh
# limit JOB CLASS COMMAND...
job=$1 class=$2
shift 2
echo "$job $class" >>"$SCRATCH/started"
rate=40
[ "$class" = slow ] || rate=1000
exec "$SLUICE" --run-dir "$SCRATCH/run" run --no-summary --job "$job" --limit stat=$rate/s -- "$@"
E2
chmod +x "$SCRATCH/limit"
for processes in 1 3; do
  rm -f "$SCRATCH/started"
  "$SLUICE" replay - --target "$SCRATCH/d" --files 20 --depth 1 -q --processes $processes \
    --class slow=slow --class other --wrap "'$SCRATCH/limit' {job} {class}" \
    -o "$SCRATCH/r.json" <"$SCRATCH/t.csv" || fail "$processes: status $?"
  [ "$(sort "$SCRATCH/started" | tr '\n' ,)" = 'quick other,slow slow,' ] ||
    fail "$processes: started $(cat "$SCRATCH/started")"
  [ "$(total "$SCRATCH/r.json" done)" = 400 ] || fail "$processes: not all was done"
  end() { json "$SCRATCH/r.json" "next(j['ended_s'] for j in d['jobs'] if j['job'] == '$1')"; }
  between 1.8 "$(end quick)" 4 "$processes: end of quick"
  between 4.5 "$(end slow)" 12 "$processes: end of slow"
  class=$(json "$SCRATCH/r.json" "[j['class'] for j in d['jobs'] if j['job'] == 'slow'][0]")
  [ "$class" = slow ] || fail "$processes: class in the result: $class"
  is_empty "$SCRATCH/d" "$processes"
done

"$SLUICE" replay "$SCRATCH/t.csv" --target "$SCRATCH/d" --wrap 'no-such-command' \
  >"$SCRATCH/out" 2>&1 && fail 'a command that is not there'
grep -q 'no-such-command' "$SCRATCH/out" || fail "said $(cat "$SCRATCH/out")"
"$SLUICE" replay "$SCRATCH/t.csv" --target "$SCRATCH/d" --wrap 'false' >"$SCRATCH/out" 2>&1 &&
  fail 'a command that fails'
grep -q 'ended with status 1' "$SCRATCH/out" || fail "said $(cat "$SCRATCH/out")"
is_empty "$SCRATCH/d" 'commands that fail'

at=$(($(date +%s) + 2))
for job in slow quick; do
  "$SLUICE" replay "$SCRATCH/t.csv" --target "$SCRATCH/d" -q --only-job $job --start-at $at \
    -o "$SCRATCH/$job.json" &
done
wait
for job in slow quick; do
  [ "$(total "$SCRATCH/$job.json" done)" = 200 ] || fail "--only-job $job"
  between $((at - 0)) "$(json "$SCRATCH/$job.json" "round(d['timeline']['start_unix_s'], 2)")" \
    "$at.05" "start of $job"
done
is_empty "$SCRATCH/d" 'by hand'
