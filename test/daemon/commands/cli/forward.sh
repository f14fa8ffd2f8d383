#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Options before a verb reach the program that serves it, all of them and whichever verb it is; a
# program takes those that mean nothing to it.
set -u
. test/lib/lib.sh
need python3

# ---- what is passed on: programs that print their words ----
mkdir "$SCRATCH/bin"
cp "$SLUICE" "$SCRATCH/bin/sluice" || fail 'copy'
verbs=$(sed -n 's/^ *{"\([a-z]*\)", "\([a-z-]*\)", \(true\|false\),.*/\1 \2 \3/p' \
  "$top/daemon/commands/cli/options.h")
[ "$(wc -l <<<"$verbs")" -ge 7 ] || fail "verbs of other programs: $verbs"
while read -r verb program names_itself; do
  printf '#!/bin/sh\necho "$@"\n' >"$SCRATCH/bin/$program"
  chmod 755 "$SCRATCH/bin/$program"
  name=
  [ $names_itself = false ] || name="$verb "
  got=$("$SCRATCH/bin/sluice" -v --json --run-dir /d --no-daemon $verb --job x y)
  [ "$got" = "$name--run-dir /d --json --verbose --no-daemon --job x y" ] || fail "$verb: $got"
  [ "$("$SCRATCH/bin/sluice" $verb --json y)" = "$name--json y" ] || fail "$verb alone"
done <<<"$verbs"

# ---- what the programs make of it ----
all=(--run-dir "$SCRATCH/none" --json --verbose --no-daemon)
"$SLUICE" "${all[@]}" trace info "$top/traces/recorded.csv" >"$SCRATCH/out" || fail 'trace'
json "$SCRATCH/out" 'd' >/dev/null || fail "trace: $(cat "$SCRATCH/out")"
echo '{"version": 1, "job": "a"}' >"$SCRATCH/r.json"
"$SLUICE" "${all[@]}" report "$SCRATCH/r.json" >"$SCRATCH/out" || fail 'report'
[ "$(json "$SCRATCH/out" 'd[0]["job"]')" = a ] || fail "report: $(cat "$SCRATCH/out")"
"$SLUICE" "${all[@]}" report --job a 2>"$SCRATCH/err"
[ $? = 2 ] && grep -q -- --no-daemon "$SCRATCH/err" || fail "report --job: $(cat "$SCRATCH/err")"
"$SLUICE" "${all[@]}" keys new --dir "$SCRATCH/keys" me >/dev/null || fail 'keys'
"$SLUICE" "${all[@]}" recover "$SCRATCH/none" 2>"$SCRATCH/err"
grep -q "$SCRATCH/none" "$SCRATCH/err" || fail "recover: $(cat "$SCRATCH/err")"
mkdir "$SCRATCH/tree"
printf '# interval: 1s\ntime_s,open,close\n0,5,5\n' >"$SCRATCH/load.csv"
"$SLUICE" "${all[@]}" replay "$SCRATCH/load.csv" --target "$SCRATCH/tree" -q >"$SCRATCH/out" ||
  fail 'replay'
[ "$(json "$SCRATCH/out" 'd["kind"]')" = replay ] || fail "replay: $(cat "$SCRATCH/out")"

# ---- submit and hook: the daemon of --run-dir is asked ----
printf '#!/bin/sh\n[ "$1" = --help ] && echo options || echo "sbatch $*"\n' >"$SCRATCH/bin/sbatch"
chmod 755 "$SCRATCH/bin/sbatch"
PATH=$SCRATCH/bin:$PATH
"$SLUICE" --run-dir "$SCRATCH/none" submit --class c job.sh >"$SCRATCH/out" 2>"$SCRATCH/err"
grep -q "$SCRATCH/none" "$SCRATCH/err" || fail "submit asks elsewhere: $(cat "$SCRATCH/err")"
grep -qx 'sbatch job.sh' "$SCRATCH/out" || fail "submit: $(cat "$SCRATCH/out")"
"$SLUICE" -v --no-daemon --run-dir "$SCRATCH/none" submit --class c job.sh >"$SCRATCH/out" \
  2>"$SCRATCH/err" || fail 'submit'
[ ! -s "$SCRATCH/err" ] || fail "--no-daemon submit asks: $(cat "$SCRATCH/err")"
grep -qx 'sbatch --verbose job.sh' "$SCRATCH/out" || fail "-v submit: $(cat "$SCRATCH/out")"
"$SLUICE" --json submit --class c job.sh 2>/dev/null
[ $? = 2 ] || fail 'submit takes --json'
mkdir "$SCRATCH/run"
"$SLUICE" --json -v --run-dir "$SCRATCH/run" hook prolog --job 7 --uid 5 2>/dev/null || fail 'hook'
[ -e "$SCRATCH/run/scheduler/7" ] || fail 'hook prolog works elsewhere'
"$SLUICE" --run-dir "$SCRATCH/run" hook 2>/dev/null
[ $? = 2 ] || fail 'hook without a word'
