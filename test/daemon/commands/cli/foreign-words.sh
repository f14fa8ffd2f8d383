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
his='' hers='' stat='' mixed=''
trap 'kill -9 $his $hers $stat $mixed 2>/dev/null; end_node' EXIT
segment=$RUN/jobs/$bob@his/segment
as $bob "$SLUICE" --run-dir "$RUN" run --job his --no-summary -- \
  "$PROGRAMS/steady" 600 "$DATA" >"$SCRATCH/steady" 2>&1 &
his=$!
# shellcheck disable=SC2016 # for that shell
as $ann sh -c 'echo $$; exec sleep infinity' >"$SCRATCH/pid" &
until_true 30 test -s "$SCRATCH/pid" || fail 'she has no process'
hers=$(cat "$SCRATCH/pid")
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

lie process "$hers"
$S explain "$hers" >"$SCRATCH/out" 2>&1
grep -q 'is in job' "$SCRATCH/out" && fail "her process in his job: $(cat "$SCRATCH/out")"
# Root's own job may have processes of others, and is believed.
"$SLUICE" --run-dir "$RUN" run --job mixed --no-summary -- python3 -c \
  'import os, sys, time
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
while True:
    os.path.exists(sys.argv[1])
    time.sleep(0.05)' "$DATA" $ann >"$SCRATCH/mixed" 2>&1 &
mixed=$!
is_explained() {
  pid=$(pgrep -u $ann -f "$DATA $ann") && $S explain "$pid" 2>&1 | grep -q 'is in job mixed'
}
until_true 60 is_explained || fail "not in root's job: $(cat "$SCRATCH/mixed")"
kill "$pid"
lie name
member=$(pgrep -u $bob -x steady | head -n 1)
for words in "stat $bob@his" "explain $member" "--json stat $bob@his" jobs; do
  # shellcheck disable=SC2086 # words
  $S $words >"$SCRATCH/out" 2>&1
  LC_ALL=C grep -q '[[:cntrl:]]' "$SCRATCH/out" && fail "$words: $(cat -v "$SCRATCH/out")"
  grep -q '^  FORGED' "$SCRATCH/out" && fail "$words: a line of his: $(cat "$SCRATCH/out")"
done
$S stat "$bob@his" | grep -q 'x?\]0;OWNED?' || fail "he did not lie: $($S stat "$bob@his")"

# More calls than a machine makes are none.
lie calls 100000000000000000
operations() {
  $S --json report --history | python3 -c 'import json, sys
print(int(sum(j["done"] for j in json.load(sys.stdin)[0]["jobs"] if "his" in j["job"])))'
}
has_more() { [ "$(operations)" -gt "$seen" ]; }
for look in 1 2 3; do
  seen=$(operations)
  until_true 60 has_more || fail "look $look: the history stands still at $seen operations"
done
[ "$(operations)" -lt 1000000000 ] || fail "operations: $(operations)"

# Root does not open the program of a stranger, who chooses where it lies.
gcc -static -x c - -o "$SCRATCH/static" <<<'#include <unistd.h>
int main() { for (;;) pause(); }' || skip 'needs a static libc'
chmod 755 "$SCRATCH/static"
as $bob "$SCRATCH/static" &
alone=$!
is_static() { pgrep -u $bob -x static >"$SCRATCH/pid"; }
until_true 30 is_static || fail 'his program does not run'
pid=$(cat "$SCRATCH/pid")
as $bob "$SLUICE" --run-dir "$RUN" explain "$pid" 2>&1 | grep -q 'directory: .*static' ||
  fail "to himself: $(as $bob "$SLUICE" --run-dir "$RUN" explain "$pid" 2>&1)"
$S explain "$pid" 2>&1 | grep -q 'directory$' || fail "to root: $($S explain "$pid" 2>&1)"
kill "$pid"
wait "$alone" 2>/dev/null

# Who cuts his segment short while root looks at it ends no command of root's.
"$SLUICE" --run-dir "$RUN" stat -i 0.1 "$bob@his" >"$SCRATCH/looks" 2>"$SCRATCH/err" &
stat=$!
until_true 60 test -s "$SCRATCH/looks" || fail "no looks: $(cat "$SCRATCH/err")"
as $bob truncate -s 4096 "$segment" || fail 'he cannot cut it'
is_dropped() { grep -q 'segment was cut short' "$SCRATCH/log"; }
until_true 60 is_dropped || fail "the daemon: $(tail -n 3 "$SCRATCH/log")"
looks=$(wc -l <"$SCRATCH/looks")
looks_on() { ! kill -0 "$stat" 2>/dev/null || [ "$(wc -l <"$SCRATCH/looks")" -gt $((looks + 2)) ]; }
until_true 60 looks_on || fail 'stat -i stands still'
kill "$stat" 2>/dev/null
wait "$stat"
case $? in 135) fail 'stat -i: a bus error' ;; esac
