#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is wrong with a command line or a trace is said in a sentence, with status 2, before anything
# is made; help, manual page and options agree.
set -u
. test/daemon/commands/replay/replay.bash
trap 'rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/d"
trace "$SCRATCH/t.csv" 1 open,getattr 10,10
echo 'time_s,op,count
0,open,-5' >"$SCRATCH/bad.csv"
trace "$SCRATCH/none.csv" 1 open 0

refused() { # TEXT ARGUMENT...
  local text=$1
  shift
  "$SLUICE" replay "$@" >"$SCRATCH/out" 2>&1
  local got=$?
  [ $got = 2 ] || fail "$*: status $got: $(cat "$SCRATCH/out")"
  grep -qF -- "$text" "$SCRATCH/out" || fail "$*: said $(cat "$SCRATCH/out")"
  [ "$(wc -l <"$SCRATCH/out")" = 1 ] || fail "$*: more than a line: $(cat "$SCRATCH/out")"
  is_empty "$SCRATCH/d" "$*"
}
at=(--target "$SCRATCH/d")
refused 'TRACE' "${at[@]}"
refused '--target DIR is needed' "$SCRATCH/t.csv"
refused "$SCRATCH/no.csv" "$SCRATCH/no.csv" "${at[@]}"
refused 'bad.csv:2' "$SCRATCH/bad.csv" "${at[@]}"
refused 'asks for nothing' "$SCRATCH/none.csv" "${at[@]}"
refused '--time-scale' "$SCRATCH/t.csv" "${at[@]}" --time-scale 0
refused '--rate-scale' "$SCRATCH/t.csv" "${at[@]}" --rate-scale -1
for option in --time-scale --rate-scale --start-at --jobs --seed --files --max-inflight; do
  for word in x nan NaN -nan inf -inf infinity 1e999 0x10; do
    refused "$option: \"$word\" is no number from" "$SCRATCH/t.csv" "${at[@]}" "$option=$word"
  done
done
refused '--jobs' "$SCRATCH/t.csv" "${at[@]}" --jobs 0
refused '--processes' "$SCRATCH/t.csv" "${at[@]}" --processes 99999
refused 'threads' "$SCRATCH/t.csv" "${at[@]}" --processes 4096 --threads 4096
refused 'excludes' "$SCRATCH/t.csv" "${at[@]}" --threads 2 --threads-per-op 2
refused '--stagger' "$SCRATCH/t.csv" "${at[@]}" --stagger 5
refused '--duration is 0' "$SCRATCH/t.csv" "${at[@]}" --duration 0s
refused '--arrivals' "$SCRATCH/t.csv" "${at[@]}" --arrivals sometimes
refused '--io-size' "$SCRATCH/t.csv" "${at[@]}" --io-size 2GiB
refused '--io-size' "$SCRATCH/t.csv" "${at[@]}" --io-size some
refused 'more than 100000 directories' "$SCRATCH/t.csv" "${at[@]}" --depth 20 --fanout 10
refused 'no such job; there is job1' "$SCRATCH/t.csv" "${at[@]}" --only-job x
refused 'quote' "$SCRATCH/t.csv" "${at[@]}" --wrap "sh -c 'x"
refused 'since 1970' "$SCRATCH/t.csv" "${at[@]}" --start-at 5
refused '--policy is for --simulate' "$SCRATCH/t.csv" "${at[@]}" --policy x.json
refused 'needs --policy' "$SCRATCH/t.csv" --simulate
refused '--threads is about real I/O' "$SCRATCH/t.csv" --simulate --policy x.json --threads 2
refused '--bogus' "$SCRATCH/t.csv" "${at[@]}" --bogus

"$SLUICE" replay "$SCRATCH/t.csv" "${at[@]}" -o "$SCRATCH/nowhere/r.json" >"$SCRATCH/out" 2>&1 &&
  fail "a result file that cannot be made is accepted"
grep -qF "$SCRATCH/nowhere/r.json" "$SCRATCH/out" || fail "said $(cat "$SCRATCH/out")"
is_empty "$SCRATCH/d" 'no result file'

# Standard input and output; then standard output is the result alone.
"$SLUICE" replay - "${at[@]}" -o - <"$SCRATCH/t.csv" >"$SCRATCH/r.json" 2>"$SCRATCH/out" ||
  fail "-: status $?: $(cat "$SCRATCH/out")"
[ "$(total "$SCRATCH/r.json" done)" = 20 ] || fail "from standard input: $(cat "$SCRATCH/r.json")"
grep -q '^job1 .*getattr' "$SCRATCH/out" || fail 'the table is not on standard error'

man=$top/daemon/commands/replay/sluice-replay.1
options=$("$SLUICE" replay --help | grep -oE '^  (-[a-z],)?--[a-z-]+' | grep -oE '[-]-[a-z-]+')
for option in $options; do
  grep -q "Fl -${option#--}" "$man" || fail "the manual page does not know $option"
done
if command -v mandoc >/dev/null; then
  mandoc -T lint "$man" 2>&1 | grep -vE 'referenced manual not found|mandoc.db' >"$SCRATCH/lint"
  [ ! -s "$SCRATCH/lint" ] || fail "manual page: $(cat "$SCRATCH/lint")"
fi
