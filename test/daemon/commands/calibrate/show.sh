#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# beside
# Cost files as people and programs see them: a table, several side by side, JSON, a page that needs
# nothing else and in which a hostile name stays text.
set -u
. test/lib/lib.sh
need python3
cd "$SCRATCH"
cat >small.json <<'J'
{"version": 1, "max_vops": 8000, "read": [[4096, 1], [1048576, 40]]}
J
cat >measured.json <<'J'
{"version": 1, "max_vops": 90000, "provisionable_vops": 41000,
 "provenance": {"device": "7:1", "fs": "ext4", "source": "<script>alert(1)</script>"},
 "read": [{"bytes": 4096, "cost": 1, "per_s": 90000, "spread": 0.2, "unstable": true}, [65536, 5]],
 "write": [[4096, 1.25], [65536, 6]], "ops": {"open": {"cost": 0.5, "per_s": 180000, "p50_us": 9},
  "fsync": {"cost": 30, "per_s": 300, "p50_us": 3000}, "create": 12.5},
 "interference": [{"readers": 0.5, "read_bytes": 4096, "write_bytes": 65536, "vops": 41000}],
 "pairs": [{"kind": "rw", "bytes": [4096, 65536], "ratio": [0.6, 1], "mmr": 0.6}]}
J
has() { grep -qF -- "$1" out || fail "no $1 in: $(cat out)"; }
$SLUICE cost show small.json >out || fail 'show'
has '8k VOP/s at most'
has 'Written by hand'
has '(20.4)'  # 512 KiB, between its points
grep -qE '^ +4 KiB +1.00 ' out || fail "$(cat out)"
$SLUICE cost show measured.json >out || fail 'show'
has '1.00~'
has '12.5'
has 'too little for reservations'
has '1 of 3 costs are unstable'
has 'one calibration to the next: 1 of them'
grep -qE '^ +open +0.50\^$' out && grep -qE '^ +fsync +30.0 *$' out || fail "marks: $(cat out)"
$SLUICE cost show small.json measured.json >out || fail 'two'
has 'small.json'
has 'measured.json'
has 'operations'
$SLUICE --json cost show small.json measured.json >out || fail 'json'
[ "$(json out 'd[1]["ops"]["create"]["cost"]')" = 12.5 ] || fail "$(cat out)"
[ "$(json out 'd[0]["curves"]["read"]["1048576"]["measured"]')" = True ] || fail "$(cat out)"
[ "$(json out 'd[0]["ops"]["stat"]["measured"]')" = False ] || fail "$(cat out)"
[ "$(json out '[k for k, v in d[1]["ops"].items() if "of_processor" in v]')" = "['open']" ] ||
  fail "$(cat out)"
$SLUICE cost show small.json measured.json --html page.html || fail 'page'
python3 - <<'P' || fail 'the page'
import re
page = open("page.html").read()
assert page.count("<script") == 1 and "&lt;script&gt;alert(1)" in page
assert not re.search(r"(src|href)=|https?://(?!www.w3.org/2000/svg)", page)
assert page.count('<svg class="chart"') == 2 and "Content-Security-Policy" in page
# No label of an axis begins outside of its drawing: they end at x, and a letter takes 7.
labels = re.findall(r'<text x="([0-9.]+)" y="[0-9.]+" class="label">([^<]*)</text>', page)
assert len(labels) > 6, labels
for x, text in labels:
    assert float(x) - 7 * len(text) > 0, (x, text)
P
refused() { # TEXT ARGS...
  local text=$1
  shift
  $SLUICE "$@" >out 2>&1
  [ $? = 2 ] && grep -qF -- "$text" out || fail "$*: $(cat out)"
}
echo '{"version": 1, "max_vops": 8000, "read": [[4096, 0], [8192, 1]]}' >zero.json
refused 'zero.json:1:50: read[0][1] is 0 VOP' cost show zero.json
refused 'No such file' cost show nowhere.json
refused 'is required' cost
refused 'one of them' --json cost show small.json --html x
refused 'is required' calibrate
refused '--output is required' calibrate "$SCRATCH"
refused '--budget 0' calibrate "$SCRATCH" -o x --budget 0
refused 'for example 5%' calibrate "$SCRATCH" -o x --budget 5x
refused '32MiB or more' calibrate "$SCRATCH" -o x --size 1MiB
refused 'No such file' calibrate "$SCRATCH/none" -o x
refused '--only: no step' calibrate "$SCRATCH" -o x --only nonsense
refused 'is a directory' calibrate "$SCRATCH" -o "$SCRATCH"
[ ! -e x ] && [ ! -e x.state ] || fail 'a file of a refused calibration'
