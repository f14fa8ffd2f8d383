#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# set, pause, resume and explain on a living job: waiters wake, and one can see what they wait for.
set -u
. test/lib/lib.sh
S="$SLUICE --run-dir $SCRATCH/run"
trap 'kill $job 2>/dev/null; rm -rf "$SCRATCH"' EXIT
$S run --job j --limit open=0 -- sh -c "exec cat $SCRATCH/missing $SCRATCH/missing" 2>/dev/null &
job=$!
for _ in $(seq 100); do $S explain $job 2>/dev/null | grep -q 'waits in' && break; sleep 0.05; done
$S explain $job >"$SCRATCH/e" || fail "explain: $(cat "$SCRATCH/e")"
grep -q 'waits in open.* for "open".*until it is resumed' "$SCRATCH/e" ||
  fail "explain says $(cat "$SCRATCH/e")"
$S --json explain $job >"$SCRATCH/e.json" || fail "explain --json"
[ "$(json "$SCRATCH/e.json" 'd["job"]')" = j ] || fail "explain --json names another job"
$S set j data=5/s 2>/dev/null && fail "set of an unknown channel"
$S set j open=5MB/s 2>/dev/null && fail "set in a wrong unit"
$S set j open=1000/s >/dev/null || fail "set"
wait $job
[ $? = 1 ] || fail "the program did not go on"

$S run --job k --limit open=100k/s -- sh -c "while :; do : <$SCRATCH/e; done" &
job=$!
for _ in $(seq 100); do $S stat k >/dev/null 2>&1 && break; sleep 0.05; done
opens() { $S --json stat k >"$SCRATCH/s.json"; json "$SCRATCH/s.json" 'd["channels"][0]["calls"]'; }
$S pause k >/dev/null || fail "pause"
sleep 0.3
before=$(opens)
sleep 0.4
[ "$(opens)" -le $((before + 1)) ] || fail "calls went on in a paused job"
$S set k open=200k/s 2>/dev/null | grep -q paused || fail "set ended the pause"
$S resume k | grep -q 'open 200k/s' || fail "resume forgot the rate"
for _ in $(seq 200); do [ "$(opens)" -gt $((before + 1)) ] && break; sleep 0.05; done
[ "$(opens)" -gt $((before + 1)) ] || fail "nothing went on after resume"
$S resume k 2>/dev/null && fail "resumed twice"
$S --json jobs >"$SCRATCH/jobs.json" || fail "jobs --json"
[ "$(json "$SCRATCH/jobs.json" '[j["live"] for j in d if j["job"] == "k"]')" = '[True]' ] ||
  fail "jobs --json does not say that k is alive"
kill $job
wait $job 2>/dev/null

# A resource alone means all its targets, as with a daemon.
mkdir "$SCRATCH/a" "$SCRATCH/b"
$S run --job m --limit "open=100k/s@$SCRATCH/a" --limit "open=100k/s@$SCRATCH/b" \
  --limit read=100k/s -- sleep 100 &
job=$!
for _ in $(seq 100); do $S stat m >/dev/null 2>&1 && break; sleep 0.05; done
$S set m open=0 >"$SCRATCH/out" || fail "set of a resource"
[ "$(grep -c "^open@$SCRATCH/[ab] paused" "$SCRATCH/out")" = 2 ] &&
  grep -q '^read 100k/s' "$SCRATCH/out" ||
  fail "set of a resource: $(cat "$SCRATCH/out")"
$S resume m 2>"$SCRATCH/err"
[ $? = 2 ] &&
  grep -q "not paused; open@$SCRATCH/a, open@$SCRATCH/b are 0: set them to a rate" "$SCRATCH/err" ||
  fail "resume of a job with a limit of 0: $(cat "$SCRATCH/err")"
kill $job
wait $job 2>/dev/null
exit 0
