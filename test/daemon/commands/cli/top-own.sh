#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# top without a daemon: the user's own jobs with their rates, paused and let go on from the screen,
# and a daemon's jobs beside them. A job that has ended is not shown.
set -u
. test/lib/lib.sh
. test/daemon/commands/cli/fake.bash
need python3
RUN="$SCRATCH/run"
fake=
trap 'kill $fake $(jobs -p) 2>/dev/null; rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/data"
echo x >"$SCRATCH/data/file"
"$SLUICE" --run-dir "$RUN" run --job reader --limit open=50/s@"$SCRATCH/data" --no-summary -- \
  bash -c 'until [ -e "$1/over" ]; do read -r line <"$1/data/file"; done' bash "$SCRATCH" &
reader=$!
top() { "$SLUICE" --run-dir "$RUN" "$@" >"$SCRATCH/out" 2>&1; }

waits() {
  top top --batch -n 2 -i 0.5 && grep -qE "^reader .* any +50 +[45][0-9.]+ " "$SCRATCH/out"
}
until_true waits || fail 'its rate is not shown'
grep -q '^sluice top .* no daemon .* 1 job$' "$SCRATCH/out" || fail "title: $(cat "$SCRATCH/out")"

python3 - "$SLUICE" "$RUN" <<'P' || exit 1
import sys
sys.path.insert(0, "test/lib")
import screen
s = screen.Screen([sys.argv[1], "--run-dir", sys.argv[2], "top", "-i", "0.3"],
                  columns=200)
s.wait(r"no daemon.*reader")
s.wait(r"NODES +TREND.*\| *[#*+=.:-]+\|")  # more than one look
s.key("t")
s.wait(r"time in the calls.*open.*another key: back")
s.key("x")
s.wait(r"JOB")
s.key("p")
s.wait(r"pause reader\?  y yes")
s.key("y")
s.wait(r"paused.*another key: back")
s.key("x")
s.wait(r"reader P")
s.key("\r")
s.wait(r"open@.*another key: back")
s.key("x")
s.wait(r"reader P")
s.key("py")
s.wait(r"50/s.*another key: back")
s.key("x")
s.wait(r"reader +root|reader +[a-z]")
s.key("q")
s.end(0)
P

answer hello '{"role": "node", "name": "n1"}'
answer top '{"cycle": 5, "supplies": [], "jobs": [{"job": "theirs", "user": "ann", "uid": 1001,
  "streams": []}], "nodes": [], "next": null}'
start_fake
top top --batch -n 1 || fail "beside a daemon: $(cat "$SCRATCH/out")"
grep -q '^theirs ' "$SCRATCH/out" && grep -q '^reader ' "$SCRATCH/out" ||
  fail "beside a daemon: $(cat "$SCRATCH/out")"
kill "$fake"
wait "$fake" 2>/dev/null
rm -f "$RUN/sluiced.sock"

: >"$SCRATCH/over"
wait "$reader" || fail "status $?"
top top --batch -n 1 || fail 'after its end'
grep -q '^reader ' "$SCRATCH/out" && fail "after its end: $(cat "$SCRATCH/out")"
exit 0
