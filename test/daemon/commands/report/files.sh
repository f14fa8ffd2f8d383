#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sluice run --report` and `sluice report`: what a program did and waited for, per second, with the
# rule and its line; as text, page and summary; and what is refused, without leaving half a file.
set -u
. test/lib/lib.sh
cd "$SCRATCH" || exit 1
export XDG_RUNTIME_DIR=$SCRATCH
mkdir data
printf x >data/file
cat >policy.json <<END
{"targets": {"scratch": {"path": "$SCRATCH/data"}},
 "channels": [
  {"name": "opens", "match": {"call": "open", "target": "scratch"}, "limit": "200/s"}]}
END
cat >busy.py <<'END'
import os, time
time.sleep(0.6)
for i in range(300):
    os.close(os.open("data/file", os.O_RDONLY))
END
"$SLUICE" run --no-daemon --no-summary --job hydro --interval 100ms --policy policy.json \
  --report r.json -- /usr/bin/python3 busy.py || fail "run: $?"
python3 - <<'END' || fail "the timeline: $(cat r.json)"
import json
r = json.load(open("r.json"))
for key in ("version", "job", "command", "exit", "elapsed_s", "channels", "calls", "passthrough"):
    assert key in r, key
t = r["timeline"]
assert t["interval_s"] == 0.1 and t["start_unix_s"] > 1e9
def row(what, **of):
    rows = [x for x in t["rows"] if x["what"] == what and all(x.get(k) == v for k, v in of.items())]
    assert len(rows) == 1, (what, of, rows)
    assert rows[0]["job"] == "hydro"
    return rows[0]["values"]
def call(op, field): return sum(c[field] for c in r["calls"] if c["op"] == op)
assert sum(row("done", op="open", unit="ops")) == call("open", "calls")
assert abs(sum(row("waited", op="open")) - call("open", "waited_ns") / 1e9) < 0.01
channel = r["channels"][0]
assert abs(sum(row("served", channel="opens")) * 0.1 - channel["amount"]) < 1
assert set(row("limit", channel="opens")) == {200}
blocked = row("blocked", channel="opens")
assert max(blocked) <= 0.1 and sum(blocked) > 0.3, blocked
assert sum(row("served", channel="opens")[:4]) == 0, "nothing was opened while it slept"
rule = r["rules"][0]
assert rule["channel"] == "opens" and rule["line"] == 3 and rule["file"].endswith("policy.json")
END

"$SLUICE" report r.json >text || fail "report: $?"
grep -q 'were spent waiting for limit opens' text || fail "no waiting: $(cat text)"
tr '\n' ' ' <text | grep -q 'policy.json  *line 3' || fail "no rule: $(cat text)"
grep -q 'in open' text || fail "no call: $(cat text)"
"$SLUICE" report --json r.json >s.json || fail "report --json: $?"
[ "$(json s.json 'd[0]["gates"][0]["name"]')" = opens ] || fail "summary: $(cat s.json)"
"$SLUICE" report - --json <r.json | grep -q opens || fail "standard input"
"$SLUICE" report r.json -o r.html || fail "report -o: $?"
grep -q '<svg class="chart"' r.html || fail "no drawing"
grep -qE '(src|href)=|@import|url\((https?:|//)' r.html && fail "the page names other files"
"$SLUICE" report r.json r.json -o both.html && grep -q 'Side by side' both.html ||
  fail "two side by side"

# As of before there were timelines.
printf '{"version": 1, "job": "old", "elapsed_s": 2, "channels": [], "calls": []}' >old.json
"$SLUICE" report old.json | grep -q 'Run of old' || fail "a file without a timeline"

refused() { # WORDS ARGUMENTS...
  local words=$1
  shift
  "$SLUICE" report "$@" >out 2>err
  local status=$?
  [ $status = 2 ] || fail "$*: status $status: $(cat out err)"
  grep -qF -- "$words" err || fail "$*: $(cat err)"
  [ ! -s out ] || fail "$*: printed $(cat out)"
}
printf '{"version": 1,\n"job": 5}' >bad.json
refused 'bad.json:2: job: wanted a string' bad.json
refused 'bad.json:2: job' bad.json -o bad.html
[ ! -e bad.html ] && [ -z "$(ls | grep '^bad.html')" ] || fail "left $(ls)"
head -c 300 r.json >cut.json
refused 'cut.json:' cut.json
head -c 4096 /dev/urandom >binary.json
refused 'binary.json:1:' binary.json
printf '{"version": 1, "timeline": {"rows": [{"what": "done", "values": [1, -5]}]}}' >negative.json
refused 'values[1]: -5 is no amount' negative.json
printf '{"version": 1, "elapsed_s": 1e999}' >huge.json
refused 'huge.json:1' huge.json
refused 'No such file' none.json
refused 'that is the input' r.json -o r.json
[ -s r.json ] || fail "the input is gone"
refused 'give a result file'
refused 'either files' r.json --job hydro
refused 'is a directory' r.json -o data
: >empty.json
refused 'is empty' empty.json
"$SLUICE" report r.json >/dev/full 2>err
[ $? = 125 ] && grep -q 'cannot be written' err || fail "a full disk: $(cat err)"
exit 0
