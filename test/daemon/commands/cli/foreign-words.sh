#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a user writes into the memory of his own job, while root looks at it: words stay words on
# root's terminal, a process of somebody else is not shown as his, and `stat -i` lives through
# limits that go and come.
set -u
. test/lib/node.bash
two_users
policy 50k/s
start_node
his='' hers='' stat=''
trap 'kill -9 $his $hers $stat 2>/dev/null; end_node' EXIT
segment=$RUN/jobs/$bob@his/segment
as $bob "$SLUICE" --run-dir "$RUN" run --job his --no-summary -- \
  "$PROGRAMS/steady" 600 "$DATA" >"$SCRATCH/steady" 2>&1 &
his=$!
as $ann sleep 600 &
hers=$!
until_true 60 test -e "$segment" || fail "no job: $(cat "$SCRATCH/steady" "$SCRATCH/log")"
lie() { as $bob "$PROGRAMS/lying_words" "$segment" "$@" || fail "lying_words $*"; }
last_has_limit() { tail -n 1 "$SCRATCH/looks" | grep -q '@'; }
last_has_none() { [ -s "$SCRATCH/looks" ] && ! last_has_limit; }

"$SLUICE" --run-dir "$RUN" stat -i 0.1 "$bob@his" >"$SCRATCH/looks" 2>"$SCRATCH/err" &
stat=$!
until_true 60 last_has_limit || fail "no limit: $(cat "$SCRATCH"/{looks,err})"
count=$(lie limits 0)
until_true 60 last_has_none || fail "still limits: $(tail -n 3 "$SCRATCH/looks")"
lie limits "$count" >/dev/null
until_true 60 last_has_limit || fail "stat -i: $(tail -n 3 "$SCRATCH/looks"; cat "$SCRATCH/err")"
kill "$stat"
wait "$stat" 2>/dev/null

pid=$(pgrep -u $ann -x sleep | head -n 1)
lie process "$pid"
$S explain "$pid" >"$SCRATCH/out" 2>&1
grep -q 'is in job' "$SCRATCH/out" && fail "her process in his job: $(cat "$SCRATCH/out")"
lie name
member=$(pgrep -u $bob -x steady | head -n 1)
for words in "stat $bob@his" "explain $member" "--json stat $bob@his" jobs; do
  # shellcheck disable=SC2086 # words
  $S $words >"$SCRATCH/out" 2>&1
  LC_ALL=C grep -q '[[:cntrl:]]' "$SCRATCH/out" && fail "$words: $(cat -v "$SCRATCH/out")"
  grep -q '^  FORGED' "$SCRATCH/out" && fail "$words: a line of his: $(cat "$SCRATCH/out")"
done
$S stat "$bob@his" | grep -q 'x?\]0;OWNED?' || fail "he did not lie: $($S stat "$bob@his")"
exit 0
