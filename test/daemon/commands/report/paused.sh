#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job that somebody paused: its report, page and summary name the pause and when it was, of a
# run without a daemon and of a daemon's history; a limit that always was 0 is no pause.
set -u
. test/lib/node.bash
policy 200/s
printf x >"$DATA/file"
busy() { # WHERE OPTIONS…: opens a file again and again, until it is told to end
  "$SLUICE" --run-dir "$1" run --no-summary --job hydro "${@:2}" -- \
    sh -c "until [ -e $SCRATCH/over ]; do : <$DATA/file; done"
}
moment='[0-9:.]+( m?s)?'
told() { # FILE: the pause is told in words, in figures and on the page
  "$SLUICE" report "$1" >"$SCRATCH/text" || fail "report: $(cat "$SCRATCH/text")"
  tr '\n' ' ' <"$SCRATCH/text" | tr -s ' ' |
    grep -qE "The job was paused by hand for [0-9.]+ m?s: from $moment to $moment\." ||
    fail "no pause: $(cat "$SCRATCH/text")"
  "$SLUICE" report --json "$1" >"$SCRATCH/sum"
  [ "$(json "$SCRATCH/sum" '0.5 < d[0]["jobs"][0]["paused_s"] < d[0]["duration_s"]')" = True ] ||
    fail "the summary: $(cat "$SCRATCH/sum")"
  "$SLUICE" report "$1" -o "$SCRATCH/page.html"
  grep -q 'class="paused"' "$SCRATCH/page.html" || fail 'no band of the pause on the page'
  grep -q '>paused by hand<' "$SCRATCH/page.html" || fail 'no key of the pause on the page'
}

# Without a daemon.
busy "$SCRATCH/own" --no-daemon --limit open=100/s --report "$SCRATCH/own.json" &
job=$!
S="$SLUICE --run-dir $SCRATCH/own"
calls() {
  $S --json stat hydro >"$SCRATCH/stat" && json "$SCRATCH/stat" 'd["channels"][0]["calls"]'
}
is_busy() { [ "$(calls)" -gt 20 ]; }
until_true 20 is_busy || fail 'the job does nothing'
begun=$(date +%s%N)
$S pause hydro >/dev/null || fail pause
for_a_second() { [ $(($(date +%s%N) - begun)) -gt 1000000000 ]; }
until_true 20 for_a_second
$S resume hydro >/dev/null || fail resume
before=$(calls)
goes_on() { [ "$(calls)" -gt $((before + 20)) ]; }
until_true 20 goes_on || fail 'the job does not go on'
touch "$SCRATCH/over"
wait $job
rm "$SCRATCH/over"
told "$SCRATCH/own.json"

"$SLUICE" --run-dir "$SCRATCH/own" run --no-daemon --no-summary --limit stat=0 \
  --report "$SCRATCH/zero.json" -- true
"$SLUICE" report "$SCRATCH/zero.json" >"$SCRATCH/text"
grep -q 'by hand' "$SCRATCH/text" && fail "a limit of 0 is told as a pause: $(cat "$SCRATCH/text")"

# With one.
S="$SLUICE --run-dir $RUN"
METRICS_AT=127.0.0.1:$(free_port)
start_node
busy "$RUN" &
job=$!
asked() { $SLUICE report --run-dir "$RUN" --job hydro --last 5m --json >"$SCRATCH/sum" 2>&1; }
is() { asked && [ "$(json "$SCRATCH/sum" "$1")" = True ]; } # EXPR of the job's row
until_true 30 is 'd[0]["jobs"][0]["done"] > 0' || fail "no history: $(cat "$SCRATCH/sum")"
is 'd[0]["jobs"][0]["paused_s"] == 0' || fail "paused: $(cat "$SCRATCH/sum")"
$S pause hydro >/dev/null || fail 'pause of the daemon'
until_true 30 is 'd[0]["jobs"][0]["paused_s"] > 1' || fail "not paused: $(cat "$SCRATCH/sum")"
$S resume hydro >/dev/null || fail 'resume of the daemon'
$S report --job hydro --last 5m >"$SCRATCH/text"
tr '\n' ' ' <"$SCRATCH/text" | tr -s ' ' |
  grep -q 'The job was paused by hand for [0-9.]* s: from' ||
  fail "no pause: $(cat "$SCRATCH/text")"
$S report --job hydro --last 5m -o "$SCRATCH/page.html"
grep -q '>paused by hand<' "$SCRATCH/page.html" || fail 'no pause on the page of the history'
touch "$SCRATCH/over"
wait $job
