#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sluice run --record`: the trace holds every call that the report counts, in the second in which
# it happened, and the program keeps its exit status, its signals and its output.
set -u
. test/lib/lib.sh
cd "$SCRATCH" || exit 1
export XDG_RUNTIME_DIR=$SCRATCH
run() { "$SLUICE" run --no-daemon --no-summary "$@"; }

cat >busy.py <<'END'
import os, time
open("f", "w").write("x" * 100000)
time.sleep(0.55)
for i in range(1000):
    os.close(os.open("f", os.O_RDONLY))
with open("f", "rb", buffering=0) as f:
    while f.read(1000):
        pass
END
run --record r.csv --interval 100ms --report r.json -- python3 busy.py || fail "status $?"
python3 - <<'END' || fail 'the trace and the report differ'
import csv, json, sys
lines = open("r.csv").read().splitlines()
head = [l for l in lines if l.startswith("#")]
assert "# interval: 0.1s" in head, head
assert any(l.startswith("# provenance: ") for l in head), head
rows = list(csv.DictReader(l for l in lines if not l.startswith("#")))
def total(op): return sum(float(r[op]) for r in rows)
calls = json.load(open("r.json"))["calls"]
def counted(op, field): return sum(c[field] for c in calls if c["op"] == op)
def opens(): return counted("open", "calls") + counted("opendir", "calls")
for got, want in ((total("open"), opens()), (total("read"), counted("read", "bytes")),
                  (total("write"), counted("write", "bytes"))):
    assert got == want and want > 0, (got, want)
late = sum(float(r["open"]) for r in rows[5:])
assert late >= 1000, (late, rows)
END

# What the kernel copies by itself is read and written.
run --record c.csv -- python3 -c 'import os
a, b = os.open("f", os.O_RDONLY), os.open("copy", os.O_WRONLY | os.O_CREAT)
os.copy_file_range(a, b, 40000)
os.sendfile(b, a, 0, 20000)' || fail "a copy: $?"
python3 - <<'END' || fail "a copy: $(cat c.csv)"
import csv
rows = list(csv.DictReader(l for l in open("c.csv") if not l.startswith("#")))
assert sum(float(r["write"]) for r in rows) == 60000, rows
END

run --record e.csv --interval 10ms -- sh -c 'exit 7'
[ $? = 7 ] || fail 'the exit status is not that of the program'
[ -s e.csv ] || fail 'no trace after a failed program'
(run --record s.csv -- sh -c 'kill -TERM $$') 2>/dev/null
[ $? = 143 ] || fail 'the end by a signal is not passed on'
[ -s s.csv ] || fail 'no trace after a killed program'
run --record i.csv --interval 50ms -- sleep 0.3 || fail 'an idle program'
grep -q '^# note: no call' i.csv || [ "$(grep -c '^[0-9]' i.csv)" -ge 1 ] || fail 'an idle program'

# A signal sent to us while the clock ticks reaches the program at once.
"$SLUICE" run --no-daemon --no-summary --record t.csv --interval 10ms -- \
  sh -c 'trap "exit 9" USR1; echo up >up; while :; do sleep 0.02; done' &
pid=$!
until [ -e up ]; do sleep 0.02; done
kill -USR1 $pid
wait $pid
[ $? = 9 ] || fail 'a signal was lost'

for bad in --record=/nowhere/x.csv --record="$SCRATCH" '--interval=1 --record=b.csv' \
  '--interval=1us --record=b.csv'; do
  # shellcheck disable=SC2086
  run $bad -- touch ran 2>err
  [ $? = 2 ] || fail "$bad was accepted"
  [ ! -e ran ] || fail "$bad: the program ran"
  [ -s err ] || fail "$bad: no message"
done
[ -z "$(ls -- *.csv.* 2>/dev/null)" ] || fail "left behind: $(ls)"
