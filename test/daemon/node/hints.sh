#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small I/O in the jobs of a daemon: the hints that the user asks for, and what the policy says of
# targets. A job that runs keeps what it began with.
set -u
. test/lib/node.bash
need curl
policy 100k/s
METRICS_AT=127.0.0.1:0
mkdir "$DATA/own" "$DATA/late" "$SCRATCH/mine"
python3 - "$SCRATCH/policy.json" "$DATA/own" "$DATA/late" <<'P'
import json, sys
site = json.load(open(sys.argv[1]))
site["targets"]["hinted"] = {"path": sys.argv[2], "small": "hints"}
site["targets"]["gathered"] = {"path": sys.argv[3], "small": "close-to-open"}
json.dump(site, open(sys.argv[1], "w"))
P
start_node

# has_hints DIR FLAGS…: whether writes in DIR are looked at, by what the report says.
cat >"$SCRATCH/write.py" <<'P'
import os, sys
fd = os.open(sys.argv[1] + "/f", os.O_RDWR | os.O_CREAT)
os.write(fd, bytes(4 << 20))
os.lseek(fd, 0, 0)
for i in range(1000):
    os.write(fd, b"x" * 4097)
P
looks() {
  local dir=$1
  shift
  $S run --job j --report "$SCRATCH/report.json" --no-summary "$@" -- \
    python3 "$SCRATCH/write.py" "$dir" || fail "status $?"
  json "$SCRATCH/report.json" 'sum(v for v in d.get("hints", {}).values() if v != str(v))'
  json "$SCRATCH/report.json" 'd.get("hints", {}).get("cached", 0)' >>"$SCRATCH/cached"
  until_true no_jobs || fail "left over: $(ls -A "$RUN/jobs")"
}
# The policy has it for one target, and the user asks for more.
[ "$(looks "$DATA/own")" -gt 0 ] || fail 'a target of the policy'
[ "$(looks "$SCRATCH/mine")" = 0 ] || fail 'a directory that nobody named'
(cd "$SCRATCH" && [ "$(looks mine --small hints@mine)" -gt 0 ]) || fail 'as the user asked'
[ "$(looks "$SCRATCH/mine" --small hints)" -gt 0 ] || fail 'everywhere'

# The node counts what all of them came to, and keeps that when they are gone.
counted() { metric 'hints_total{result="cached"}'; }
cached() { awk '{ sum += $1 } END { print sum }' "$SCRATCH/cached"; }
is_counted() { [ "$(counted)" = "$(cached)" ]; }
[ "$(cached)" -gt 0 ] || fail "what was just written is not in the cache"
until_true is_counted || fail "counted: $(counted), reported: $(cached)"
$SLUICE report "$SCRATCH/report.json" >"$SCRATCH/out"
grep -q 'The kernel was' "$SCRATCH/out" || fail "the report: $(cat "$SCRATCH/out")"

# A target that is close-to-open: what was gathered is counted by job and by node.
# Its bytes lie in the heap: of memory that libc maps less is gathered on a disk.
export PYTHONMALLOC=malloc
$S run --job late --report "$SCRATCH/report.json" --no-summary -- python3 -c 'import os, sys
f = os.open(sys.argv[1] + "/f", os.O_WRONLY | os.O_CREAT)
for _ in range(1000): os.write(f, b"x" * 10)' "$DATA/late" || fail "gathering: status $?"
of_report() { json "$SCRATCH/report.json" "d['gathered']['$1']"; }
between 900 "$(of_report writes)" 1000 'writes that were gathered'
until_true no_jobs || fail "left over: $(ls -A "$RUN/jobs")"
is_told() { [ "$(metric gathered_writes_total)" = "$(of_report writes)" ]; }
until_true is_told || fail "told: $(metric gathered_writes_total), reported: $(of_report writes)"
[ "$(metric 'gathered_flushes_total{result="written"}')" = "$(of_report flushes)" ] || fail flushes
$SLUICE report "$SCRATCH/report.json" | grep -q 'small writes were gathered' ||
  fail "$($SLUICE report "$SCRATCH/report.json")"

# Small reads are answered from memory: the keeper is of `sluice run`, the counts of the node.
$S run --job reads --small "reads@$DATA/own" --report "$SCRATCH/report.json" --no-summary -- \
  python3 -c 'import os, sys
for _ in range(20):
    f = os.open(sys.argv[1] + "/f", os.O_RDONLY)
    n = 0
    while part := os.read(f, 512): n += len(part)
    os.close(f)
    assert n == 4 << 20, n' "$DATA/own" || fail "reading: status $?"
of_report() { json "$SCRATCH/report.json" "d['buffered']['$1']"; }
between 1 "$(of_report reads)" $((20 * 8192)) 'reads that were answered from memory'
until_true no_jobs || fail "left over: $(ls -A "$RUN/jobs")"
is_told() { [ "$(metric buffered_reads_total)" = "$(of_report reads)" ]; }
until_true is_told || fail "told: $(metric buffered_reads_total), reported: $(of_report reads)"
[ "$(metric buffer_fills_total)" = "$(of_report fills)" ] || fail fills
$SLUICE report "$SCRATCH/report.json" | grep -q 'small reads were answered from memory' ||
  fail "$($SLUICE report "$SCRATCH/report.json")"

# Small writes wait in a file of the job, which the node makes.
$S run --job strict --small "strict@$DATA/own" --report "$SCRATCH/report.json" --no-summary -- \
  python3 -c 'import os, sys
f = os.open(sys.argv[1] + "/g", os.O_WRONLY | os.O_CREAT)
for i in range(300000): os.write(f, b"%07d\n" % i)' "$DATA/own" || fail "strict: status $?"
seq -f %07.0f 0 299999 | cmp - "$DATA/own/g" || fail 'it wrote something else'
of_report() { json "$SCRATCH/report.json" "d['gathered']['$1']"; }
between 1 "$(of_report writes)" 300000 'writes that waited'
until_true no_jobs || fail "left over: $(ls -A "$RUN/jobs")"

# It runs until it is killed, or the test ends, and with it the writer of its pipe.
mkfifo "$SCRATCH/hold"
exec 9<>"$SCRATCH/hold"
$S run --job keeps -- cat <"$SCRATCH/hold" 9>&- &
keeps=$!
until_true test -d "$RUN/jobs/keeps" || fail 'no job'
$S run --job keeps --small hints -- true 2>"$SCRATCH/err"
grep -q 'keeps what it began with for small' "$SCRATCH/err" || fail "$(cat "$SCRATCH/err")"
kill "$keeps"
wait "$keeps" 2>/dev/null
$S run --small hint -- true 2>"$SCRATCH/err"
[ $? -eq 2 ] || fail 'a word that is none'
end_node
